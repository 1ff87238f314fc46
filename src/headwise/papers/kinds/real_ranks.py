"""What exhibits of ranks on real data share: a panel for each reading of "at initialisation"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwise.data.classification import PUBLISHED
from headwise.papers.critical import critical_dim
from headwise.papers.exhibit import Answers, Claim, Presentation, Scale, grid, grouped, matching
from headwise.papers.kinds.rank_rows import Coordinate, Pooled, pooled_by, rank_curve, widest
from headwise.papers.kinds.rank_sweep import (
    NEAR,
    SEEDS,
    SMALLER,
    capital,
    law,
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

Points = dict[str, dict[Any, dict[Coordinate, Pooled]]]


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
    return {
        start: {
            value: pooled_by(own, "head_dim")
            for value, own in grouped(matching(rows, start=start), field).items()
        }
        for start in READINGS
    }


def reading_panels(answers: Answers, points: Points, labels: Mapping[Any, str]) -> list[Panel]:
    """A panel for each reading, with a curve for each value; the law is of N(0, 1) weights."""
    first = ("normal(0,1)", next(iter(points["normal(0,1)"])))
    return [
        rank_panel(
            capital(words),
            [
                rank_curve(
                    labels[value], found, law=law(answers) if (start, value) == first else None
                )
                for value, found in points[start].items()
            ],
        )
        for start, words in READINGS.items()
    ]


def present_readings(
    answers: Answers,
    field: str,
    labels: Mapping[Any, str],
    claims: Callable[[Points], Sequence[Claim]],
    remarks: Sequence[str],
    **wanted: Any,
) -> Presentation:
    """Present ranks in both readings; claims and the given remarks are left out in miniature."""
    points = points_by_reading(answers, field, **wanted)
    real, used = answers.scale is not Scale.MINIATURE, part_used(answers.rows())
    said = (used, sizes_remark(answers))
    return Presentation(
        panels=tuple(reading_panels(answers, points, labels)),
        tables=(levels_table(answers, points, labels, field, **wanted),),
        claims=tuple(claims(points)) if real else (),
        remarks=(*said, *remarks) if real else (SMALLER, *said),
    )


def levels_table(
    answers: Answers, points: Points, labels: Mapping[Any, str], field: str, **wanted: Any
) -> Table:
    """For each curve: where it ends, the rule's choice, and what explains the level."""
    rows = []
    for start, curves in points.items():
        for value, found in curves.items():
            last = max(found)
            own = answers.rows(start=start, head_dim=last, **{field: value}, **wanted)
            means = {int(dim): point.mean for dim, point in found.items()}
            rows.append(
                {
                    "at initialisation": READINGS[start],
                    "input": labels[value],
                    "tokens": own[0]["tokens"],
                    f"rank / length at d_h = {last}": round(found[last].mean, 3),
                    "± standard error": round(found[last].stderr, 3),
                    "critical d_h, gain below 0.013": critical_dim(means),
                    "d_h for 90 % of the last": _share(means),
                    "different tokens": round(_mean(own, "distinct"), 3),
                    "size of logits": float(f"{_mean(own, 'logit_size'):.3g}"),
                }
            )
    return Table.of(rows, title="Where rank levels off")


def curve_claims(
    points: Points,
    labels: Mapping[Any, str],
    words: str,
    holds: Callable[[Mapping[Coordinate, Pooled]], bool],
    printed: str = "",
) -> list[Claim]:
    """One claim for each curve of each reading; without ``printed`` it is ours."""
    return [
        Claim(f"{capital(READINGS[start])}, {labels[value]}: {words}", holds(found), printed)
        for start, curves in points.items()
        for value, found in curves.items()
    ]


def saturation_claims(points: Points, labels: Mapping[Any, str], printed: str) -> list[Claim]:
    """The paper's claim, that rank levels off, for each curve."""
    words = "rank levels off; the last doubling of d_h adds less than a quarter of what the first "
    source = f"{printed}; threshold of a quarter chosen by us"
    return curve_claims(points, labels, f"{words}adds.", levels_off, source)


def alike_claims(points: Points, what: str, printed: str) -> list[Claim]:
    """That curves lie near one another, for each reading."""
    return [
        Claim(
            f"{capital(READINGS[start])}: {what}, within {NEAR} at every head dimension.",
            widest(curves.values()) <= NEAR,
            f"{printed}; threshold {NEAR} chosen by us",
        )
        for start, curves in points.items()
    ]


def full_claims(points: Points, labels: Mapping[Any, str]) -> list[Claim]:
    """Ours: the model's own initialisation gives matrices of full rank."""
    return curve_claims(
        {"model": points["model"]},
        labels,
        f"at the largest head dimension rank is at least {FULL} of the length, so it levels off "
        "at full rank and not at 0.63.",
        lambda found: found[max(found)].mean >= FULL,
    )


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
    return next(dim for dim, mean in means.items() if mean >= 0.9 * means[max(means)])


def _mean(rows: Sequence[Row], field: str) -> float:
    return sum(row[field] for row in rows) / len(rows)
