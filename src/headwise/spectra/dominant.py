"""The few entries of a matrix that matter at ε; the rest is bounded in norm.

Dropping entries moves every singular value by at most the Frobenius norm of what was
dropped (Weyl). A matrix whose rows are nearly one-hot keeps little more than one entry a
row, and all later work is on those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.spectra.rounding import storage_error
from headwise.spectra.scanning import Found, Keep, as_numpy, group_peaks, native, scan
from headwise.spectra.sources import LogWeights, refuse_not_finite
from headwise.spectra.weights import (
    log_doubt,
    logit_error,
    refuse_bad_rows,
    softmax_rounding,
    weights_error,
)

#: What may be dropped, in Frobenius norm, as a fraction of ε.
DROPPED_SHARE = 1e-4

#: Log-weights in doubt by less than this leave dropped entries negligible.
LARGE_LOGIT_ERROR = 0.1


@dataclass(frozen=True, eq=False)
class DominantEntries:
    """The kept entries of a batch, row by row; rows and columns are numbered across it.

    ``sparse`` says which matrices were worth it: only those have entries here.
    ``dropped`` bounds the Frobenius norm of what was left out, and ``doubt`` how far the
    entries of each matrix may lie from those meant.
    """

    batch: int
    shape: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    sparse: np.ndarray
    dropped: float
    doubt: np.ndarray

    @classmethod
    def of(
        cls,
        found: Found,
        shape: tuple[int, int],
        values: np.ndarray,
        dropped: float,
        doubt: np.ndarray,
    ) -> DominantEntries:
        """What a scan found, with these values, its columns numbered across the batch."""
        columns = found.columns + found.rows // shape[0] * shape[1]
        batch = len(found.sparse)
        return cls(batch, shape, found.rows, columns, values, found.sparse, dropped, doubt)

    @property
    def matrix_of_entry(self) -> np.ndarray:
        """Which matrix each kept entry belongs to."""
        return self.rows // self.shape[0]


def dominant_weights(source: LogWeights, epsilon: float) -> DominantEntries:
    """The softmax weights that can matter at ε.

    >>> kept = dominant_weights(LogWeights(torch.tensor([[0.0, -99.0], [3.0, 3.0]])), 1e-8)
    >>> kept.values
    array([1. , 0.5, 0.5])
    """
    batch, n, m = _flat_shape(source.values)
    reach = math.log(math.sqrt(n * m) / (DROPPED_SHARE * epsilon))
    top = torch.empty(batch * n, dtype=torch.float64, device=source.values.device)

    def screen(part: Tensor, start: int) -> tuple[Tensor, Keep]:
        peaks = group_peaks(part).double()
        here = top[start : start + len(part)]
        torch.amax(peaks, -1, out=here)
        peak = native(here)
        return peaks >= (here - reach).unsqueeze(-1), lambda v, r: v - peak[r] >= -reach

    found = scan(source.values.reshape(batch, n, m), screen)
    refuse_bad_rows(top)
    # Only this difference is free of rounding when log-weights are as large as 1e9.
    weight = np.exp(found.values - as_numpy(top)[found.rows])
    total = np.bincount(found.rows, weight, minlength=batch * n)
    value = weight / total[found.rows]
    doubt = _doubt(source, (found.rows, value, total), (top.abs() + reach).cpu(), epsilon)
    return DominantEntries.of(found, (n, m), value, DROPPED_SHARE * epsilon, doubt)


def _doubt(
    source: LogWeights,
    kept: tuple[np.ndarray, np.ndarray, np.ndarray],
    reach: Tensor,
    epsilon: float,
) -> np.ndarray:
    """For each matrix, how far its kept weights may lie from those meant."""
    batch, n, _ = _flat_shape(source.values)
    if source.is_exact:
        # Rows of weights have norm at most one.
        return np.full(batch, softmax_rounding(source.shape) * math.sqrt(n))
    row, value, total = kept
    rows = source.shape[:-1]
    norm = torch.from_numpy(np.sqrt(np.bincount(row, value * value, minlength=batch * n)))
    eta = logit_error(source, reach.view(rows))
    if float(eta.max()) < LARGE_LOGIT_ERROR:
        # What was not kept may add up to this; next to it, total − 1 is exact enough.
        unseen = DROPPED_SHARE * epsilon + 1e-15
        doubt = torch.from_numpy(np.log(np.maximum(total - 1, 0) + unseen)).view(rows)
    else:
        doubt = log_doubt(source.values.double()).cpu()
    return weights_error(source, norm.view(rows), doubt, eta).flatten().numpy()


def dominant_entries(matrix: Tensor, epsilon: float) -> DominantEntries:
    """The entries of a matrix that can matter at ε, whatever their sign.

    >>> dominant_entries(torch.tensor([[1.0, 0.0], [0.0, -2.0]]).double(), 1e-8).values
    array([ 1., -2.])
    """
    batch, n, m = _flat_shape(matrix)
    smallest = DROPPED_SHARE * epsilon / math.sqrt(n * m)
    largest = torch.empty(batch * n, dtype=torch.float64, device=matrix.device)

    def screen(part: Tensor, start: int) -> tuple[Tensor, Keep]:
        peaks = group_peaks(part.abs()).double()
        torch.amax(peaks, -1, out=largest[start : start + len(part)])
        return peaks >= smallest, lambda v, _: abs(v) >= smallest

    found = scan(matrix.reshape(batch, n, m), screen)
    refuse_not_finite("the matrix", int((~largest.isfinite()).sum()))
    doubt = storage_error(matrix).flatten().cpu().numpy()
    return DominantEntries.of(found, (n, m), found.values, DROPPED_SHARE * epsilon, doubt)


def _flat_shape(matrices: Tensor) -> tuple[int, int, int]:
    n, m = matrices.shape[-2:]
    return matrices.numel() // (n * m), n, m
