"""What exhibits against the head dimension share: which specs they ask, and how they look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwise.experiments.measure_rank import MeasureRank
from headwise.experiments.predict_rank import PredictRank
from headwise.papers.comparison import Cell
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, grid, grouped
from headwise.papers.kinds.rank_rows import (
    Coordinate,
    Pooled,
    pooled_by,
    rank_cell,
    rank_curve,
    spread_remark,
    widest,
)
from headwise.papers.printed import printed_table
from headwise.report import Curve, Panel, Table
from headwise.runs import Spec

#: The head dimensions of the rank paper's Figure 1, and of what is drawn like it.
HEAD_DIMS = (2, 4, 8, 16, 32, 64, 96, 192)

#: From this head dimension on a layer has few heads, and more seeds make the mean precise.
FEW_HEADS_FROM = 16
SEEDS = (0, 1, 2, 3)

#: Where rank levels off for wide heads and long inputs.
BARRIER = 1 - math.exp(-1)

#: A level within this of another counts as the same: a look at a figure tells no more.
NEAR = 0.05

#: Doublings between two names on the axis, so that they do not run into each other.
NAME_ROOM = 0.35

#: Said of what is run smaller than in the paper.
SMALLER = "Smaller than in the paper, so nothing is compared with the paper."


def rank_sweep(
    fixed: Mapping[str, Any], head_dims: Sequence[int] = HEAD_DIMS, **axes: Sequence[Any]
) -> list[Spec]:
    """Measured ranks for every combination: one seed for narrow heads, several for wide ones."""
    wide = [r for r in head_dims if r >= FEW_HEADS_FROM]
    # Neighbours differ in the head dimension alone, and share what their first layer reads.
    return [
        spec
        for seed in SEEDS
        for spec in grid(
            MeasureRank,
            {**fixed, "seed": seed},
            **axes,
            head_dim=wide if seed else head_dims,
        )
    ]


def law_sweep(
    fixed: Mapping[str, Any], head_dims: Sequence[int] = HEAD_DIMS, **axes: Sequence[Any]
) -> list[Spec]:
    """Predicted ranks for every combination."""
    return grid(PredictRank, fixed, **axes, head_dim=head_dims)


def law(answers: Answers, **wanted: Any) -> dict[Coordinate, float]:
    """The predicted rank over length of hardmax at each head dimension."""
    rows = answers.rows(kind="predict_rank", **wanted)
    return {row["head_dim"]: row["ratio"] for row in rows}


def points_by(answers: Answers, field: str) -> dict[Any, dict[Coordinate, Pooled]]:
    """Measured ranks at each head dimension, for each value of a field in the order asked."""
    measured = grouped(answers.rows(kind="measure_rank"), field)
    return {value: pooled_by(own, "head_dim") for value, own in measured.items()}


def rank_panel(title: str, curves: Sequence[Curve]) -> Panel:
    """Rank against the head dimension, which doubles from mark to mark."""
    return Panel(
        title,
        "head dimension",
        "rank / length",
        tuple(curves),
        x_scale="log",
        x_ticks=_apart({x for curve in curves for x in curve.mean.x}),
        levels=(("1 − 1/e", BARRIER),),
        law_label="law of hardmax",
        ceiling=1.0,
    )


def _apart(marks: Iterable[Coordinate]) -> tuple[Coordinate, ...]:
    """The marks whose names have room on a doubling axis, from the largest down."""
    kept: list[Coordinate] = []
    for mark in sorted(marks, reverse=True):
        if not kept or math.log2(kept[-1] / mark) > NAME_ROOM:
            kept.append(mark)
    return tuple(reversed(kept))


def levels_off(points: Mapping[Coordinate, Pooled]) -> bool:
    """Whether the last doubling of the head dimension adds less than a quarter of the first."""
    dims = list(points)
    gains = [
        (points[two].mean - points[one].mean) / math.log2(two / one)
        for one, two in ((dims[0], dims[1]), (dims[-2], dims[-1]))
    ]
    return gains[1] < gains[0] / 4


def levels_near(points: Mapping[Coordinate, Pooled], level: float = BARRIER) -> bool:
    """Whether the mean at the largest head dimension is near a level."""
    return abs(points[max(points)].mean - level) <= NEAR


#: Measured ranks by head dimension, for each value of the field that a sweep varies.
Points = Mapping[Any, Mapping[Coordinate, Pooled]]


@dataclass(frozen=True)
class RankSweep:
    """An exhibit that varies one field beside the head dimension: a curve for each value.

    Attributes:
        varied: The field of the specs that varies.
        values: Its values at the published size.
        label: The words for a value.
        panel: The title of the panel; or the values of several panels by their titles.
        claims: The claims at the published size.
        head_dims: The head dimensions at the published size.
        sizes: What else is fixed at the published size.
        miniature: The values in miniature; the same if none are given.
        small: The sizes and the head dimensions in miniature.
        remarks: Remarks that are shown at every scale.
        more: Remarks that are shown at the published size only, from the points and all cells.
        tables: Tables beside the figure.
        printed: The name of the published table.
        cells: Cells beside those of the published table.
    """

    varied: str
    values: tuple[Any, ...]
    label: Callable[[Any], str]
    panel: str | Mapping[str, Sequence[Any]]
    claims: Callable[[Points], tuple[Claim, ...]]
    head_dims: tuple[int, ...] = HEAD_DIMS
    sizes: Mapping[str, int] = field(default_factory=lambda: {"tokens": 100})
    miniature: tuple[Any, ...] = ()
    small: tuple[Mapping[str, int], tuple[int, ...]] = ({"width": 32, "tokens": 30}, (2, 8))
    remarks: Callable[[Answers, Points], tuple[str, ...]] = lambda answers, points: ()
    more: Callable[[Points, Sequence[Cell]], tuple[str, ...]] = lambda points, cells: ()
    tables: Callable[[Answers, Points], tuple[Table, ...]] = lambda answers, points: ()
    printed: str = ""
    cells: Callable[[Points], tuple[Cell, ...]] | None = None

    def exhibit(self, caption: str, printed: str) -> Exhibit:
        """Return the exhibit; ``printed`` is where the paper has it."""
        return Exhibit(
            caption=caption,
            questions={Scale.MINIATURE: self._miniature, Scale.PAPER: self._paper},
            present=self.present,
            printed=printed,
            compared_at=(Scale.PAPER,) if self.printed or self.cells else (),
        )

    def _paper(self) -> list[Spec]:
        return self._specs(self.sizes, self.head_dims, self.values)

    def _miniature(self) -> list[Spec]:
        return self._specs(*self.small, self.miniature or self.values, batch=4)

    def _specs(
        self, sizes: Mapping[str, int], dims: Sequence[int], values: Sequence[Any], **batch: int
    ) -> list[Spec]:
        axis = {self.varied: values}
        laws = law_sweep(sizes, dims, **(axis if self.varied == "tokens" else {}))
        return [*rank_sweep({**sizes, **batch}, dims, **axis), *laws]

    def present(self, answers: Answers) -> Presentation:
        """Return the panels, and at the published size cells and claims."""
        points, whole = points_by(answers, self.varied), answers.scale is Scale.PAPER
        printed = self._printed() if whole and self.printed else {}
        compared = [
            (f"{self.label(value)}, d_h {r}", points[value][r], mean, std)
            for (value, r), (mean, std) in printed.items()
        ]
        cells = tuple(rank_cell(*one) for one in compared)
        if whole and self.cells:
            cells += self.cells(points)
        said = self.remarks(answers, points)
        spreads = spread_remark((name, std, found) for name, found, _, std in compared)
        panels = {self.panel: list(points)} if isinstance(self.panel, str) else self.panel
        return Presentation(
            panels=tuple(
                rank_panel(title, self._curves(answers, {v: points[v] for v in own}, printed))
                for title, own in panels.items()
            ),
            cells=cells,
            tables=self.tables(answers, points),
            claims=self.claims(points) if whole else (),
            remarks=(*said, *self.more(points, cells), *spreads) if whole else (SMALLER, *said),
        )

    def _printed(self) -> dict[tuple[Any, int], tuple[float, float]]:
        kind = type(self.values[0])
        return {
            (kind(row[self.varied]), int(row["head_dim"])): (float(row["mean"]), float(row["std"]))
            for row in printed_table(self.printed)
        }

    def _curves(
        self,
        answers: Answers,
        points: Points,
        printed: Mapping[tuple[Any, int], tuple[float, float]],
    ) -> list[Curve]:
        """A curve for each value. Only the length changes the law: otherwise it is drawn once."""
        laws = {next(iter(points)): law(answers)}
        if self.varied == "tokens":
            laws = {value: law(answers, tokens=value) for value in points}
        return [
            rank_curve(
                self.label(value),
                found,
                {r: mean for (own, r), (mean, _) in printed.items() if own == value},
                laws.get(value),
            )
            for value, found in points.items()
        ]


def alike_and_level(
    label: Callable[[Any], str], alike: str, alike_at: str, level_at: str
) -> Callable[[Points], tuple[Claim, ...]]:
    """Claim that all curves are alike and, where the paper says so, level off near 0.63."""

    def claims(points: Points) -> tuple[Claim, ...]:
        return (
            Claim(
                alike, widest(points.values()) <= NEAR, f"{alike_at}; threshold {NEAR} chosen by us"
            ),
            *(
                Claim(
                    f"{capital(label(value))}: rank levels off near 0.63 (at d_h = {max(found)}, "
                    f"within {NEAR}).",
                    levels_near(found),
                    f"{level_at}; threshold {NEAR} chosen by us",
                )
                for value, found in points.items()
            ),
        )

    return claims


def capital(words: str) -> str:
    """The words with a capital first letter."""
    return words[0].upper() + words[1:]
