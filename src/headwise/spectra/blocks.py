"""Split sparse matrices into blocks that share no row and no column, and solve each block.

The blocks of a whole batch are found in one graph and solved together, grouped by size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

#: Blocks are solved together up to these sizes, and one by one beyond the last.
SIZE_CLASSES = np.array([2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64])


@dataclass(frozen=True, eq=False)
class Blocks:
    """Entries sorted into blocks.

    ``of_entry`` numbers the block of each entry, ``row`` and ``column`` place it inside the block,
    and ``height`` and ``width`` are the sizes of the blocks.
    """

    of_entry: np.ndarray
    row: np.ndarray
    column: np.ndarray
    values: np.ndarray
    height: np.ndarray
    width: np.ndarray

    def __len__(self) -> int:
        return len(self.height)

    def by_size(self, wanted: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the wanted blocks in groups of similar size; each large block is its own group."""
        side = np.maximum(self.height, self.width)[wanted]
        group = np.searchsorted(SIZE_CLASSES, side)
        for number in np.unique(group):
            members = wanted[group == number]
            yield from members[:, None] if number == len(SIZE_CLASSES) else (members,)

    @property
    def rank(self) -> np.ndarray:
        """Number of singular values of each block: its smaller side."""
        return np.minimum(self.height, self.width)

    @property
    def work(self) -> np.ndarray:
        """Cost of decomposing each block, up to a constant factor."""
        return self.height * self.width * self.rank


def find_blocks(rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Blocks:
    """Find the connected components of the bipartite graph; entries come row by row."""
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    row = np.repeat(np.arange(len(first)), np.diff(first, append=len(rows)))
    names, column = np.unique(columns, return_inverse=True)
    n, m = len(first), len(names)
    # In compressed rows: nodes 0…n−1 are rows with edges, n…n+m−1 are columns without.
    start = np.concatenate((first, np.full(m + 1, len(rows)))).astype(np.int32)
    edges = csr_array((np.ones(len(rows)), (n + column).astype(np.int32), start), (n + m, n + m))
    how_many, label = connected_components(edges, directed=False)
    row_place, height = _place_within(label[:n], how_many)
    column_place, width = _place_within(label[n:], how_many)
    return Blocks(label[row], row_place[row], column_place[column], values, height, width)


def _place_within(label: np.ndarray, how_many: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each member's index inside its block, and the size of each block."""
    size = np.bincount(label, minlength=how_many)
    order = np.argsort(label, kind="stable")
    place = np.empty(len(label), dtype=np.int64)
    place[order] = np.arange(len(label)) - np.repeat(np.cumsum(size) - size, size)
    return place, size


def singular_values(
    blocks: Blocks, wanted: np.ndarray | bool = True
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs (indices of wanted blocks, their singular values), one pair per size class."""
    thin = (blocks.rank == 1) & wanted
    if thin.any():
        energy = np.bincount(blocks.of_entry, blocks.values**2, minlength=len(blocks))
        yield np.flatnonzero(thin), np.sqrt(energy[thin])[:, None]
    for chosen in blocks.by_size(np.flatnonzero(~thin & wanted)):
        yield chosen, np.linalg.svd(stacked(blocks, chosen), compute_uv=False)


def stacked(blocks: Blocks, chosen: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
    """Stack the chosen blocks, padded with zeros; ``values`` may replace those of the blocks."""
    slot = np.full(len(blocks), -1)
    slot[chosen] = np.arange(len(chosen))
    at = slot[blocks.of_entry]
    mine = np.flatnonzero(at >= 0)
    dense = np.zeros((len(chosen), blocks.height[chosen].max(), blocks.width[chosen].max()))
    filling = blocks.values if values is None else values
    dense[at[mine], blocks.row[mine], blocks.column[mine]] = filling[mine]
    return dense
