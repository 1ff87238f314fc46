"""What exhibits against the head dimension share: which specs they ask, and how they look."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwise.experiments.measure_rank import MeasureRank
from headwise.experiments.predict_rank import PredictRank
from headwise.papers.exhibit import Answers, Claim, Presentation, Questions, Scale, grid
from headwise.papers.kinds.rank_rows import (
    Place,
    Pooled,
    pooled_by,
    rank_cell,
    rank_curve,
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

#: Said of what is run smaller than printed.
SMALLER = "Smaller than printed, so nothing is compared with the paper."


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


def printed_sweep(head_dims: Sequence[int] = HEAD_DIMS, **axes: Sequence[Any]) -> list[Spec]:
    """Measured and predicted at the printed size, 100 tokens of width 384."""
    return [*rank_sweep({}, head_dims, **axes), *law_sweep({"tokens": 100}, head_dims)]


def miniature_sweep(**axes: Sequence[Any]) -> list[Spec]:
    """The same, so small that it takes no time."""
    sizes, dims = {"width": 32, "tokens": 30}, (2, 8)
    return [*rank_sweep(sizes | {"batch": 4}, dims, **axes), *law_sweep(sizes, dims)]


def law(answers: Answers, **wanted: Any) -> dict[Place, float]:
    """The predicted rank over length of hardmax at each head dimension."""
    rows = answers.rows(kind="predict_rank", **wanted)
    return {row["head_dim"]: row["ratio"] for row in rows}


def points_by(answers: Answers, field: str) -> dict[Any, dict[Place, Pooled]]:
    """Measured ranks at each head dimension, for each value of a field in the order asked."""
    measured = answers.rows(kind="measure_rank")
    return {
        value: pooled_by([row for row in measured if row[field] == value], "head_dim")
        for value in dict.fromkeys(row[field] for row in measured)
    }


def curves_and_law(
    answers: Answers,
    labelled: Mapping[str, Mapping[Place, Pooled]],
    printed: Mapping[str, Mapping[Place, float]] | None = None,
) -> list[Curve]:
    """A curve for each label; the law knows nothing of what tells them apart: it is drawn once."""
    first = next(iter(labelled), None)
    return [
        rank_curve(
            label, found, (printed or {}).get(label), law(answers) if label == first else None
        )
        for label, found in labelled.items()
    ]


def rank_panel(title: str, curves: Sequence[Curve]) -> Panel:
    """Rank against the head dimension, which doubles from mark to mark."""
    return Panel(
        title,
        "head dimension",
        "rank / length",
        tuple(curves),
        x_scale="log",
        x_ticks=_apart({place for curve in curves for place in curve.mean.x}),
        levels=(("1 − 1/e", BARRIER),),
        law_label="law of hardmax",
    )


def _apart(places: Iterable[Place]) -> tuple[Place, ...]:
    """The places whose names have room on a doubling axis, from the largest down."""
    kept: list[Place] = []
    for place in sorted(places, reverse=True):
        if not kept or math.log2(kept[-1] / place) > NAME_ROOM:
            kept.append(place)
    return tuple(reversed(kept))


def levels_off(points: Mapping[Place, Pooled]) -> bool:
    """Whether the last doubling of the head dimension adds less than a quarter of the first."""
    places = list(points)
    gains = [
        (points[two].mean - points[one].mean) / math.log2(two / one)
        for one, two in ((places[0], places[1]), (places[-2], places[-1]))
    ]
    return gains[1] < gains[0] / 4


def levels_near(points: Mapping[Place, Pooled], level: float = BARRIER) -> bool:
    """Whether the mean at the largest head dimension is near a level."""
    return abs(points[max(points)].mean - level) <= NEAR


#: Measured ranks by head dimension, for each value of the field that a sweep varies.
Points = Mapping[Any, Mapping[Place, Pooled]]


@dataclass(frozen=True)
class RankSweep:
    """An exhibit that varies one field beside the head dimension: a curve for each value.

    Attributes:
        field: The field of the specs that varies.
        values: Its values and their labels.
        panel: The title of the panel.
        place: Where the paper claims that every curve levels off near 0.63.
        remarks: Remarks that are shown at every scale.
        miniature: The values in miniature; the same if none are given.
        head_dims: The head dimensions at the printed size.
        alike: A claim that all curves are alike, and its place.
        more: Remarks that are shown at the printed size only.
        tables: Tables beside the figure.
        printed: The name of the printed table.
    """

    field: str
    values: Mapping[Any, str]
    panel: str
    place: str
    remarks: Callable[[Answers, Points], str]
    miniature: tuple[Any, ...] = ()
    head_dims: tuple[int, ...] = HEAD_DIMS
    alike: tuple[str, str] | None = None
    more: tuple[str, ...] = ()
    tables: Callable[[Answers], tuple[Table, ...]] = lambda _: ()
    printed: str = ""

    @property
    def questions(self) -> dict[Scale, Questions]:
        """Return the specs of both scales."""
        small = self.miniature or tuple(self.values)
        return {
            Scale.MINIATURE: lambda: miniature_sweep(**{self.field: small}),
            Scale.PAPER: lambda: printed_sweep(self.head_dims, **{self.field: tuple(self.values)}),
        }

    def present(self, answers: Answers) -> Presentation:
        """Return the panel, and at the printed size cells and claims."""
        points, whole = points_by(answers, self.field), answers.scale is Scale.PAPER
        labels = {value: self.values.get(value, f"{self.field} {value}") for value in points}
        printed = self._printed() if whole and self.printed else {}
        beside: dict[str, dict[Place, float]] = {}
        for (value, r), (mean, _) in printed.items():
            beside.setdefault(labels[value], {})[r] = mean
        curves = curves_and_law(answers, {labels[v]: one for v, one in points.items()}, beside)
        said = self.remarks(answers, points)
        return Presentation(
            panels=(rank_panel(self.panel, curves),),
            cells=tuple(
                rank_cell(f"{labels[value]}, d_h {r}", points[value][r], mean, std)
                for (value, r), (mean, std) in printed.items()
            ),
            tables=self.tables(answers),
            claims=self._claims(points, labels) if whole else (),
            remarks=(said, *self.more) if whole else (SMALLER, said),
        )

    def _printed(self) -> dict[tuple[str, int], tuple[float, float]]:
        return {
            (row[self.field], int(row["head_dim"])): (float(row["mean"]), float(row["std"]))
            for row in printed_table(self.printed)
        }

    def _claims(self, points: Points, labels: Mapping[Any, str]) -> tuple[Claim, ...]:
        alike = ()
        if self.alike is not None:
            alike = (Claim(self.alike[0], widest(points.values()) <= NEAR, self.alike[1]),)
        last = max(self.head_dims)
        return (
            *alike,
            *(
                Claim(
                    f"{labels[value][0].upper()}{labels[value][1:]}: rank levels off near 0.63 "
                    f"(at d_h = {last}, within 0.05).",
                    levels_near(found),
                    self.place,
                )
                for value, found in points.items()
            ),
        )
