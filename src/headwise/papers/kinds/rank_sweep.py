"""What exhibits against the head dimension share: which specs they ask, and how they look."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwise.experiments.measure_rank import MeasureRank
from headwise.experiments.predict_rank import PredictRank
from headwise.papers.exhibit import Answers, grid
from headwise.papers.kinds.rank_rows import Place, Pooled, pooled_by, rank_curve
from headwise.report import Curve, Panel
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
    """Measured ranks for every combination: one seed for narrow heads, several for wide ones.

    >>> len(rank_sweep({}, (2, 64), tokens=(25, 50)))
    10
    """
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
    """Predicted ranks for every combination.

    >>> len(law_sweep({"tokens": 100}, (2, 64)))
    2
    """
    return grid(PredictRank, fixed, **axes, head_dim=head_dims)


def printed_sweep(head_dims: Sequence[int] = HEAD_DIMS, **axes: Sequence[Any]) -> list[Spec]:
    """Measured and predicted at the printed size, 100 tokens of width 384.

    >>> {spec.tokens for spec in printed_sweep((2, 4))}
    {100}
    """
    return [*rank_sweep({}, head_dims, **axes), *law_sweep({"tokens": 100}, head_dims)]


def miniature_sweep(**axes: Sequence[Any]) -> list[Spec]:
    """The same, so small that it takes no time.

    >>> len(miniature_sweep(temperature=(0.1, 1.0)))
    6
    """
    sizes, dims = {"width": 32, "tokens": 30}, (2, 8)
    return [*rank_sweep(sizes | {"batch": 4}, dims, **axes), *law_sweep(sizes, dims)]


def law(answers: Answers, **wanted: Any) -> dict[Place, float]:
    """The predicted rank over length of hardmax at each head dimension."""
    rows = answers.rows(kind="predict_rank", **wanted)
    return {row["head_dim"]: row["ratio"] for row in rows}


def points_by(answers: Answers, field: str) -> dict[Any, dict[Place, Pooled]]:
    """Measured ranks at each head dimension, for each value of a field in the order asked.

    >>> from headwise.papers.exhibit import Scale
    >>> points_by(Answers(Scale.PAPER, ()), "width")
    {}
    """
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
    """A curve for each label; the law knows nothing of what tells them apart: it is drawn once.

    >>> from headwise.papers.exhibit import Scale
    >>> point = {2: Pooled(0.1, 0.02, 32, 0.001)}
    >>> [c.label for c in curves_and_law(Answers(Scale.PAPER, ()), {"T = 1": point})]
    ['T = 1']
    """
    first = next(iter(labelled), None)
    return [
        rank_curve(
            label, found, (printed or {}).get(label), law(answers) if label == first else None
        )
        for label, found in labelled.items()
    ]


def rank_panel(title: str, curves: Sequence[Curve]) -> Panel:
    """Rank against the head dimension, which doubles from mark to mark.

    >>> rank_panel("Rank levels off", ()).x_label
    'head dimension'
    """
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
    """Whether the last doubling of the head dimension adds less than a quarter of the first.

    >>> def flat(mean):
    ...     return Pooled(mean, 0.03, 32, 0.001)
    >>> levels_off({2: flat(0.1), 4: flat(0.3), 8: flat(0.33)})
    True
    >>> levels_off({2: flat(0.1), 4: flat(0.3), 8: flat(0.5)})
    False
    """
    places = list(points)
    gains = [
        (points[two].mean - points[one].mean) / math.log2(two / one)
        for one, two in ((places[0], places[1]), (places[-2], places[-1]))
    ]
    return gains[1] < gains[0] / 4


def levels_near(points: Mapping[Place, Pooled], level: float = BARRIER) -> bool:
    """Whether the mean at the largest head dimension is near a level.

    >>> levels_near({96: Pooled(0.61, 0.03, 32, 0.001)})
    True
    >>> levels_near({96: Pooled(0.50, 0.03, 32, 0.001)})
    False
    """
    return abs(points[max(points)].mean - level) <= NEAR
