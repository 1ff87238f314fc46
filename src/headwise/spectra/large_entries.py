"""The result of a scan: the few large entries of a batch of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from torch import Tensor

#: Columns in a group: one line of the cache, in float64.
GROUP = 8

#: With more kept groups per row than this (on average), a matrix is treated as dense.
MOST_GROUPS = 6.0


def most_groups(n: int, m: int) -> float:
    """Return how many groups of columns may be hit in a matrix that still counts as sparse."""
    return min(MOST_GROUPS, max(2.0, -(-m // GROUP) / 2)) * n


@dataclass(frozen=True, eq=False)
class Found:
    """The kept entries row by row; rows and columns are numbered across the batch.

    ``sparse`` marks the sparse matrices; the others have no entries here.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    sparse: np.ndarray


@dataclass(frozen=True, eq=False)
class Weights:
    """Kept softmax weights, with the maximum and the sum of each row.

    ``top`` is the largest log-weight, ``total`` the sum of the kept weights with the largest taken
    as one. Both may be zero for rows of matrices that are not sparse.
    """

    found: Found
    top: Tensor | np.ndarray
    total: np.ndarray


#: Added to a matrix's groups for each bad row; larger than any sum of groups.
BAD = 1 << 40


def packed_size(shape: tuple[int, int, int], room: int) -> int:
    """Return the length of the array for a batch of this shape with this room per matrix."""
    batch, n, _ = shape
    return 2 * batch * (1 + n + room)


@dataclass(frozen=True, eq=False)
class Packed:
    """The entries that a device found in a batch, in one array that travels at once.

    All are 64-bit numbers, one section after the other:

        groups   for each matrix, the groups of columns that were hit, and BAD for each bad row
        wanted   for each matrix, how many entries it keeps
        table    for each row, place · 2³² + how many entries it keeps
        top      for each row, its largest log-weight or absolute value (float64)
        columns  for each matrix, room for its entries: their columns
        values   and their values, for log-weights as differences from the largest

    Rows may stand in any order in the room of their matrix; entries of a row are in order. A row
    of log-weights with a single entry takes no room: its weight is one, and its place is the
    column. If a matrix needs more room than it has, only its sums are valid.
    """

    numbers: np.ndarray
    shape: tuple[int, int, int]
    room: int
    softmax: bool

    @cached_property
    def sparse(self) -> np.ndarray:
        """Which matrices are sparse; a matrix with a bad row is not."""
        return self.numbers[: self.shape[0]] <= most_groups(*self.shape[1:])

    @property
    def is_bad(self) -> bool:
        """Whether some row has no finite peak or holds NaN."""
        return not self.sparse.all() and bool((self.numbers[: self.shape[0]] >= BAD).any())

    @property
    def room_wanted(self) -> int:
        """The room that the fullest sparse matrix needs."""
        batch = self.shape[0]
        return int((self.numbers[batch : 2 * batch] * self.sparse).max())

    @property
    def top(self) -> np.ndarray:
        """The maximum of each row."""
        return self._stretches[1].view(np.float64)

    def unpacked(self) -> Found:
        """Return the entries of the sparse matrices in order; log-weights stay differences."""
        batch, n, m = self.shape
        table, _, columns, bits = self._stretches
        count = np.where(np.repeat(self.sparse, n), table & 0xFFFFFFFF, 0)
        rows = np.repeat(np.arange(batch * n), count)
        step = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
        place = (table >> 32)[rows]
        alone = (count[rows] == 1) & self.softmax
        at = np.where(alone, 0, place + rows // n * self.room + step)
        values = np.where(alone, 0.0, _taken(bits.view(np.float64), at))
        inside = np.where(alone, place, _taken(columns, at))
        return Found(rows, inside + rows // n * m, values, self.sparse)

    @property
    def _stretches(self) -> list[np.ndarray]:
        """Return table, top, columns and values."""
        batch, n, _ = self.shape
        sizes = [2 * batch, batch * n, batch * n, batch * self.room]
        return np.split(self.numbers, np.cumsum(sizes))[1:]


def _taken(stretch: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Take numbers at these places; an empty array gives nothing."""
    return stretch[at] if len(stretch) else np.zeros(len(at), stretch.dtype)
