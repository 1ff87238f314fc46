"""Remarks on trained figures: short schedules, unlike curves, missing runs, nothing learnt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headwise.papers.exhibit import Answers, Scale, matching
from headwise.papers.kinds.protocols import ends_early, shown_field
from headwise.papers.kinds.trained_rows import Coordinate, survivors
from headwise.runs import Row


def schedule_remarks(answers: Answers, whole: str, *, printed: bool = True) -> tuple[str, ...]:
    """Say how the schedule differs from the paper, or from scale paper if nothing is published."""
    if answers.scale is Scale.PAPER:
        return ()
    source, more = "the paper", ", and differences from the paper are expected"
    if not printed:
        source, more = "scale paper", ""
    return (
        f"The schedule is shortened: {_schedule(answers)}, where {source} has {whole}. Losses are "
        f"those of shorter training{more}.",
    )


def _schedule(answers: Answers) -> str:
    steps = sorted({row["steps"] for row in answers.rows() if "steps" in row})
    seeds = sorted({row["seed"] for row in answers.rows() if "steps" in row})
    rates = sorted({row["learning_rate"] for row in answers.rows() if "steps" in row})
    told = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    some = " or ".join(f"{one:g}" for one in rates)
    rate = some if len(rates) < 3 else f"{rates[0]:g} to {rates[-1]:g}"
    batches = sorted({row["batch"] for row in answers.rows() if "steps" in row})
    batch = f"{batches[0]}" if len(batches) == 1 else f"{batches[0]} to {batches[-1]}"
    return f"{told} steps of {batch} sequences at rate {rate} and {len(seeds)} seeds"


#: Parts of a schedule in which curves can differ, their wording, and whether shared values show.
_SETTINGS = (
    ("steps", "{:,} steps", True),
    ("batch", "of {}", False),
    ("learning_rate", "at rate {:g}", True),
    ("warm_up", "reached after {:.0%}", False),
    ("dtype", "in {}", False),
)


def unlike_remark(panels: Mapping[str, Mapping[str, Sequence[Row]]]) -> tuple[str, ...]:
    """Name the steps and rates of the curves of a panel if they are not the same for all.

    ``panels`` are rows by panel and by curve; a panel without a name stands for the whole figure.

    >>> row = {"steps": 100, "batch": 8, "learning_rate": 0.1, "warm_up": 0.1, "dtype": "tf32"}
    >>> curves = {"c 1": [row], "c 1.5": [row], "c 2": [row | {"steps": 50}]}
    >>> unlike_remark({"1 layer": curves})[0].partition(": ")[2]
    '1 layer: 100 steps at rate 0.1 (c 1; c 1.5), 50 steps at rate 0.1 (c 2).'
    >>> unlike_remark({"1 layer": {"c 1": [row], "c 1.5": [row]}})
    ()
    """
    told = [
        f"{name}: {words}" if name else words
        for name, curves in panels.items()
        if (words := _unlike(curves))
    ]
    if not told:
        return ()
    return (
        "Curves of one panel were trained with different schedules, which may explain part of "
        f"their differences: {'; '.join(told)}.",
    )


def _unlike(curves: Mapping[str, Sequence[Row]]) -> str:
    """Group the curves by how they were trained; empty if all were trained alike."""
    alike: dict[tuple[tuple[Any, ...], ...], list[str]] = {}
    for label, rows in curves.items():
        ways = {tuple(row[field] for field, _, _ in _SETTINGS) for row in rows}
        alike.setdefault(tuple(sorted(ways)), []).append(label)
    if len(alike) < 2:
        return ""
    every = {way for ways in alike for way in ways}
    shown = [
        always or len({way[i] for way in every}) > 1 for i, (_, _, always) in enumerate(_SETTINGS)
    ]
    return ", ".join(
        f"{' or '.join(_way_in_words(way, shown) for way in ways)} ({'; '.join(labels)})"
        for ways, labels in alike.items()
    )


def _way_in_words(way: tuple[Any, ...], shown: Sequence[bool]) -> str:
    parts = zip(way, _SETTINGS, shown, strict=True)
    return " ".join(words.format(value) for value, (_, words, _), told in parts if told)


#: A mean over an epoch that is more than this share of a run lags behind where the run ends.
LONG_EPOCH = 0.1


def epoch_remarks(rows: Iterable[Row]) -> tuple[str, ...]:
    """Name the runs whose best training loss is missing, or a mean over much of the run.

    >>> epoch_remarks([{"protocol": "fixed", "steps": 100, "epoch": 100}])[0][:44]
    'Runs of 100 steps, in epochs of 100, have no'
    >>> row = {"protocol": "fixed", "steps": 300, "epoch": 100}
    >>> row |= {"best_train_loss": 0.27, "test_loss": 0.25}
    >>> epoch_remarks([row])[0].partition("ends. ")[2]
    'In 1 of these 1 runs it even lies above the test loss.'
    >>> epoch_remarks([row | {"steps": 1000}])
    ()
    """
    fixed = matching(rows, protocol="fixed")
    early = [row for row in fixed if ends_early(row)]
    long = [
        row
        for row in survivors(fixed)
        if not ends_early(row) and row["epoch"] > LONG_EPOCH * row["steps"]
    ]
    return (
        *(
            f"Runs of {steps:,} steps, in epochs of {epoch:,}, have no epoch near their end: the "
            "test loss stands for their best training loss."
            for epoch, steps in _epochs(early)
        ),
        *_long_epochs(long),
    )


def _epochs(rows: Iterable[Row]) -> list[tuple[int, int]]:
    return sorted({(row["epoch"], row["steps"]) for row in rows})


def _long_epochs(rows: Sequence[Row]) -> tuple[str, ...]:
    if not rows:
        return ()
    told = ", ".join(f"{epoch:,} of {steps:,}" for epoch, steps in _epochs(rows))
    above = sum(row["best_train_loss"] > row["test_loss"] for row in rows)
    return (
        f"The best training loss is a mean over an epoch, and that is more than {LONG_EPOCH:.0%} "
        f"of some runs ({told} steps): while losses fall it lies above where the run ends."
        + f" In {above} of these {len(rows)} runs it even lies above the test loss."
        * bool(above),
    )


#: Above so many times the trivial loss a run has learnt nothing, and is near zero output.
NOTHING_LEARNT = 1.02


def stuck_remark(rows: Iterable[Row], *fields: str) -> tuple[str, ...]:
    """Name the runs that ended above the trivial error, by these fields of their rows."""
    rows = list(rows)
    stuck = [row for row in survivors(rows) if _learnt_nothing(row)]
    if not stuck:
        return ()
    told = "; ".join(_settings(stuck, rows, fields))
    return (
        f"{len(stuck)} of {len(rows)} runs ended above the trivial loss: {told}. "
        "Nothing was learnt there; all means include them.",
    )


def _settings(stuck: list[Row], rows: list[Row], fields: Sequence[str]) -> Iterator[str]:
    """Name runs by their fields; name a value of the first once if none of its runs learnt."""
    first = fields[0]
    for value in dict.fromkeys(row[first] for row in stuck):
        own, ran = ([r for r in some if r[first] == value] for some in (stuck, rows))
        if len(own) == len(ran) > 1:
            yield f"{first} {value} in all {len(own)} runs"
        else:
            yield from (_named(row, fields) for row in own)


def _named(row: Row, fields: Sequence[str]) -> str:
    values = [f"{field} {row[field]}".removesuffix(".0") for field in fields]
    return ", ".join([*values, row["protocol"], f"seed {row['seed']}"])


def _learnt_nothing(row: Row) -> bool:
    loss = row[shown_field([row], row["protocol"])]
    return loss is not None and loss > NOTHING_LEARNT * row["trivial"]


def left_out_remark(
    printed: Mapping[str, Iterable[Coordinate]], trained: Mapping[str, Iterable[Coordinate]]
) -> tuple[str, ...]:
    """Name the published settings that were not trained.

    >>> left_out_remark({"N = 4": (1, 8), "N = 16": (1,)}, {"N = 4": (8,)})
    ('Published, and not trained here: N = 4 at r = 1; N = 16 at every r.',)
    """
    told = []
    for name, ranks in printed.items():
        known, wanted = set(trained.get(name, ())), list(ranks)
        missing = [f"{rank:g}" for rank in wanted if rank not in known]
        if missing:
            every = len(missing) == len(wanted)
            told.append(f"{name} at " + ("every r" if every else f"r = {', '.join(missing)}"))
    return (f"Published, and not trained here: {'; '.join(told)}.",) if told else ()
