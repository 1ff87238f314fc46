"""What the trained figures of the heads paper share: specs from schedules, panels, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.experiments.training_cost import cheap_first
from headwise.papers.exhibit import grid
from headwise.papers.heads2024.levels import baselines, of_zero_output
from headwise.papers.heads2024.schedules import Schedule
from headwise.papers.kinds.trained_rows import OverSeeds, Place, over_seeds, seeds_by, trained_curve
from headwise.report import Panel, Table
from headwise.runs import Row, Spec

PROTOCOLS = ("fixed", "fresh")

#: What is shown of each protocol, and the words for it.
SHOWN = {
    "fixed": ("best_train_loss", "best training loss, fixed set"),
    "fresh": ("test_loss", "test loss, fresh data"),
}

#: What the second panel shows if no run was trained on fresh data.
TESTED = "test loss, trained on the fixed set"


def shown_field(rows: Iterable[Row], protocol: str) -> str:
    """Return which loss of these rows is shown and compared with print.

    The best training loss is the mean over an epoch. Where the last whole epoch ends long before
    the run, or is all of it, that mean says little of where the run ended: the test loss is shown.

    >>> shown_field([{"steps": 200, "epoch": 100}], "fixed")
    'best_train_loss'
    >>> shown_field([{"steps": 100, "epoch": 100}], "fixed")
    'test_loss'
    """
    return "test_loss" if any(map(ends_early, rows)) else SHOWN[protocol][0]


def ends_early(row: Row) -> bool:
    """Return whether the last whole epoch after the first ends before 90 % of the run.

    >>> [ends_early({"steps": steps, "epoch": 400}) for steps in (400, 1500, 3000)]
    [True, True, False]
    """
    whole = row["steps"] // row["epoch"]
    return whole < 2 or whole * row["epoch"] < 0.9 * row["steps"]


def scheduled(schedule: Schedule, **fixed: Any) -> list[Spec]:
    """Return the specs of a schedule: both protocols, every rank and group of seeds.

    >>> [spec.protocol for spec in scheduled(Schedule(10, ranks=(2,)), width=4)]
    ['fixed', 'fresh']
    """
    return grid(
        TrainNeighbours,
        {**fixed, "steps": schedule.steps, **schedule.more},
        protocol=PROTOCOLS,
        seeds=schedule.seeds,
        rank=schedule.ranks,
    )


def two_layers(place: str, schedules: Mapping[int, Schedule], **sizes: int) -> list[Spec]:
    """Return specs of two layers at the paper's rate, for each value of a field, cheap first.

    >>> specs = two_layers("tokens", {4: Schedule(10, ranks=(2,))}, width=8, copies=2)
    >>> [(spec.tokens, spec.layers, spec.learning_rate) for spec in specs]
    [(4, 2, 0.005), (4, 2, 0.005)]
    """
    fixed = {**sizes, "layers": 2, "learning_rate": 0.005}
    return cheap_first(
        spec
        for value, schedule in schedules.items()
        for spec in scheduled(schedule, **{place: value}, **fixed)
    )


def depth_words(layers: int) -> str:
    """Return the number of layers in words.

    >>> depth_words(1), depth_words(3)
    ('1 layer', '3 layers')
    """
    return f"{layers} layer{'s' * (layers > 1)}"


def exponent(width: int, copies: int) -> float:
    """c of H = d^c / r heads, as the paper names it: copies are d^(c−1), rounded."""
    return min((1.0, 1.5, 2.0), key=lambda c: abs(width ** (c - 1) - copies))


def protocol_panels(
    title: str,
    labelled: Mapping[str, list[Row]],
    place: tuple[str, str],
    printed: Mapping[str, Mapping[Place, float]] | None = None,
) -> Iterator[Panel]:
    """Yield one panel for each protocol: a curve for each label, losses against a field.

    ``place`` is that field of the rows and its name in words. Printed values belong to the fixed
    set. Without runs on fresh data the second panel shows the test loss of the runs on that set.
    """
    there = {row["protocol"] for rows in labelled.values() for row in rows}
    for protocol, (_, words) in SHOWN.items():
        found, beside = {}, printed if printed and protocol == "fixed" else {}
        untested = protocol == "fresh" and protocol not in there
        for label, rows in labelled.items():
            own = [row for row in rows if row["protocol"] == protocol or untested]
            found[label] = seeds_by(own, place[0], shown_field(own, protocol))
        zero = _named_zero(found)
        curves = [
            # An empty curve, so that the others keep their colours.
            trained_curve(label, {} if label in zero else points, beside.get(label))
            for label, points in found.items()
        ]
        learnt = {label: rows for label, rows in labelled.items() if label not in zero}
        yield Panel(
            title,
            place[1],
            TESTED if untested else words,
            tuple(curves),
            x_scale="log",
            y_scale="log",
            levels=(*baselines(learnt), *((f"{label}: zero output", 1.0) for label in zero)),
            x_ticks=tuple(sorted({row[place[0]] for rows in labelled.values() for row in rows})),
            shared_y=True,
        )


def _named_zero(found: Mapping[str, Mapping[Place, OverSeeds]]) -> list[str]:
    """Return the labels of zero-output curves, which are named, not drawn, unless all are."""
    zero = [
        label
        for label, points in found.items()
        if of_zero_output(point.mean for point in points.values())
    ]
    return zero if len(zero) < len(found) else []


def grouped(rows: Iterable[Row], field: str, words: str) -> dict[str, list[Row]]:
    """Group rows by the value of a field, under labels such as "N = 16"."""
    rows = list(rows)
    values = sorted({row[field] for row in rows})
    return {words.format(v): [row for row in rows if row[field] == v] for v in values}


def protocol_table(rows: Iterable[Row], fields: Mapping[str, str]) -> Table:
    """Return, for every setting, the losses of both protocols.

    >>> row = {"rank": 8, "best_train_loss": 0.4, "test_loss": 0.6, "steps": 9, "epoch": 3}
    >>> both = [row | {"protocol": "fixed"}, row | {"protocol": "fresh", "test_loss": 0.5}]
    >>> protocol_table(both, {"rank": "r"}).rows
    ((8, 0.4, 0.6, 0.5),)
    """
    settings: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        settings.setdefault(tuple(row[field] for field in fields), []).append(row)
    lines = tuple((*place, *_both(settings[place])) for place in sorted(settings))
    columns = (
        *fields.values(),
        "fixed set: best training loss",
        "fixed set: test loss",
        "fresh data: test loss",
    )
    return Table(columns, lines, title="Mean over seeds, by protocol")


def _both(rows: list[Row]) -> tuple[float | None, ...]:
    fixed, fresh = ([r for r in rows if r["protocol"] == p] for p in PROTOCOLS)
    repeated = [row for row in fixed if not ends_early(row)]
    wanted = ((repeated, "best_train_loss"), (fixed, "test_loss"), (fresh, "test_loss"))
    found = [over_seeds(own, field) for own, field in wanted]
    return tuple(None if one is None else one.mean for one in found)
