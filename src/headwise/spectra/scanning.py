"""Find the large entries of matrices on a CPU in one pass, with array operations.

The matrices are reduced to maxima over groups of neighbouring columns; only the groups that
can hold an entry worth keeping are read again. So each matrix is read once, and not copied.
This handles every dtype; float64 has compiled code if there is a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from headwise.spectra.large_entries import GROUP, Found, most_groups
from headwise.threads import one_thread

#: Bytes of a piece: large enough for few pieces, small compared with a large batch.
PIECE = 2**26

#: Bytes up to which starting a second thread costs more than it saves.
SMALL = 2**24

#: Maps values and their rows to a mask of those to keep.
Keep = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: Maps a piece and its first row to the groups that are hit, and a Keep for them.
Screen = Callable[[Tensor, int], tuple[Tensor, Keep]]


def scan(matrices: Tensor, screen: Screen) -> Found:
    """Find the entries of (b, n, m) matrices that the screen keeps."""
    batch, n, m = matrices.shape
    flat = matrices.reshape(batch * n, m)
    sparse = np.ones(batch, dtype=bool)
    parts = []
    for rows in _pieces(matrices):
        with one_thread() if flat[rows].nbytes <= SMALL else nullcontext():
            hit, keep = screen(flat[rows], rows.start)
        height = min(n, rows.stop - rows.start)
        row, column, value, worth = _gather(flat[rows], hit.numpy(), height, keep)
        parts.append((row + rows.start, column, value))
        sparse[rows.start // n : (rows.stop - 1) // n + 1] &= worth
    row, column, value = (np.concatenate(x) for x in zip(*parts, strict=True))
    if not sparse.all():
        stay = sparse[row // n]
        row, column, value = row[stay], column[stay], value[stay]
    return Found(row, column + row // n * m, value, sparse)


def _pieces(matrices: Tensor) -> Iterator[slice]:
    """Yield rows to take together: several whole matrices, or a part of one."""
    batch, n, m = matrices.shape
    fitting = max(1, PIECE // (m * matrices.element_size()))
    step = fitting // n * n or fitting
    for first in range(0, batch * n, max(step, n)):
        last = min(first + max(step, n), batch * n)
        yield from (slice(i, min(i + step, last)) for i in range(first, last, step))


def group_peaks(part: Tensor) -> Tensor:
    """Return the maximum of each group of columns, row by row."""
    return torch.nn.functional.max_pool1d(part.unsqueeze(1), GROUP, ceil_mode=True).squeeze(1)


def _gather(
    flat: Tensor, hit: np.ndarray, height: int, keep: Keep
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return row, column and value of the kept entries, and which stretches of rows are sparse.

    A stretch is ``height`` rows; one that is not sparse gives no entries.
    """
    m, width = flat.shape[-1], hit.shape[-1]
    where = np.flatnonzero(hit)
    row = where // width
    sparse = np.bincount(row // height, minlength=len(flat) // height) <= most_groups(height, m)
    if not sparse.all():
        stay = sparse[row // height]
        where, row = where[stay], row[stay]
    row, members = row[:, None], GROUP * (where - row * width)[:, None] + np.arange(GROUP)
    # The last group may reach beyond the row; what is read there is dropped.
    found = _pick(flat, (row * m + members).clip(max=flat.numel() - 1))
    with np.errstate(invalid="ignore"):  # ∞ − ∞, in rows that are refused later
        at = np.flatnonzero(keep(found, row) & (members < m))
    return row[at // GROUP, 0], members.reshape(-1)[at], found.reshape(-1)[at], sparse


def _pick(flat: Tensor, place: np.ndarray) -> np.ndarray:
    """Return the entries at these places in float64; numpy takes half the time of torch here."""
    if flat.dtype == torch.float64:
        return flat.numpy().reshape(-1)[place]
    return torch.take(flat, torch.from_numpy(place)).double().numpy()
