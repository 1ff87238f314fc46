"""Losses of both protocols, a fixed set and fresh data: panels, tables and known levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headwise.papers.exhibit import grouped, matching
from headwise.papers.kinds.trained_rows import (
    Coordinate,
    OverSeeds,
    over_seeds,
    seeds_by,
    trained_curve,
)
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row

PROTOCOLS = ("fixed", "fresh")

#: What is shown of each protocol, its axis, and the words for the data.
SHOWN = {
    "fixed": ("best_train_loss", "best training loss", "fixed set"),
    "fresh": ("test_loss", "test loss", "fresh data"),
}

#: What the title of the second panel says if no run was trained on fresh data.
TESTED = "trained on the fixed set"


def shown_field(rows: Iterable[Row], protocol: str) -> str:
    """Return which loss of these rows is shown and compared with the paper.

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


def depth_words(layers: int) -> str:
    """Return the number of layers in words.

    >>> depth_words(1), depth_words(3)
    ('1 layer', '3 layers')
    """
    return f"{layers} layer{'s' * (layers > 1)}"


def protocol_panels(
    title: str,
    labelled: Mapping[str, list[Row]],
    along: tuple[str, str],
    printed: Mapping[str, Mapping[Coordinate, float]] | None = None,
) -> Iterator[Panel]:
    """Yield one panel for each protocol: a curve for each label, losses against a field.

    ``along`` is that field of the rows and its name in words. Published values belong to the fixed
    set. Without runs on fresh data the second panel shows the test loss of the runs on that set.
    """
    there = {row["protocol"] for rows in labelled.values() for row in rows}
    for protocol, (_, loss, data) in SHOWN.items():
        found, beside = {}, printed if printed and protocol == "fixed" else {}
        untested = protocol == "fresh" and protocol not in there
        for label, rows in labelled.items():
            own = [row for row in rows if row["protocol"] == protocol or untested]
            found[label] = seeds_by(own, along[0], shown_field(own, protocol))
        zero = _named_zero(found)
        curves = [
            # An empty curve, so that the others keep their colours.
            trained_curve(label, {} if label in zero else points, beside.get(label))
            for label, points in found.items()
        ]
        learnt = {label: rows for label, rows in labelled.items() if label not in zero}
        rising = _trivial_curve(learnt, along[0])
        levels = () if rising else baselines(learnt)
        yield Panel(
            f"{title}, {TESTED if untested else data}",
            along[1],
            loss,
            (*curves, *rising),
            x_scale="log",
            y_scale="log",
            levels=(*levels, *((f"{label}: zero output", 1.0) for label in zero)),
            x_ticks=tuple(sorted({row[along[0]] for rows in labelled.values() for row in rows})),
            shared_y=True,
        )


def _trivial_curve(labelled: Mapping[str, list[Row]], along: str) -> tuple[Curve, ...]:
    """Return the baseline as a curve if it changes along the axis, else nothing."""
    if all(len({row["trivial"] for row in rows}) < 2 for rows in labelled.values()):
        return ()
    found = {row[along]: row["trivial"] for rows in labelled.values() for row in rows}
    return (Curve("trivial", Line.of(dict(sorted(found.items())))),)


def _named_zero(found: Mapping[str, Mapping[Coordinate, OverSeeds]]) -> list[str]:
    """Return the labels of zero-output curves, which are named, not drawn, unless all are."""
    zero = [
        label
        for label, points in found.items()
        if of_zero_output(point.mean for point in points.values())
    ]
    return zero if len(zero) < len(found) else []


def protocol_table(rows: Iterable[Row], fields: Mapping[str, str]) -> Table:
    """Return, for every setting, the losses of both protocols.

    >>> row = {"rank": 8, "best_train_loss": 0.4, "test_loss": 0.6, "steps": 9, "epoch": 3}
    >>> both = [row | {"protocol": "fixed"}, row | {"protocol": "fresh", "test_loss": 0.5}]
    >>> protocol_table(both, {"rank": "r"}).rows
    ((8, 0.4, 0.6, 0.5),)
    """
    lines = (
        {name: own[0][field] for field, name in fields.items()} | _both(own)
        for _, own in sorted(grouped(rows, *fields).items())
    )
    return Table.of(lines, title="Mean over seeds, by protocol")


def _both(rows: list[Row]) -> dict[str, float | None]:
    fixed, fresh = (matching(rows, protocol=name) for name in PROTOCOLS)
    found = {
        "fixed set: best training loss": over_seeds(
            [row for row in fixed if not ends_early(row)], "best_train_loss"
        ),
        "fixed set: test loss": over_seeds(fixed, "test_loss"),
        "fresh data: test loss": over_seeds(fresh, "test_loss"),
    }
    return {name: None if one is None else one.mean for name, one in found.items()}


#: Targets are unit vectors, so zero output has a loss of 1; this near is not told from it.
ZERO_OUTPUT = 1e-3


def of_zero_output(losses: Iterable[float]) -> bool:
    """Return whether there are losses and all are those of zero output.

    >>> of_zero_output([1.0002, 1.0]), of_zero_output([0.9, 1.0]), of_zero_output([])
    (True, False, False)
    """
    losses = list(losses)
    return bool(losses) and all(abs(loss - 1) <= ZERO_OUTPUT for loss in losses)


#: Baselines no further apart than this share have one name, above the highest of them.
ALIKE = 0.03


def baselines(labelled: Mapping[str, list[Row]]) -> tuple[tuple[str, float], ...]:
    """Return the trivial baselines, once if curves share it; close ones share a name."""
    found = {label: rows[0]["trivial"] for label, rows in labelled.items() if rows}
    if len(set(found.values())) == 1:
        return (("trivial", next(iter(found.values()))),)
    lines: list[dict[str, float]] = []
    for label, value in sorted(found.items(), key=lambda pair: pair[1]):
        if lines and value <= (1 + ALIKE) * min(lines[-1].values()):
            lines[-1][label] = value
        else:
            lines.append({label: value})
    order = list(found)
    levels: list[tuple[str, float]] = []
    for line in lines:
        *others, highest = sorted(set(line.values()))
        levels += [("", value) for value in others]
        levels.append((f"trivial, {_joined(sorted(line, key=order.index))}", highest))
    return tuple(levels)


def _joined(labels: list[str]) -> str:
    """Join labels such as "N = 16" and "N = 64" to "N = 16, 64"."""
    return ", ".join([labels[0], *(label.rpartition(" ")[2] for label in labels[1:])])
