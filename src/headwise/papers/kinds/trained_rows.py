"""Rows of training runs as what exhibits show: pooled over seeds, as curves, as cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from headwise.papers.comparison import FLOOR, SHARE, Cell
from headwise.report import Curve, Line
from headwise.runs import Row

Place = float | int


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


def seeds_by(rows: Iterable[Row], place: str, field: str) -> dict[Place, OverSeeds]:
    """A loss for each value of a field, in rising order; places where all diverged are left out."""
    rows = list(rows)
    found = {
        value: over_seeds([row for row in rows if row[place] == value], field)
        for value in sorted({row[place] for row in rows})
    }
    return {value: one for value, one in found.items() if one is not None}


def trained_curve(
    label: str, points: Mapping[Place, OverSeeds], printed: Mapping[Place, float] | None = None
) -> Curve:
    """Mean over seeds with a band of one standard deviation, and the least of them dotted."""
    places = tuple(points)
    return Curve(
        label,
        Line(places, tuple(point.mean for point in points.values())),
        # On a logarithmic axis a band must stay above zero.
        spread=tuple(min(point.spread, 0.9 * point.mean) for point in points.values()),
        printed=Line(tuple(printed or {}), tuple((printed or {}).values())),
        least=Line(places, tuple(point.least for point in points.values())),
    )


def trained_cell(name: str, measured: OverSeeds, printed: float) -> Cell:
    """The printed least loss of several runs compared with the least of ours."""
    floor, least = min(FLOOR, SHARE * printed), f"least of {measured.count} seeds"
    # How well print was read off a figure is not added: the rule allows for standard errors alone.
    return Cell(name, printed, measured.least, measured.stderr, floor=floor, statistic=least)


def diverged_remark(rows: Iterable[Row]) -> tuple[str, ...]:
    """Which runs diverged, in words; nothing if none did."""
    rows = list(rows)
    fallen = sum(row["diverged_at"] is not None for row in rows)
    if not fallen:
        return ()
    return (f"{fallen} of {len(rows)} runs diverged; they count in no mean and no minimum.",)
