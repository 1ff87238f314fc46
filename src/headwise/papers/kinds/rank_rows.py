"""Rows of measured ranks as what exhibits show: pooled over seeds, as curves, as cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headwise.papers.comparison import STANDARD_ERRORS, Cell
from headwise.papers.exhibit import grouped
from headwise.report import Curve, Line
from headwise.runs import Row

#: A value on the axis of a figure.
Coordinate = float | int


@dataclass(frozen=True)
class Pooled:
    """Rank over length of many matrices: the rows of several seeds taken together.

    >>> row = {"mean": 0.5, "std": 0.1, "count": 10, "stderr": 0.02}
    >>> found = pooled([row, row | {"mean": 0.7}])
    >>> found.mean, found.count, found.runs, round(found.run_stderr, 9)
    (0.6, 20, 2, 0.02)
    """

    mean: float
    std: float
    count: int
    stderr: float
    runs: int = 1

    @property
    def run_stderr(self) -> float:
        """The standard error that one of the runs has by itself."""
        return self.stderr * math.sqrt(self.runs)


def pooled(rows: Sequence[Row]) -> Pooled:
    """Rows of one setting, drawn with different seeds, as one.

    >>> pooled([{"mean": 0.5, "std": 0.1, "count": 10, "stderr": 0.02}]).stderr
    0.02
    """
    total = sum(row["count"] for row in rows)
    shares = [row["count"] / total for row in rows]
    mean = sum(share * row["mean"] for share, row in zip(shares, rows, strict=True))
    square = sum(
        share * (row["std"] ** 2 + (row["mean"] - mean) ** 2)
        for share, row in zip(shares, rows, strict=True)
    )
    error = math.hypot(*(share * row["stderr"] for share, row in zip(shares, rows, strict=True)))
    return Pooled(mean, math.sqrt(square), total, error, runs=len(rows))


def pooled_by(rows: Iterable[Row], field: str) -> dict[Coordinate, Pooled]:
    """Rows pooled for each value of a field, in rising order of that value.

    >>> row = {"mean": 0.5, "std": 0.1, "count": 10, "stderr": 0.02}
    >>> list(pooled_by([row | {"head_dim": 4}, row | {"head_dim": 2}], "head_dim"))
    [2, 4]
    """
    return {value: pooled(own) for value, own in sorted(grouped(rows, field).items())}


def rank_curve(
    label: str,
    points: Mapping[Coordinate, Pooled],
    printed: Mapping[Coordinate, float] | None = None,
    law: Mapping[Coordinate, float] | None = None,
) -> Curve:
    """A curve of mean ranks with a band of one standard deviation of single matrices.

    >>> rank_curve("100 tokens", {2: Pooled(0.1, 0.02, 32, 0.001)}).spread
    (0.02,)
    """
    return Curve(
        label,
        Line.of({x: point.mean for x, point in points.items()}),
        spread=tuple(point.std for point in points.values()),
        printed=Line.of(printed or {}),
        law=Line.of(law or {}),
    )


def rank_cell(
    name: str, measured: Pooled, printed: float, printed_std: float | None = None
) -> Cell:
    """A published mean compared with a measured one.

    The paper's runs have as many matrices as one of ours, so the standard error of a published
    mean is taken as that of one such run, scaled by the ratio of the published and the measured
    spread; without a published spread, as ours.

    >>> found = Pooled(0.600, 0.03, 64, 0.002)
    >>> rank_cell("d_h 64", found, 0.610, printed_std=0.06).printed_stderr
    0.004
    """
    ratio = 1.0 if printed_std is None or measured.std == 0 else printed_std / measured.std
    return Cell(name, printed, measured.mean, measured.stderr, measured.run_stderr * ratio)


def spread_remark(cells: Iterable[tuple[str, float, Pooled]]) -> tuple[str, ...]:
    """Name published standard deviations that are far from ours; none is compared as a cell.

    >>> (told,) = spread_remark([("d_h 2", 0.01, Pooled(0.6, 0.03, 32, 0.005))])
    >>> told.partition(": ")[2]
    'd_h 2 (0.01, ours 0.030).'
    """
    told = [
        f"{name} ({std:g}, ours {found.std:.3f})"
        for name, std, found in cells
        if found.std > 0 and not 1 / 1.5 <= std / found.std <= 1.5
    ]
    if not told:
        return ()
    words = "Published standard deviations of single matrices more than 1.5 times ours, or below"
    return (f"{words} ours over 1.5: {'; '.join(told)}.",)


def grows(points: Mapping[Coordinate, Pooled]) -> bool:
    """Whether means rise along the axis: no step falls by more than its noise, all do rise.

    Noise is ``STANDARD_ERRORS`` combined standard errors; from the first point to the last
    means must rise by more than that.

    >>> low, high = Pooled(0.1, 0.02, 32, 0.001), Pooled(0.2, 0.02, 32, 0.001)
    >>> grows({2: low, 4: high}), grows({2: high, 4: low}), grows({2: low, 4: low})
    (True, False, False)
    """
    found = list(points.values())
    steps = [_rise(one, two) for one, two in pairwise(found)]
    return all(step >= -STANDARD_ERRORS for step in steps) and (
        _rise(found[0], found[-1]) > STANDARD_ERRORS
    )


def falls(points: Mapping[Coordinate, Pooled]) -> bool:
    """Whether means fall along the axis, by the same rule."""
    return grows(dict(reversed(list(points.items()))))


def widest(curves: Iterable[Mapping[Coordinate, Pooled]]) -> float:
    """The largest distance between the means of several curves at any one point of the axis.

    >>> one, two = Pooled(0.1, 0.02, 32, 0.001), Pooled(0.3, 0.02, 32, 0.001)
    >>> round(widest([{2: one}, {2: two}]), 9)
    0.2
    """
    curves = list(curves)
    shared = set.intersection(*(set(curve) for curve in curves))
    means = [[curve[x].mean for curve in curves] for x in shared]
    return max(max(row) - min(row) for row in means)


def _rise(one: Pooled, two: Pooled) -> float:
    """The difference of two means in combined standard errors."""
    difference, noise = two.mean - one.mean, math.hypot(one.stderr, two.stderr)
    if noise == 0:
        return math.copysign(math.inf, difference) if difference else 0.0
    return difference / noise
