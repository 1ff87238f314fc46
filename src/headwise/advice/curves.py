"""Rank curves: rank / length against head dimension, with a band, and where they saturate."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from headwise.mask_names import MaskName
from headwise.report.results import short_repr
from headwise.shapes import Float
from headwise.theory.expected import UPPER_BOUND, ready_ratio
from headwise.theory.law_formula import ACCURATE_FROM, barrier_ratio
from headwise.theory.scaling import saturation_row

#: How weights were drawn: the model's default initialisation, N(0, 1), or no weights: the law.
Start = Literal["model", "paper", "law"]

#: Goal for the half width of the confidence band.
HALF_WIDTH = 0.03

#: The largest head dimension for which the law is evaluated.
MOST_LAW_DIM = 65_536


@dataclass(frozen=True)
class RankCurve:
    """Mean rank / length at each head dimension, with its confidence band.

    Attributes:
        start: How the weights were drawn.
        head_dims: Head dimensions, ascending.
        mean: Mean rank / length at each.
        half_width: The mean of twenty more seeds lies within this distance (95 % confidence).
        seeds: Number of seeds; 0 for the law.
        plateau: Rank / length that the curve tends to for large head dimensions.
        plateau_from: How the plateau is known.
        mask: The mask of attention.
        below_top_half_width: Where the band is wide, how well differences to the highest point
            are known: within a seed they share their sequences.
        independent_plateau: The plateau if rows picked independently, as in the rank paper.
        length: Number of tokens of the law, which is known at every rank; None if measured.

    >>> curve = RankCurve("model", (1, 2, 4), (0.2, 0.7, 0.9), (0.0, 0.0, 0.0), 8, 0.9, "measured")
    >>> round(curve.at(3), 3)
    0.817
    """

    start: Start
    head_dims: tuple[int, ...]
    mean: tuple[float, ...]
    half_width: tuple[float, ...]
    seeds: int
    plateau: float
    plateau_from: str
    mask: MaskName = "none"
    below_top_half_width: tuple[float, ...] = ()
    independent_plateau: float | None = None
    length: int | None = None

    __repr__ = short_repr

    @property
    def name(self) -> str:
        """The start, with the mask if there is one."""
        return self.start if self.mask == "none" else f"{self.start}, {self.mask}"

    def at(self, rank: int) -> float:
        """The curve at any rank: the law itself, or linear in the logarithm between points."""
        if self.length is not None:
            return ready_ratio(self.length, min(rank, self.head_dims[-1]), self.mask).ratio
        return between(self.head_dims, self.mean, rank)

    def share(self, rank: int) -> float:
        """The share of the plateau that this rank reaches."""
        return min(1.0, self.at(rank) / self.plateau)


def between(dims: Sequence[int], values: Sequence[float], rank: int) -> float:
    """Interpolate linearly in the logarithm of the rank; flat outside."""
    if rank <= dims[0]:
        return values[0]
    for low, high, before, after in zip(dims, dims[1:], values, values[1:], strict=False):
        if rank <= high:
            share = math.log(rank / low) / math.log(high / low)
            return before + share * (after - before)
    return values[-1]


def head_dim_grid(most: int) -> tuple[int, ...]:
    """Powers of two and the steps between, up to ``most``."""
    powers = [2**k for k in range(1 + int(math.log2(most)))]
    between = [3 * 2**k for k in range(int(math.log2(most))) if 3 * 2**k <= most]
    return tuple(sorted({*powers, *between, most}))


def law_curve(length: int, width: int, mask: MaskName = "none") -> RankCurve:
    """E[rank]/n of random heads on orthonormal tokens, up to the width."""
    dims = head_dim_grid(min(width, MOST_LAW_DIM))
    return RankCurve(
        start="law",
        head_dims=dims,
        mean=tuple(ready_ratio(length, dim, mask).ratio for dim in dims),
        half_width=(0.0,) * len(dims),
        seeds=0,
        plateau=barrier_ratio(length, mask),
        plateau_from="theory: (n+1) / 2n" if mask == "causal" else "theory: 1 − (1−1/n)ⁿ",
        mask=mask,
        length=length,
    )


def bounded_dims(length: int, curve: RankCurve) -> tuple[int, ...]:
    """Head dimensions at which the law is only an upper bound.

    >>> bounded_dims(10**9, law_curve(10**9, 16)), bounded_dims(512, law_curve(512, 64))
    ((3, 4, 6, 8, 12), ())
    """
    low = [dim for dim in curve.head_dims if dim < ACCURATE_FROM]
    return tuple(dim for dim in low if ready_ratio(length, dim, curve.mask).method == UPPER_BOUND)


def paper_saturation(curve: RankCurve) -> int | None:
    """The rank paper's rule: the head dimension before the first gain of about 0.01.

    It depends on the grid, so it is read on doublings, the nearest to the paper's own. None if
    the curve does not saturate.

    >>> dims, means = (1, 2, 3, 4, 8), (0.2, 0.5, 0.52, 0.6, 0.605)
    >>> paper_saturation(RankCurve("paper", dims, means, (0.0,) * 5, 8, 0.6, "measured"))
    4
    """
    doublings = [
        (dim, mean)
        for dim, mean in zip(curve.head_dims, curve.mean, strict=True)
        if dim & (dim - 1) == 0
    ]
    # A curve that starts flat has not saturated there: the rule holds after the steepest rise.
    rises = [after[1] - before[1] for before, after in itertools.pairwise(doublings)]
    if not rises:
        return None
    dims, means = zip(*doublings[rises.index(max(rises)) :], strict=True)
    return saturation_row(dims, means)


def our_saturation(curve: RankCurve, slack: float) -> int | None:
    """The smallest measured rank whose lower confidence limit is within ``slack`` of the plateau.

    ``slack`` is a share of the plateau. None if no measured rank gets there.

    >>> curve = RankCurve("model", (1, 2, 4), (0.2, 0.85, 0.95), (0.0, 0.0, 0.01), 8, 1.0, "")
    >>> our_saturation(curve, 0.1)
    4
    """
    goal = (1 - slack) * curve.plateau
    limits = zip(curve.head_dims, _lower_limits(curve), strict=True)
    return next((dim for dim, limit in limits if limit >= goal), None)


def saturated_from(curve: RankCurve, slack: float) -> int | None:
    """The smallest rank within ``slack`` of the plateau: by the law, or between measured ones."""
    found, goal = our_saturation(curve, slack), (1 - slack) * curve.plateau
    if found is None:
        return None
    limits = _lower_limits(curve)
    below = max((dim for dim in curve.head_dims if dim < found), default=0)
    ranks = range(below + 1, found)
    if curve.length is not None:
        return below + 1 + bisect_left(ranks, goal, key=curve.at)
    enough = (rank for rank in ranks if between(curve.head_dims, limits, rank) >= goal)
    return next(enough, found)


def _lower_limits(curve: RankCurve) -> list[float]:
    """Where the band is wide, the limits of differences to the top: they are known better."""
    halves = curve.below_top_half_width or curve.half_width
    return [mean - half for mean, half in zip(curve.mean, halves, strict=True)]


def point_before(curve: RankCurve, rank: int) -> tuple[int, float, float] | None:
    """The rank measured before this one, its mean and the half width that its limit has."""
    halves = curve.below_top_half_width or curve.half_width
    points = [*zip(curve.head_dims, curve.mean, halves, strict=True)]
    return next((point for point in reversed(points) if point[0] < rank), None)


#: Seeds before the band is checked for the first time, seeds added after each check, the most.
FIRST, MORE, MOST = 8, 4, 64

#: After ASKED seeds, check whether MOST seeds would do. If not, each seed takes more sequences,
#: and at most MOST_LARGE seeds are drawn: about twelve are the cheapest way to a narrow band.
ASKED, MOST_LARGE = 16, 24

#: The band is where the mean of this many further seeds lies.
FURTHER = 20

#: Sequences per seed; attention entries per seed that keep long sequences quick; and the most
#: entries for sequences that differ greatly.
SEQUENCES, ENTRIES, MOST_ENTRIES = 32, 2**16, 2**19

#: From numbers of seeds to one row of ratios for each.
Draw = Callable[[range], Iterable[Tensor]]


def narrow_rows(drawing: Callable[[int], Draw], length: int) -> Float[Tensor, "seeds dims"]:
    """Draw seeds until the band is narrow, with more sequences each where they differ greatly."""
    few = sequences_per_seed(length)
    rows = settled_rows(drawing(few), length, ask=True)
    half = float(band(rows, length)[1].max())
    if half <= HALF_WIDTH:
        return rows
    return settled_rows(drawing(more_sequences(half, length)), length, most=MOST_LARGE)


def more_sequences(half: float, length: int) -> int:
    """How many sequences each seed takes if the usual number leaves a band this wide.

    >>> more_sequences(0.06, 128), more_sequences(0.6, 128)
    (20, 32)
    """
    few = sequences_per_seed(length)
    # The band shrinks with the root of the sequences; somewhat more than that, to be sure.
    wanted = math.ceil(1.2 * few * (half / HALF_WIDTH) ** 2)
    return min(wanted, max(few, MOST_ENTRIES // length**2))


def half_widths_below_the_top(
    ratios: Float[Tensor, "seeds dims"], length: int
) -> tuple[float, ...]:
    """How well each difference to the highest point is known; empty where the band is narrow.

    Heads of one seed share sequences and columns, so where sequences differ greatly a
    difference is known far better than a rank.
    """
    if float(band(ratios, length)[1].max()) <= HALF_WIDTH:
        return ()
    top = int(ratios.mean(0).argmax())
    return tuple(band(ratios - ratios[:, top : top + 1], length)[1].tolist())


def settled_rows(
    drawn: Draw, length: int, most: int = MOST, ask: bool = False
) -> Float[Tensor, "seeds dims"]:
    """Draw seeds until the band is narrow enough, or ``most`` are drawn.

    With ``ask``, stop early if ``most`` seeds would not be enough by far.

    >>> ratios = torch.rand(64, 1, generator=torch.Generator().manual_seed(0)).double() / 5
    >>> len(settled_rows(lambda numbers: ratios[numbers.start : numbers.stop], length=16))
    60
    >>> wide = torch.rand(64, 1, generator=torch.Generator().manual_seed(0)).double()
    >>> drawn = lambda numbers: wide[numbers.start : numbers.stop]
    >>> [len(settled_rows(drawn, 16, ask=ask)) for ask in (True, False)]
    [16, 64]
    """
    rows: list[Tensor] = []
    wanted = FIRST
    while True:
        rows += drawn(range(len(rows), wanted))
        half = float(band(torch.stack(rows), length)[1].max())
        hopeless = ask and wanted == ASKED and half * shrinking(ASKED, most) > 1.25 * HALF_WIDTH
        if half <= HALF_WIDTH or wanted >= most or hopeless:
            return torch.stack(rows)
        wanted += MORE


def shrinking(seeds: int, more: int) -> float:
    """By what factor the band shrinks from ``seeds`` seeds to ``more`` of the same spread.

    >>> round(shrinking(16, 64), 2)
    0.72
    """
    return _reach(more) / _reach(seeds)


def _reach(seeds: int) -> float:
    """The half width of the band in units of the spread of one seed."""
    from scipy import special

    quantile = float(special.stdtrit(seeds - 1, 0.975))
    return quantile * math.sqrt(1 / seeds + 1 / FURTHER)


def band(
    ratios: Float[Tensor, "seeds dims"], length: int
) -> tuple[Float[Tensor, " dims"], Float[Tensor, " dims"]]:
    """Means over seeds, and the half width within which the mean of 20 more lies (95 %).

    A spread of zero is not certainty: half a singular value in ``length`` always stays open.

    >>> mean, half = band(torch.tensor([[0.4], [0.6], [0.5]]).double(), 100)
    >>> round(float(mean), 3), round(float(half), 3)
    (0.5, 0.266)
    """
    least = 0.5 / length / sequences_per_seed(length)
    return ratios.mean(0), torch.clamp(_reach(ratios.shape[0]) * ratios.std(0), min=least)


def curve_of_ratios(
    ratios: Float[Tensor, "seeds dims"],
    head_dims: tuple[int, ...],
    length: int,
    start: Start = "model",
    mask: MaskName = "none",
) -> RankCurve:
    """Make the curve of measured ratios, which has its plateau at the highest point.

    >>> ratios = torch.tensor([[0.4, 0.9], [0.5, 0.9], [0.6, 0.9]]).double()
    >>> our_saturation(curve_of_ratios(ratios, (2, 4), length=100), 0.1)
    4
    """
    mean, half = band(ratios, length)
    return RankCurve(
        start=start,
        head_dims=head_dims,
        mean=tuple(mean.tolist()),
        half_width=tuple(half.tolist()),
        seeds=len(ratios),
        plateau=float(mean.max()),
        plateau_from="largest measured",
        mask=mask,
        below_top_half_width=half_widths_below_the_top(ratios, length),
    )


def sequences_per_seed(length: int) -> int:
    """How many sequences each seed averages over."""
    return min(SEQUENCES, max(1, ENTRIES // length**2))
