"""Rank and spectrum of matrices whose rows are nearly one-hot, from their few entries.

Rows with a single entry anchor their column. Rows that sit on the same column add up to one
row of length d, so the anchored columns S stand as a diagonal block D above the remaining
rows B = [B_S, B_U]:

    A ~ [ D    0  ]        A has as many σ ≥ ε as D has columns, plus as many as
        [ B_S  B_U ]       M^{-1/2} B_U has,   M = I + B_S (D² − ε²)^{-1} B_Sᵀ

(Schur complement of AᵀA − ε², then Woodbury). Because I ≤ M ≤ diag(1 + g), with g the row
sums of |M − I|, the singular values of B_U itself decide the count unless one lies in the
window [ε, ε√(1+g)]; and B_U, free of the anchored columns, falls into tiny blocks. Where a
value does lie in the window, M is taken with its strong ties, and the weak ones, whose row
sums are at most g', leave a window of [ε√(1−g'), ε√(1+g')]; and last with all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from headwise.spectra import machine_code
from headwise.spectra.blocks import Blocks, find_blocks, singular_values, stacked
from headwise.spectra.dominant import DominantEntries
from headwise.spectra.large_entries import Packed
from headwise.spectra.machine_code import TOO_DENSE, TOO_LARGE
from headwise.spectra.sources import SAFETY, unit_roundoff

#: A column is anchored if its single-entry rows have a norm of at least this many ε.
ANCHOR_STRENGTH = 1e3

#: Ties to anchored columns of at least this size enter M in full; weaker ones are bounded.
#: A count still open after that is repeated with every tie.
STRONG_TIES = (1e-4, 0.0)

#: A component whose M is rounded by more than this (relative to M ≥ I) is not settled.
LARGEST_METRIC_ERROR = 1e-5

#: What solving with M^{1/2} may lose, as a share of δ, which then grows by it.
SOLVING_SHARE = 0.1

#: Blocks are worth solving up to this share of the work on the whole matrix.
LARGEST_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class _Remainder:
    """What is left when single-entry rows have been gathered into anchors."""

    batch: int
    shape: tuple[int, int]
    energy: np.ndarray  # squared length of each column's anchor, 0 where it has none
    rows: np.ndarray  # entries of the rows that anchor nothing
    columns: np.ndarray
    values: np.ndarray
    tied: np.ndarray  # which of the entries lie in anchored columns

    def only(self, chosen: np.ndarray) -> _Remainder:
        """Return the same with only the chosen entries."""
        kept = {name: getattr(self, name)[chosen] for name in ("rows", "columns", "values", "tied")}
        return replace(self, **kept)

    def blocks(self) -> Blocks:
        """The blocks that the entries fall into."""
        return find_blocks(self.rows, self.columns, self.values)


def count_near_hardmax(
    entries: DominantEntries, epsilon: np.ndarray, doubt: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count σ ≥ ε of each matrix: certain, possible, and the δ of the count.

    ``doubt`` bounds the distance of each matrix from the exact input and is added to δ.

    Returns:
        The three arrays. δ is infinite if dense work is cheaper.
    """
    delta = entries.moved(epsilon) + doubt
    counted = _by_machine_code(entries, (epsilon, delta))
    if counted is None:
        return count_by_arrays(entries, epsilon, doubt)
    low, high, fate = counted
    delta[fate == TOO_DENSE] = math.inf
    left = fate == TOO_LARGE
    if left.any():
        others = count_by_arrays(entries.only(left), epsilon, doubt)
        low[left], high[left], delta[left] = (part[left] for part in others)
    return low, high, delta


def _by_machine_code(
    entries: DominantEntries, thresholds: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    constants = _constants(entries.shape)
    if isinstance(entries.kept, Packed):
        return machine_code.count_packed(entries.kept, thresholds, constants)
    lists = (entries.rows, entries.columns, entries.values)
    size = (entries.batch, *entries.shape)
    return machine_code.count_entries(lists, size, thresholds, constants)


def _constants(shape: tuple[int, int]) -> np.ndarray:
    """Return the arguments of the compiled code, in its order."""
    unit = SAFETY * unit_roundoff(torch.float64)
    rounding = _block_roundings(shape) * unit_roundoff(torch.float64)
    limits = (unit, LARGEST_METRIC_ERROR, rounding, SOLVING_SHARE)
    return np.array([ANCHOR_STRENGTH, *STRONG_TIES, _most_work(shape), *limits])


def count_by_arrays(
    entries: DominantEntries, epsilon: np.ndarray, doubt: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count with array operations: slower, but without a compiler and for any block size."""
    delta = doubt + entries.moved(epsilon) + block_rounding(entries)
    rest = _remainder(entries, epsilon)
    anchors = (rest.energy > 0).reshape(entries.batch, -1).sum(-1)
    if rest.tied.all():
        return anchors, anchors.copy(), delta
    tally = _count_loose(rest, epsilon, delta)
    delta[tally.settled] *= 1 + SOLVING_SHARE
    delta[tally.heavy] = math.inf
    return anchors + tally.per_matrix(tally.low), anchors + tally.per_matrix(tally.high), delta


def spectrum_near_hardmax(entries: DominantEntries) -> np.ndarray:
    """Return all singular values of each matrix, descending, from the components of its entries."""
    n, m = entries.shape
    rest = _remainder(entries, np.zeros(entries.batch))
    anchored = np.flatnonzero(rest.energy)
    # An anchor becomes one new row, numbered after the existing rows.
    rows = np.concatenate((rest.rows, entries.batch * n + anchored))
    columns = np.concatenate((rest.columns, anchored))
    values = np.concatenate((rest.values, np.sqrt(rest.energy[anchored])))
    blocks = find_blocks(rows, columns, values)
    owner = _owner(blocks, columns // m)
    pairs = [
        (np.repeat(owner[chosen], found.shape[1]), found.ravel())
        for chosen, found in singular_values(blocks)
    ]
    return _sorted_rows(pairs, entries.batch, min(n, m))


def _sorted_rows(pairs: list[tuple[np.ndarray, np.ndarray]], batch: int, width: int) -> np.ndarray:
    """Sort values into one descending row per owner, padded with zeros."""
    spectrum = np.zeros((batch, width))
    if not pairs:
        return spectrum
    owner, value = (np.concatenate(part) for part in zip(*pairs, strict=True))
    order = np.lexsort((-value, owner))
    owner, value = owner[order], value[order]
    start = np.searchsorted(owner, np.arange(batch))
    place = np.arange(len(owner)) - start[owner]
    # Blocks are padded to squares, so zeros beyond the matrix's own size may follow.
    fits = place < width
    spectrum[owner[fits], place[fits]] = value[fits]
    return spectrum


def block_rounding(entries: DominantEntries) -> np.ndarray:
    """Bound the rounding of the small float64 factorisations, for each matrix."""
    with np.errstate(over="ignore"):  # δ becomes infinite, and dense methods count
        energy = np.bincount(entries.matrix_of_entry, entries.values**2, minlength=entries.batch)
    return _block_roundings(entries.shape) * unit_roundoff(torch.float64) * np.sqrt(energy)


def _block_roundings(shape: tuple[int, int]) -> float:
    """Return ``roundings``, in units of u, for the blocks of a matrix, a small part of it.

    Large ones are a third of its side (LARGEST_SHARE) and lose 0.34 a row; long ones are summed
    in eight parts.
    """
    return SAFETY * math.sqrt(max(shape)) + max(shape) / 8


def _remainder(entries: DominantEntries, epsilon: np.ndarray) -> _Remainder:
    """Gather single-entry rows into anchors; keep the rest."""
    n, m = entries.shape
    single = np.bincount(entries.rows, minlength=entries.batch * n)[entries.rows] == 1
    columns, values = entries.columns, entries.values
    with np.errstate(over="ignore"):
        energy = np.bincount(columns[single], values[single] ** 2, minlength=entries.batch * m)
    strong = energy.reshape(-1, m) >= ((ANCHOR_STRENGTH * epsilon) ** 2)[:, None]
    energy *= strong.reshape(-1)
    tied = energy[columns] > 0
    rest = np.flatnonzero(~(single & tied))
    parts = (part[rest] for part in (entries.rows, columns, values, tied))
    return _Remainder(entries.batch, entries.shape, energy, *parts)


@dataclass(frozen=True, eq=False)
class _Tally:
    """For each block of B_U its matrix, the certain count and the possible count."""

    blocks: Blocks
    owner: np.ndarray
    low: np.ndarray
    high: np.ndarray
    heavy: np.ndarray  # matrices whose blocks are too large for this method
    settled: np.ndarray  # matrices that were whitened

    @property
    def open(self) -> np.ndarray:
        """The blocks whose count is not settled."""
        return (self.low != self.high) & ~self.heavy[self.owner]

    def replace(
        self, component_of_block: np.ndarray, chosen: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> None:
        """Replace the counts of all blocks of the chosen components by the components' counts."""
        # Blocks without a component have the number −1, which indexes the spare place at the end.
        taken = np.zeros(component_of_block.max() + 2, dtype=bool)
        taken[chosen] = True
        members = np.flatnonzero(taken[component_of_block])
        self.low[members], self.high[members] = 0, 0
        # Any block of a component can hold its count: the last one written does.
        bearer = np.empty(len(taken), dtype=np.int64)
        bearer[component_of_block[members]] = members
        self.low[bearer[chosen]], self.high[bearer[chosen]] = low, high

    def per_matrix(self, count: np.ndarray) -> np.ndarray:
        """Sum the counts of the blocks over each matrix."""
        return np.bincount(self.owner, count, minlength=len(self.heavy)).astype(np.int64)


def _count_loose(rest: _Remainder, epsilon: np.ndarray, delta: np.ndarray) -> _Tally:
    """Count the blocks of B_U by themselves, then with their ties if needed."""
    free = rest.only(~rest.tied)
    blocks = free.blocks()
    owner = _owner(blocks, free.rows // rest.shape[0])
    heavy = np.bincount(owner, blocks.work, minlength=rest.batch) > _most_work(rest.shape)
    nothing = np.zeros(len(blocks), dtype=np.int64)
    tally = _Tally(blocks, owner, nothing, nothing.copy(), heavy, heavy & False)
    window = np.zeros(len(blocks))
    np.maximum.at(window, blocks.of_entry, _slack(rest, epsilon, math.inf)[free.rows])
    sure = np.sqrt(1 + window) * (epsilon + delta)[owner]
    possible = (epsilon - delta)[owner]
    for chosen, values in singular_values(blocks, ~heavy[owner]):
        tally.low[chosen] = (values >= sure[chosen, None]).sum(-1)
        tally.high[chosen] = _at_most(values >= possible[chosen, None], blocks.rank[chosen])
    for strong in STRONG_TIES:
        if tally.open.any():
            _settle(rest, tally, (epsilon, delta), strong)
    return tally


def _most_work(shape: tuple[int, int]) -> float:
    """Return the block work beyond which dense methods are cheaper."""
    n, m = shape
    return LARGEST_SHARE * n * m * min(n, m)


def _slack(rest: _Remainder, epsilon: np.ndarray, strong: float) -> np.ndarray:
    """Return, for each row, the absolute row sum of M without its strong ties."""
    n, m = rest.shape
    tied = rest.only(rest.tied)
    at = tied.columns
    pull = np.abs(tied.values) / np.sqrt(rest.energy[at] - epsilon[at // m] ** 2)
    held = np.where(np.abs(tied.values) >= strong * np.sqrt(rest.energy[at]), pull, 0)
    crowd = np.bincount(at, pull, minlength=rest.batch * m)[at]
    held_crowd = np.bincount(at, held, minlength=rest.batch * m)[at]
    beyond = pull * crowd - held * held_crowd
    return np.bincount(tied.rows, beyond, minlength=rest.batch * n)


def _settle(
    rest: _Remainder, tally: _Tally, thresholds: tuple[np.ndarray, np.ndarray], strong: float
) -> None:
    """Count open blocks again with the strong ties of M, and replace their counts in the tally."""
    epsilon, delta = thresholds
    open_matrix = np.zeros(rest.batch, dtype=bool)
    open_matrix[tally.owner[tally.open]] = True
    doubtful = open_matrix[rest.rows // rest.shape[0]]
    part = rest.only(doubtful)
    held = ~part.tied | (np.abs(part.values) >= strong * np.sqrt(part.energy[part.columns]))
    slack = _slack(part, epsilon, strong)
    part = part.only(held)
    components = part.blocks()
    component_of_block = np.full(len(tally.blocks), -1)
    # Loose entries stand in the same order in ``rest`` and in the blocks.
    loose = tally.blocks.of_entry[doubtful[~rest.tied]]
    component_of_block[loose] = components.of_entry[~part.tied]
    owner = _owner(components, part.rows // rest.shape[0])
    open_ = np.unique(component_of_block[tally.open])
    heavy = components.work[open_] > _most_work(rest.shape)
    tally.heavy[owner[open_[heavy]]] = True
    window = np.zeros(len(components))
    np.maximum.at(window, components.of_entry, slack[part.rows])
    for chosen, values, rank, (error, slip) in _whitened_values(
        part, components, open_[~heavy], epsilon[owner]
    ):
        beyond, mine = window[chosen] + error, owner[chosen]
        share = np.where(error > 0, SOLVING_SHARE * delta[mine], 0.0)  # without ties M is I
        sure = np.sqrt(1 + beyond) * ((epsilon + delta)[mine] + share)
        possible = np.sqrt(np.maximum(1 - beyond, 0)) * ((epsilon - delta)[mine] - share)
        low = (values >= sure[:, None]).sum(-1)
        high = _at_most(values >= possible[:, None], rank)
        tally.replace(component_of_block, chosen, low, high)
        tally.settled[mine[error > 0]] = True
        tally.heavy[mine[(error > LARGEST_METRIC_ERROR) | ((error > 0) & ~(slip <= share))]] = True


def _at_most(counted: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Cap counts so that the zeros of padded blocks are not counted."""
    return np.minimum(counted.sum(-1), rank)


def _whitened_values(
    rest: _Remainder, components: Blocks, wanted: np.ndarray, epsilon: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]]:
    """Yield components, σ of M^{-1/2} B_U, how many, and the roundings of M ≥ I and of solving."""
    for chosen in components.by_size(wanted):
        dense = stacked(components, chosen)
        strength = stacked(components, chosen, rest.energy[rest.columns]).max(1)
        anchored = strength > 0
        scale = np.sqrt(np.where(anchored, strength - epsilon[chosen, None] ** 2, 1.0))
        ties = np.where(anchored, 1 / scale, 0.0)[:, None] * dense
        metric = ties @ ties.transpose(0, 2, 1)
        metric[:, range(dense.shape[1]), range(dense.shape[1])] += 1
        height, loose = components.height[chosen], components.width[chosen] - anchored.sum(-1)
        error = _metric_error(np.where(anchored.any(-1), (ties**2).sum((1, 2)) + height, 0), height)
        metric[error > LARGEST_METRIC_ERROR] = np.eye(dense.shape[1])
        free = np.where(anchored[:, None], 0.0, dense)
        root = np.linalg.cholesky(metric)
        both = (torch.from_numpy(part) for part in (root, free))
        whitened = torch.linalg.solve_triangular(*both, upper=False).numpy()
        values = np.linalg.svd(whitened, compute_uv=False)
        yield chosen, values, np.minimum(height, loose), (error, _solving_error(root, whitened))


def _metric_error(trace: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Bound the rounding of Cholesky's factorisation of a matrix M ≥ I of this trace."""
    return SAFETY * unit_roundoff(torch.float64) * np.sqrt(height) * trace


def _solving_error(root: np.ndarray, solved: np.ndarray) -> np.ndarray:
    """Bound how far solving L·Y = B_U can move a σ: by the rounding of |L||Y|, as M ≥ I."""
    sizes = (np.linalg.norm(root, axis=-2) * np.linalg.norm(solved, axis=-1)).sum(-1)
    terms = math.sqrt(root.shape[-1]) + root.shape[-1] / SAFETY
    return SAFETY * unit_roundoff(torch.float64) * terms * sizes


def _owner(blocks: Blocks, matrix_of_entry: np.ndarray) -> np.ndarray:
    """Return the matrix of each block."""
    owner = np.empty(len(blocks), dtype=np.int64)
    owner[blocks.of_entry] = matrix_of_entry
    return owner
