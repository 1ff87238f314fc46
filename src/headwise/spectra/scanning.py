"""One pass over matrices finds the entries that stand out.

The matrices are reduced to maxima over groups of neighbouring columns; only the groups that
can hold an entry worth keeping are read again. So each matrix is read once, and not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.threads import one_thread

#: Columns in a group: one line of the cache, in float64.
GROUP = 8

#: Above so many kept groups a row (on average) a matrix is not worth treating as sparse.
MOST_GROUPS = 6.0

#: Bytes of a piece: large enough that the pieces are few, small beside a large batch.
PIECE = 2**26

#: Bytes up to which waking a second thread costs more than it saves.
SMALL = 2**24

Array = Tensor | np.ndarray

#: From values and their rows to which of them to keep.
Keep = Callable[[Array, Array], Array]

#: From a piece and its first row to the groups that are hit, and what to keep of them.
Screen = Callable[[Tensor, int], tuple[Tensor, Keep]]


@dataclass(frozen=True, eq=False)
class Found:
    """The kept entries row by row, rows numbered across the batch, and which matrices are sparse.

    Matrices that are not sparse have no entries here.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    sparse: np.ndarray


def scan(matrices: Tensor, screen: Screen) -> Found:
    """The entries of (b, n, m) matrices that the screen keeps."""
    batch, n, m = matrices.shape
    flat = matrices.reshape(batch * n, m)
    sparse = np.ones(batch, dtype=bool)
    parts = []
    for rows in _pieces(matrices):
        with one_thread() if flat[rows].nbytes <= SMALL else nullcontext():
            hit, keep = screen(flat[rows], rows.start)
        height = min(n, rows.stop - rows.start)
        row, column, value, worth = _gather(flat[rows], hit, height, keep)
        parts.append((row + rows.start, column, value))
        sparse[rows.start // n : (rows.stop - 1) // n + 1] &= worth
    row, column, value = (
        as_numpy(torch.cat(x) if isinstance(x[0], Tensor) else np.concatenate(x))
        for x in zip(*parts, strict=True)
    )
    if not sparse.all():
        stay = sparse[row // n]
        row, column, value = row[stay], column[stay], value[stay]
    return Found(row, column, value, sparse)


def _pieces(matrices: Tensor) -> Iterator[slice]:
    """Rows to take together: several whole matrices, or a part of one; on a GPU all."""
    batch, n, m = matrices.shape
    fitting = max(1, PIECE // (m * matrices.element_size()))
    if matrices.is_cuda:
        fitting = batch * n
    step = fitting // n * n or fitting
    for first in range(0, batch * n, max(step, n)):
        last = min(first + max(step, n), batch * n)
        yield from (slice(i, min(i + step, last)) for i in range(first, last, step))


def group_peaks(part: Tensor) -> Tensor:
    """The maximum of each group of columns, row by row.

    >>> group_peaks(torch.arange(20.0)[None])
    tensor([[ 7., 15., 19.]])
    """
    return torch.nn.functional.max_pool1d(part.unsqueeze(1), GROUP, ceil_mode=True).squeeze(1)


def _gather(
    flat: Tensor, hit: Tensor, height: int, keep: Keep
) -> tuple[Array, Array, Array, np.ndarray]:
    """Row, column and value of the entries worth keeping in the groups that were hit.

    Last comes, for each stretch of ``height`` rows, whether it is sparse; those that are not
    give no entries.
    """
    m, width = flat.shape[-1], hit.shape[-1]
    where = _true_positions(native(hit))
    row = where // width
    row, group, sparse = _worthwhile(row, where - row * width, (len(flat), height, width))
    row, members = row[:, None], GROUP * group[:, None] + _places(group)
    place = row * m + members
    if m % GROUP == 0:
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
    """Drop the stretches that keep too many groups; say which stay."""
    rows, height, width = shape
    most = min(MOST_GROUPS, max(2.0, width / 2)) * height
    stretch = row // height
    if isinstance(stretch, Tensor):
        sparse = torch.bincount(stretch, minlength=rows // height) <= most
    else:
        sparse = np.bincount(stretch, minlength=rows // height) <= most
    if not sparse.all():
        stay = sparse[stretch]
        row, group = row[stay], group[stay]
    return row, group, as_numpy(sparse)


def native(tensor: Tensor) -> Array:
    """numpy where it can: its indexing takes half the time of torch's on a CPU.

    >>> type(native(torch.zeros(2))).__name__
    'ndarray'
    """
    return tensor if tensor.is_cuda else tensor.numpy()


def _pick(flat: Tensor, place: Array) -> Array:
    """The entries at these places, in float64."""
    if isinstance(place, Tensor):
        return torch.take(flat, place).double()
    if flat.dtype == torch.float64:
        return flat.numpy().reshape(-1)[place]
    return torch.take(flat, torch.from_numpy(place)).double().numpy()


def as_numpy(array: Array) -> np.ndarray:
    """The same numbers as a numpy array, from wherever they are."""
    return array.cpu().numpy() if isinstance(array, Tensor) else array


def _places(like: Array) -> Array:
    """The places inside a group."""
    if isinstance(like, Tensor):
        return torch.arange(GROUP, device=like.device)
    return np.arange(GROUP)


def _true_positions(mask: Array) -> Array:
    if isinstance(mask, Tensor):
        return mask.view(-1).nonzero().squeeze(-1)
    return np.flatnonzero(mask)
