"""What a device found in a batch of matrices, in one array, so that it travels at once.

All are numbers of 64 bits, one stretch behind the other:

    groups   for each matrix, the groups of columns that were hit, and BAD for each bad row
    wanted   for each matrix, how many entries belong into its room
    table    for each row, place · 2³² + how many entries it keeps
    top      for each row, its largest log-weight or absolute value (float64)
    columns  for each matrix, room for so many entries: their columns
    values   and their values, as differences from the largest where these are log-weights

Rows take their place in the room of their matrix in any order; inside a row entries stand in
order. A row of log-weights with a single entry takes none: its weight is one, and its place is
the column. Where a matrix wants more than its room, nothing of it may be read but the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headwise.spectra.found import Found, most_groups

#: Added to the groups hit in a matrix for each row that is bad; more than groups can sum to.
BAD = 1 << 40


def packed_size(shape: tuple[int, int, int], room: int) -> int:
    """How many numbers there are for a batch of this shape with so much room each.

    >>> packed_size((2, 3, 4), 5)
    36
    """
    batch, n, _ = shape
    return 2 * batch * (1 + n + room)


@dataclass(frozen=True, eq=False)
class Packed:
    """The numbers, and what it takes to read them.

    >>> here = Packed(np.zeros(8, dtype=np.int64), (1, 2, 9), 1, softmax=True)
    >>> here.sparse.tolist(), here.unpacked().rows.tolist()
    ([True], [])
    """

    numbers: np.ndarray
    shape: tuple[int, int, int]
    room: int
    softmax: bool

    @cached_property
    def sparse(self) -> np.ndarray:
        """Which matrices are sparse; none with a bad row is."""
        return self.numbers[: self.shape[0]] <= most_groups(*self.shape[1:])

    @property
    def is_bad(self) -> bool:
        """Whether some row has no finite peak, or holds what is no number."""
        return not self.sparse.all() and bool((self.numbers[: self.shape[0]] >= BAD).any())

    @property
    def room_wanted(self) -> int:
        """The room that the fullest of the sparse matrices wants."""
        batch = self.shape[0]
        return int((self.numbers[batch : 2 * batch] * self.sparse).max())

    @property
    def top(self) -> np.ndarray:
        """The largest of each row."""
        return self._stretches[1].view(np.float64)

    def unpacked(self) -> Found:
        """The entries of the sparse matrices in the order of the matrix; differences still."""
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
        """Table, top, columns and values."""
        batch, n, _ = self.shape
        sizes = [2 * batch, batch * n, batch * n, batch * self.room]
        return np.split(self.numbers, np.cumsum(sizes))[1:]


def _taken(stretch: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Numbers at these places; where there is no room at all none is asked for but the first."""
    return stretch[at] if len(stretch) else np.zeros(len(at), stretch.dtype)
