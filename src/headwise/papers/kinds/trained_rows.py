"""Rows of training runs as what exhibits show: pooled over seeds, as curves, as cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import mean, stdev

from headwise.papers.comparison import FLOOR, SHARE, Cell
from headwise.papers.exhibit import grouped
from headwise.papers.kinds.rank_rows import Coordinate
from headwise.report import Curve, Line
from headwise.runs import Row


@dataclass(frozen=True)
class OverSeeds:
    """A loss of several seeds: mean, spread and least; how many, and how many diverged."""

    mean: float
    spread: float
    least: float
    count: int
    diverged: int = 0

    @property
    def stderr(self) -> float:
        """The standard error of the mean over seeds, taken for that of the least too."""
        return self.spread / math.sqrt(self.count)


def survivors(rows: Iterable[Row]) -> list[Row]:
    """The rows of runs that did not diverge.

    A run that did keeps the best training loss it had before, and the frozen parameters its angles
    are taken of; neither may count.
    """
    return [row for row in rows if row.get("diverged_at") is None]


def over_seeds(rows: Sequence[Row], field: str) -> OverSeeds | None:
    """The rows of one setting as one; None if every seed diverged."""
    values = [row[field] for row in survivors(rows) if row.get(field) is not None]
    if not values:
        return None
    spread = stdev(values) if len(values) > 1 else 0.0
    return OverSeeds(mean(values), spread, min(values), len(values), len(rows) - len(values))


def seeds_by(rows: Iterable[Row], by: str, field: str) -> dict[Coordinate, OverSeeds]:
    """A loss for each value of a field, in rising order; without values at which all diverged."""
    found = {value: over_seeds(own, field) for value, own in sorted(grouped(rows, by).items())}
    return {value: one for value, one in found.items() if one is not None}


def trained_curve(
    label: str,
    points: Mapping[Coordinate, OverSeeds],
    printed: Mapping[Coordinate, float] | None = None,
) -> Curve:
    """Mean over seeds with a band of one standard deviation, and the least of them dotted."""
    return Curve(
        label,
        Line.of({x: point.mean for x, point in points.items()}),
        # On a logarithmic axis a band must stay above zero.
        spread=tuple(min(point.spread, 0.9 * point.mean) for point in points.values()),
        printed=Line.of(printed or {}),
        least=Line.of({x: point.least for x, point in points.items()}),
    )


def trained_cell(name: str, measured: OverSeeds, printed: float) -> Cell:
    """The published least loss of several runs compared with the least of ours."""
    floor, least = min(FLOOR, SHARE * printed), f"least of {measured.count} seeds"
    # The error of reading the published value off a figure is not added: the rule allows for
    # standard errors alone.
    return Cell(name, printed, measured.least, measured.stderr, floor=floor, statistic=least)


#: A run that loses more than this share of its best validation accuracy is unstable.
FALL = 0.2


def fall(accuracies: Sequence[float | None]) -> float:
    """Return the largest loss of accuracy while training, as a share of the best before.

    >>> fall([0.2, 0.5, 0.4, 0.6])
    0.2
    """
    known = [own for own in accuracies if own is not None]
    best = accumulate(known, max)
    losses = (1 - now / top for now, top in zip(known, best, strict=True) if top > 0)
    return max((round(loss, 9) for loss in losses), default=0.0)


def unstable(rows: Sequence[Row]) -> str:
    """Say in how many runs training is unstable; empty if in none.

    >>> unstable([{"curve_accuracy": [0.2, 0.5, 0.3]}, {"curve_accuracy": [0.2, 0.5, 0.6]}])
    'training is unstable in 1 of 2 runs'
    """
    lost = sum(fall(row["curve_accuracy"]) > FALL for row in rows)
    return f"training is unstable in {lost} of {len(rows)} runs" if lost else ""


def diverged_remark(rows: Iterable[Row]) -> tuple[str, ...]:
    """Which runs diverged, in words; nothing if none did."""
    rows = list(rows)
    fallen = sum(row["diverged_at"] is not None for row in rows)
    if not fallen:
        return ()
    return (f"{fallen} of {len(rows)} runs diverged; they count in no mean and no minimum.",)
