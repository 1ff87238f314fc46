"""One pass over a matrix keeps the few entries that matter; the rest is bounded in norm.

Dropping entries moves every singular value by at most the Frobenius norm of what was
dropped (Weyl). A matrix whose rows are nearly one-hot keeps little more than one entry a
row, and all later work is on those.

The pass takes the maximum over groups of columns, so that only the groups that can hold a
kept entry are read again: the matrix itself is read once and never copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.spectra.rounding import storage_error
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

#: Group width in columns: wide enough for vector registers, small enough to skip most groups.
GROUP_WIDTH = 8
GROUPS_PER_ROW = 8

#: Above so many kept groups a row (on average) a matrix is not worth treating as sparse.
MOST_GROUPS = 6.0

#: Log-weights in doubt by less than this leave dropped entries negligible.
LARGE_LOGIT_ERROR = 0.1

Array = Tensor | np.ndarray


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
    logits = source.values.reshape(batch * n, m)
    peaks = _group_peaks(logits)
    top = peaks.amax(-1, keepdim=True)
    refuse_bad_rows(top)
    reach = math.log(math.sqrt(n * m) / (DROPPED_SHARE * epsilon))
    top = top.double()
    peak = _native(top)[:, 0]
    row, column, value, sparse = _gather(
        logits, peaks.double() >= top - reach, batch, lambda v, r: v - peak[r] >= -reach
    )
    # Only this difference is free of rounding when log-weights are as large as 1e9.
    row, column, depth = (_numpy(x) for x in (row, column, value - peak[row]))
    weight = np.exp(depth)
    total = np.bincount(row, weight, minlength=batch * n)
    value = weight / total[row]
    doubt = _doubt(source, (row, value, total), (top.abs() + reach).cpu(), epsilon)
    column += row // n * m
    dropped = DROPPED_SHARE * epsilon
    return DominantEntries(batch, (n, m), row, column, value, sparse, dropped, doubt)


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
    flat = matrix.reshape(batch * n, m)
    peaks = torch.maximum(_group_peaks(flat), -_group_peaks(flat, torch.amin, torch.minimum))
    refuse_not_finite("the matrix", int((~peaks.isfinite().all(-1)).sum()))
    smallest = DROPPED_SHARE * epsilon / math.sqrt(n * m)
    row, column, value, sparse = _gather(
        flat, peaks >= smallest, batch, lambda v, _: abs(v) >= smallest
    )
    row, column, value = (_numpy(x) for x in (row, column, value))
    column += row // n * m
    dropped, doubt = DROPPED_SHARE * epsilon, storage_error(matrix).flatten().cpu().numpy()
    return DominantEntries(batch, (n, m), row, column, value, sparse, dropped, doubt)


def _flat_shape(matrices: Tensor) -> tuple[int, int, int]:
    n, m = matrices.shape[-2:]
    return matrices.numel() // (n * m), n, m


def _group_width(m: int) -> int:
    """Columns j, j + width, j + 2·width, … form group j."""
    wide = GROUP_WIDTH * math.ceil(m / (GROUP_WIDTH * GROUPS_PER_ROW))
    return min(wide, m)


def _group_peaks(
    flat: Tensor,
    extreme: Callable[..., Tensor] = torch.amax,
    of_two: Callable[..., Tensor] = torch.maximum,
) -> Tensor:
    m, width = flat.shape[-1], _group_width(flat.shape[-1])
    whole = m // width * width
    peaks = extreme(flat[:, :whole].unflatten(-1, (-1, width)), -2)
    if rest := m - whole:
        peaks[:, :rest] = of_two(peaks[:, :rest], flat[:, whole:])
    return peaks


def _gather(
    flat: Tensor, hit: Tensor, batch: int, keep: Callable[[Array, Array], Array]
) -> tuple[Array, Array, Array, np.ndarray]:
    """Row, column and value of the entries worth keeping in the groups that were hit.

    Last comes which matrices are sparse; those that are not give no entries.
    """
    m, width = flat.shape[-1], hit.shape[-1]
    where = _true_positions(_native(hit))
    row = where // width
    row, group, sparse = _worthwhile(row, where - row * width, (batch, len(flat) // batch, width))
    row, members = row[:, None], group[:, None] + _steps(group, m, width)
    place = row * m + members
    if m % width == 0:
        found = _pick(flat, place)
        kept = keep(found, row)
    else:
        # The last group may reach beyond the row: read there, harmlessly, and forget.
        found = _pick(flat, place.clip(max=flat.numel() - 1))
        kept = keep(found, row) & (members < m)
    at = _true_positions(kept)
    return row[at // members.shape[1], 0], members.reshape(-1)[at], found.reshape(-1)[at], sparse


def _worthwhile(
    row: Array, group: Array, shape: tuple[int, int, int]
) -> tuple[Array, Array, np.ndarray]:
    """Drop the matrices that keep too many groups; say which stay."""
    batch, n, width = shape
    most = min(MOST_GROUPS, max(2.0, width / 2))
    matrix = row // n
    if isinstance(matrix, Tensor):
        sparse = torch.bincount(matrix, minlength=batch) <= most * n
    else:
        sparse = np.bincount(matrix, minlength=batch) <= most * n
    if not sparse.all():
        stay = sparse[matrix]
        row, group = row[stay], group[stay]
    return row, group, _numpy(sparse)


def _native(tensor: Tensor) -> Array:
    """numpy where it can: its indexing takes half the time of torch's on a CPU."""
    return tensor if tensor.is_cuda else tensor.numpy()


def _pick(flat: Tensor, place: Array) -> Array:
    """The entries at these places, in float64."""
    if isinstance(place, Tensor):
        return torch.take(flat, place).double()
    if flat.dtype == torch.float64:
        return flat.numpy().reshape(-1)[place]
    return torch.take(flat, torch.from_numpy(place)).double().numpy()


def _numpy(array: Array) -> np.ndarray:
    return array.cpu().numpy() if isinstance(array, Tensor) else array


def _steps(like: Array, m: int, width: int) -> Array:
    if isinstance(like, Tensor):
        return torch.arange(0, m, width, device=like.device)
    return np.arange(0, m, width)


def _true_positions(mask: Array) -> Array:
    if isinstance(mask, Tensor):
        return mask.view(-1).nonzero().squeeze(-1)
    return np.flatnonzero(mask)
