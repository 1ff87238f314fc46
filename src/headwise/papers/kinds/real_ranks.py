"""What exhibits of ranks on real data share: a panel for each reading of "at initialisation"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwise.data.classification import PUBLISHED
from headwise.papers.critical import critical_dim
from headwise.papers.exhibit import Answers, Claim, grid
from headwise.papers.kinds.rank_rows import Place, Pooled, pooled_by, widest
from headwise.papers.kinds.rank_sweep import (
    BARRIER,
    NEAR,
    SEEDS,
    curves_and_law,
    levels_off,
    rank_panel,
)
from headwise.report import Panel, Table
from headwise.runs import Row, Spec

#: The two readings, in words.
READINGS = {"normal(0,1)": "N(0, 1) weights", "model": "the model's own initialisation"}

#: How the paper writes the names of the sets.
SET_NAMES = {
    "digits": "digits",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "svhn": "SVHN",
    "imdb": "IMDB",
}

#: From this share of the length on a matrix counts as full in rank.
FULL = 0.95

Points = dict[str, dict[Any, dict[Place, Pooled]]]


def real_sweep(
    kind: type[Spec],
    fixed: Mapping[str, Any],
    head_dims: Sequence[int],
    seeds: Sequence[int] = SEEDS,
    **axes: Sequence[Any],
) -> list[Spec]:
    """Ranks in both readings for every combination. One set follows another: it is read once."""
    return grid(kind, fixed, **axes, start=tuple(READINGS), seed=seeds, head_dim=head_dims)


def points_by_reading(answers: Answers, field: str, **wanted: Any) -> Points:
    """Ranks at each head dimension, for each reading and each value of a field."""
    rows = [row for row in answers.rows(**wanted) if row["kind"] != "predict_rank"]
    values = list(dict.fromkeys(row[field] for row in rows))
    return {
        start: {
            value: pooled_by(
                [row for row in rows if row["start"] == start and row[field] == value], "head_dim"
            )
            for value in values
        }
        for start in READINGS
    }


def reading_panels(answers: Answers, points: Points, labels: Mapping[Any, str]) -> list[Panel]:
    """A panel for each reading, with a curve for each value; the law is of N(0, 1) weights."""
    return [
        rank_panel(
            _capital(words),
            curves_and_law(
                answers if start == "normal(0,1)" else Answers(answers.scale, ()),
                {labels[value]: found for value, found in points[start].items()},
            ),
        )
        for start, words in READINGS.items()
    ]


def levels_table(
    answers: Answers, points: Points, labels: Mapping[Any, str], field: str, **wanted: Any
) -> Table:
    """For each curve: where it ends, the rule's choice, and what explains the level."""
    rows = []
    for start, curves in points.items():
        for value, found in curves.items():
            last = max(found)
            own = [
                row
                for row in answers.rows(start=start, head_dim=last, **wanted)
                if row[field] == value
            ]
            means = {int(place): point.mean for place, point in found.items()}
            rows.append(
                (
                    READINGS[start],
                    labels[value],
                    own[0]["tokens"],
                    round(found[last].mean, 3),
                    round(found[last].stderr, 3),
                    critical_dim(means),
                    _share(means),
                    round(_mean(own, "distinct"), 3),
                    float(f"{_mean(own, 'logit_size'):.3g}"),
                )
            )
    last = max(max(found) for curves in points.values() for found in curves.values())
    columns = (
        "at initialisation",
        "input",
        "tokens",
        f"rank / length at d_h = {last}",
        "± standard error",
        "critical d_h, gain below 0.013",
        "d_h for 90 % of the last",
        "different tokens",
        "size of logits",
    )
    return Table(columns, tuple(rows), title="Where rank levels off")


def saturation_claims(points: Points, labels: Mapping[Any, str], printed: str) -> list[Claim]:
    """The paper's claim, that rank levels off, for each curve."""
    return [
        Claim(
            f"{_capital(READINGS[start])}, {labels[value]}: rank levels off; the last doubling of "
            "d_h adds less than a quarter of what the first adds.",
            levels_off(found),
            f"{printed}; the quarter is our measure",
        )
        for start, curves in points.items()
        for value, found in curves.items()
    ]


def alike_claims(points: Points, what: str, printed: str) -> list[Claim]:
    """That curves lie near one another, for each reading."""
    return [
        Claim(
            f"{_capital(READINGS[start])}: {what}, within {NEAR} at every head dimension.",
            widest(curves.values()) <= NEAR,
            f"{printed}; {NEAR} is our measure",
        )
        for start, curves in points.items()
    ]


def ceiling_claims(points: Points, labels: Mapping[Any, str], printed: str) -> list[Claim]:
    """That rank stays below (1 − 1/e)·n, for each curve."""
    return [
        Claim(
            f"{_capital(READINGS[start])}, {labels[value]}: rank stays below 0.63 of the length.",
            max(point.mean for point in found.values()) <= BARRIER,
            printed,
        )
        for start, curves in points.items()
        for value, found in curves.items()
    ]


def full_claims(points: Points, labels: Mapping[Any, str]) -> list[Claim]:
    """Ours: the model's own initialisation gives matrices of full rank."""
    return [
        Claim(
            f"{_capital(READINGS['model'])}, {labels[value]}: at the largest head dimension rank "
            f"is at least {FULL} of the length, so it levels off at full rank and not at 0.63.",
            found[max(found)].mean >= FULL,
        )
        for value, found in points["model"].items()
    ]


def part_used(rows: Sequence[Row]) -> str:
    """Say of which training parts the mini-batches were drawn, and which are subsets."""
    sizes = {row["dataset"]: row["available"] for row in rows if "dataset" in row}
    told = [
        f"{SET_NAMES[name]} ({size:,} training samples"
        + (f" of {PUBLISHED[name]:,})" if size < PUBLISHED.get(name, 0) else ")")
        for name, size in sizes.items()
    ]
    return f"Mini-batches are drawn from {', '.join(told)}."


def sizes_remark(answers: Answers) -> str:
    """Say how many matrices a point stands for."""
    rows = [row for row in answers.rows() if "dataset" in row]
    seeds, batches = len({row["seed"] for row in rows}), {row["batch"] for row in rows}
    return (
        f"Averaged over heads, batches of {min(batches)} and {seeds} seeds; every seed draws "
        "its own weights and its own batch."
    )


def _share(means: Mapping[int, float]) -> int:
    """The first head dimension with 90 % of the last mean."""
    return next(place for place, mean in means.items() if mean >= 0.9 * means[max(means)])


def _mean(rows: Sequence[Row], field: str) -> float:
    return sum(row[field] for row in rows) / len(rows)


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
