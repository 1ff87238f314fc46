"""Draw seeds and sequences until the confidence band of a rank curve is narrow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from headwise.advice.curves.curve import HALF_WIDTH
from headwise.shapes import Float

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


def sequences_per_seed(length: int) -> int:
    """How many sequences each seed averages over."""
    return min(SEQUENCES, max(1, ENTRIES // length**2))
