"""Keep the few entries of a matrix that matter at ε, and bound the norm of the rest.

Dropping entries moves every singular value by at most the Frobenius norm of what was dropped
(Weyl). A matrix whose rows are nearly one-hot keeps little more than one entry per row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from headwise.spectra import machine_code, on_device
from headwise.spectra.large_entries import Found, Packed, Weights, most_groups
from headwise.spectra.scanning import Keep, group_peaks, scan
from headwise.spectra.sources import (
    LogWeights,
    log_doubt,
    logit_error,
    refuse_bad_rows,
    refuse_not_finite,
    softmax_rounding,
    storage_error,
    sum_rounding,
    weights_error,
)

#: What may be dropped, in Frobenius norm, as a fraction of ε.
DROPPED_SHARE = 1e-4

#: The part of that share that is used. The rest, 1e-6 ε, covers two smaller errors: anchors are
#: compared at ε instead of ε ± δ, and their squares are summed in float64.
USED_SHARE = 0.99

#: With log-weights known better than this, dropped entries stay negligible.
LARGE_LOGIT_ERROR = 0.1


@dataclass(frozen=True, eq=False)
class DominantEntries:
    """The kept entries of a batch, row by row; rows and columns are numbered across the batch.

    ``sparse`` marks the matrices for which this pays: only those have entries here. ``dropped``
    bounds the Frobenius norm of the dropped entries, ``doubt`` the distance of the entries from
    the exact ones. ``excess`` bounds by which factor beyond one rows were scaled: kept softmax
    weights sum to one without the dropped ones, and their sum was rounded.
    """

    batch: int
    shape: tuple[int, int]
    kept: Found | Packed
    dropped: float
    doubt: np.ndarray
    excess: float = 0.0

    def moved(self, sigma: np.ndarray) -> np.ndarray:
        """Return a bound on how far dropping entries can move singular values of size ``sigma``.

        With T the whole matrix, K the kept entries, E the dropped ones and rows scaled by at
        most 1 + r, T = (1 + R)⁻¹K + E with 0 ≤ R ≤ r. So σ(K)/(1 + r) − ‖E‖ ≤ σ(T) ≤
        σ(K) + ‖E‖ (Ostrowski, Weyl).
        """
        return self.dropped + self.excess * (sigma + self.dropped)

    def only(self, matrices: np.ndarray) -> DominantEntries:
        """Return the same without the entries of the matrices not chosen."""
        stay = matrices[self.matrix_of_entry]
        rows, columns, values = self.rows[stay], self.columns[stay], self.values[stay]
        return replace(self, kept=Found(rows, columns, values, self.sparse))

    @cached_property
    def found(self) -> Found:
        """The entries as lists."""
        if isinstance(self.kept, Found):
            return self.kept
        return _lists(self.kept).found if self.kept.softmax else self.kept.unpacked()

    @property
    def rows(self) -> np.ndarray:
        """The row of each entry."""
        return self.found.rows

    @property
    def columns(self) -> np.ndarray:
        """The column of each entry."""
        return self.found.columns

    @property
    def values(self) -> np.ndarray:
        """The value of each entry."""
        return self.found.values

    @property
    def sparse(self) -> np.ndarray:
        """Which matrices have entries here."""
        return self.kept.sparse

    @property
    def matrix_of_entry(self) -> np.ndarray:
        """The matrix of each kept entry."""
        return self.rows // self.shape[0]


def dominant_weights(source: LogWeights, epsilon: float) -> DominantEntries:
    """Find the softmax weights that can matter at ε."""
    batch, n, m = _flat_shape(source.values)
    smallest = USED_SHARE * DROPPED_SHARE * epsilon / math.sqrt(n * m)
    # Not the logarithm of ``smallest``, which is 0 where ε is among the smallest numbers.
    reach = -math.log(USED_SHARE * DROPPED_SHARE / math.sqrt(n * m)) - math.log(epsilon)
    kept = _weights(source.values.reshape(batch, n, m), reach)
    if source.is_exact:
        # Rows of weights have norm at most one.
        doubt = np.full(batch, softmax_rounding() * math.sqrt(n))
    elif _found(kept).sparse.any():
        kept = _lists(kept)
        doubt = _doubt(source, kept, reach)
    else:
        doubt = np.full(batch, math.inf)
    found = _found(kept)
    excess = m * smallest + sum_rounding(m)
    return DominantEntries(batch, (n, m), found, DROPPED_SHARE * epsilon, doubt, excess)


def _weights(values: Tensor, reach: float) -> Weights | Packed:
    """Find the kept weights by the fastest code available for these log-weights."""
    if values.is_cuda:
        found = on_device.fastest().scan_log_weights(values, reach)
        return found if isinstance(found, Packed) else _weighed(*found)
    made = machine_code.scan_log_weights(values, reach, most_groups(*values.shape[1:]))
    return _weighed(*_scan_log_weights(values, reach)) if made is None else made


def _found(kept: Weights | Packed) -> Found | Packed:
    return kept.found if isinstance(kept, Weights) else kept


def _lists(kept: Weights | Packed) -> Weights:
    """Return the kept weights as lists, packed or not."""
    if isinstance(kept, Weights):
        return kept
    return _weighed(kept.unpacked(), torch.from_numpy(kept.top))


def _weighed(found: Found, top: Tensor) -> Weights:
    """Turn differences into weights; the differences are overwritten."""
    total = machine_code.weigh(found.rows, found.values, len(top))
    if total is None:
        total = _weigh(found, len(top))
    return Weights(found, top, total)


def _scan_log_weights(values: Tensor, reach: float) -> tuple[Found, Tensor]:
    """Find log-weights within reach by array operations, as differences from the row maximum."""
    top = torch.empty(values.shape[0] * values.shape[1], dtype=torch.float64)

    def screen(part: Tensor, start: int) -> tuple[Tensor, Keep]:
        peaks = group_peaks(part).double()
        here = top[start : start + len(part)]
        torch.amax(peaks, -1, out=here)
        peak = here.numpy()
        return peaks >= (here - reach).unsqueeze(-1), lambda v, r: v - peak[r] >= -reach

    found = scan(values, screen)
    refuse_bad_rows(top)
    # Only this difference is free of rounding when log-weights are as large as 1e9.
    np.subtract(found.values, top.numpy()[found.rows], out=found.values)
    return found, top


def _weigh(found: Found, rows: int) -> np.ndarray:
    """Turn differences into weights in place; return row sums, with the largest weight as one."""
    np.exp(found.values, out=found.values)
    total = np.bincount(found.rows, found.values, minlength=rows)
    np.divide(found.values, total[found.rows], out=found.values)
    return total


def _doubt(source: LogWeights, kept: Weights, reach: float) -> np.ndarray:
    """Bound, for each matrix, how far its kept weights lie from the exact ones, if inexact."""
    batch, n, m = _flat_shape(source.values)
    rows, found = source.shape[:-1], kept.found
    energy = np.bincount(found.rows, found.values**2, minlength=batch * n)
    norm = torch.from_numpy(np.sqrt(energy)).view(rows)
    eta = logit_error(source, torch.as_tensor(kept.top).cpu().abs().view(rows) + reach)
    if float(eta.max()) < LARGE_LOGIT_ERROR:
        # The dropped entries may add up to this; compared with it, total − 1 is exact enough.
        unseen = m * math.exp(-reach) + 1e-15
        doubt = torch.from_numpy(np.log(np.maximum(kept.total - 1, 0) + unseen)).view(rows)
    else:
        doubt = log_doubt(source.values.double()).cpu()
    return weights_error(source, norm, doubt, eta).flatten().numpy()


def dominant_entries(matrix: Tensor, epsilon: float) -> DominantEntries:
    """Find the entries of a matrix that can matter at ε, of either sign."""
    batch, n, m = _flat_shape(matrix)
    smallest = USED_SHARE * DROPPED_SHARE * epsilon / math.sqrt(n * m)
    values = matrix.reshape(batch, n, m)
    if values.is_cuda:
        found = on_device.fastest().scan_matrices(values, smallest)
    else:
        made = machine_code.scan_matrices(values, smallest, most_groups(n, m))
        found = _scan_matrices(values, smallest) if made is None else made
    doubt = storage_error(matrix).flatten().cpu().numpy()
    return DominantEntries(batch, (n, m), found, DROPPED_SHARE * epsilon, doubt)


def _scan_matrices(values: Tensor, smallest: float) -> Found:
    """Find entries of at least this absolute size by array operations."""
    largest = torch.empty(values.shape[0] * values.shape[1], dtype=torch.float64)

    def screen(part: Tensor, start: int) -> tuple[Tensor, Keep]:
        peaks = group_peaks(part.abs()).double()
        torch.amax(peaks, -1, out=largest[start : start + len(part)])
        return peaks >= smallest, lambda v, _: abs(v) >= smallest

    found = scan(values, screen)
    refuse_not_finite("the matrix", int((~largest.isfinite()).sum()))
    return found


def _flat_shape(matrices: Tensor) -> tuple[int, int, int]:
    n, m = matrices.shape[-2:]
    return matrices.numel() // (n * m), n, m
