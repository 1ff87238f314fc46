"""Reproduce figures and tables of the papers, and say what agrees with the paper."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.errors import BadInputError
from headwise.papers.arguments import named, refuse_wrong_arguments, values_of_fields
from headwise.papers.catalogue import Entry, chosen, entries
from headwise.progress import SILENT, Progress
from headwise.report.results import Tabular

if TYPE_CHECKING:
    from headwise.papers.reproduction import Reproduced
    from headwise.report import Table

__all__ = ["Reproduction", "list_exhibits", "reproduce", "stored_exhibits"]

#: A path or an SQLAlchemy URL.
Location = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class Reproduction(Tabular):
    """Exhibits that were reproduced.

    >>> found = reproduce("heads2024/table_models", from_records=True)
    >>> found.summary().columns[:3]
    ('exhibit', 'published as', 'scale')

    Attributes:
        exhibits: Each exhibit with its presentation, or with the reason why there is none.
        files: The report and the figures that were written; the report comes first.
        notes: What was left out, and why.

    ``to_frame`` has a row for each compared value, with the columns exhibit, scale, cell, printed,
    measured, stderr, difference, tolerance, verdict and within_noise.
    """

    exhibits: tuple[Reproduced, ...]
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        cells = [cell for one in self.exhibits for cell in one.shown.cells]
        claims = [claim for one in self.exhibits for claim in one.shown.claims]
        return (
            f"Reproduction({len(self.exhibits)} exhibit{'s' * (len(self.exhibits) != 1)}, "
            f"{sum(cell.agrees for cell in cells)} of {len(cells)} published values agree, "
            f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold)"
        )

    def summary(self) -> Table:
        """Return one row for each exhibit: published values and claims that agree."""
        from headwise.papers.pages import summary_table

        return summary_table(self.exhibits)

    def failed_claims(self) -> list[str]:
        """Return a line for each claim that does not hold: a count alone does not name it."""
        return [
            f"{one.name}: does not hold: {claim.words} ({claim.source})"
            for one in self.exhibits
            for claim in one.shown.claims
            if not claim.holds
        ]

    def details(self) -> str:
        """Return what differs from the paper, cell by cell, and the remarks."""
        from headwise.papers.comparison import STAR, comparison_table

        lines, starred = [], False
        for one in self.exhibits:
            differing = [cell for cell in one.shown.cells if cell.differs]
            if differing:
                lines.append(
                    f"{one.name} at scale {one.wanted.scale.value} differs from the paper in:"
                )
                lines.append(comparison_table(differing).text())
                starred = True
            lines += [f"• {remark}" for remark in one.shown.remarks]
        return "\n".join([*lines, STAR] if starred else lines)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain numbers, lists and words."""
        exhibits = [_exhibit_fields(one) for one in self.exhibits]
        return {"exhibits": exhibits, "files": list(map(str, self.files))}

    def _rows(self) -> Iterator[dict[str, Any]]:
        for one in self.exhibits:
            for cell in one.shown.cells:
                own = {"exhibit": one.name, "scale": one.wanted.scale.value}
                yield own | cell_fields(cell)

    def plot(self) -> dict[str, Any]:
        """Return the figure of every exhibit that has one, by the exhibit's name."""
        from headwise.papers.pages import figures_of
        from headwise.report import draw

        return {name: draw(panels) for name, panels in figures_of(self.exhibits).items()}


def cell_fields(cell: Any) -> dict[str, Any]:
    """Return a compared value as names and values."""
    named = {"cell": cell.name, **{k: v for k, v in vars(cell).items() if k != "name"}}
    derived = ("difference", "tolerance", "agrees", "verdict", "within_noise")
    return named | {name: getattr(cell, name) for name in derived}


def _exhibit_fields(one: Reproduced) -> dict[str, Any]:
    from headwise.papers.comparison import verdict

    found: dict[str, Any] = {
        "exhibit": one.name,
        "source": one.wanted.exhibit.source,
        "scale": one.wanted.scale.value,
        "state": one.problem or "drawn",
    }
    if one.presentation is None:
        return found
    shown = one.presentation
    claims = [
        {"claim": claim.words, "holds": claim.holds, "printed": claim.printed or None}
        for claim in shown.claims
    ]
    return found | {
        "verdict": verdict(shown.cells, one.why_uncompared),
        "remarks": list(shown.remarks),
        "cells": list(map(cell_fields, shown.cells)),
        "claims": claims,
        "sources": list(one.sources),
    }


def reproduce(
    exhibits: str | Sequence[str],
    *,
    scale: str | None = None,
    device: str = "cpu",
    from_records: bool = False,
    take_records: bool = False,
    only: Mapping[str, str] | Sequence[str] | str | None = None,
    seconds: float | int | None = None,
    cluster: str | None = None,
    workers: int | None = None,
    store: Location | None = None,
    out: Location | None = None,
    retry: bool = False,
    progress: Progress = SILENT,
    command: str = "headwise.reproduce",
) -> Reproduction:
    """Run figures and tables of the papers, and compare them with the paper.

    Answers are kept in a store and not computed again, so a stopped run resumes.

    Args:
        exhibits: Names such as "rank2026/table_1", a folder such as "rank2026", or "all".
        scale: "miniature", "laptop", "gpu" or "paper". The default is "miniature"; with
            ``from_records`` it is the largest that is recorded.
        device: Where to compute: "cpu" or "cuda". On CUDA, training runs that differ in rank or
            heads alone train as one ensemble.
        from_records: Compute nothing, and show the rows that come with headwise.
        take_records: Start from the rows that come with headwise, and compute what is missing.
        only: Fields and values of the specs to compute, such as ``{"layers": "3"}``; or
            texts such as "layers=3".
        seconds: Start nothing new after this many seconds; needs "cuda" or one worker.
        cluster: Compute on a Dask cluster: "local", "local:4" or "tcp://HOST:PORT".
        workers: How many processes compute and draw; one per processor by default.
        store: Where answers are kept: a path or an SQLAlchemy URL.
        out: Folder for figures and report.html. Without it nothing is written.
        retry: Ask again what failed before.
        progress: Receives news of the run.
        command: What the stored rows name as the command that computed them.

    Returns:
        The exhibits, with what agrees with the paper.

    Raises:
        ParameterError: If parameters do not go together.
        BadInputError: If an exhibit, a scale or a combination of arguments does not exist.
        StoreError: If the store cannot be used.
        StoppedError: If Ctrl-C ended the run. What was answered is stored.

    >>> found = reproduce("heads2024/table_models", from_records=True)
    >>> found
    Reproduction(1 exhibit, 0 of 0 published values agree, 3 of 3 claims hold)
    """
    asked = dict(locals())
    names = named(exhibits)
    entries(names)  # refuses unknown names before anything heavy is imported
    refuse_wrong_arguments(asked)
    asked["only"] = values_of_fields(only)
    found, notes = _recorded(names, scale) if from_records else _computed(names, asked)
    return Reproduction(tuple(found), _written(found, out, workers), tuple(notes))


def _recorded(names: list[str], scale: str | None) -> tuple[list[Reproduced], list[str]]:
    from headwise.papers.computing import drawn_from_records

    return drawn_from_records(names, scale)


def _computed(names: list[str], asked: dict[str, Any]) -> tuple[list[Reproduced], list[str]]:
    """Compute what the store lacks; ``asked`` holds the parameters of ``reproduce``."""
    from headwise.papers.computing import Computation, computed, wanted_at

    wanted, left_out = wanted_at(names, asked["scale"] or "miniature")
    how = Computation(**{field.name: asked[field.name] for field in fields(Computation)})
    found, notes = computed(wanted, how)
    return found, [*left_out, *notes]


def stored_exhibits(
    exhibits: str | Sequence[str] = "all",
    *,
    store: Location | None = None,
    out: Location | None = None,
) -> Reproduction:
    """Present what a store holds, each exhibit at its largest complete scale.

    Args:
        exhibits: Names, a folder, or "all".
        store: A path or an SQLAlchemy URL.
        out: Folder for figures and report.html. Without it nothing is written.

    Returns:
        The exhibits that the store holds whole.

    Raises:
        BadInputError: If there is no store, or it contains no complete exhibit.
    """
    entries(named(exhibits))  # refuses unknown names before anything heavy is imported
    from headwise.papers.computing import store_exists, store_location
    from headwise.papers.reproduction import from_store, largest_stored
    from headwise.runs import Store

    location = store_location(store)
    if not store_exists(location):
        raise BadInputError(
            f"there is no store {location}",
            hint="run headwise reproduce without `from_records` first, or pass another `store`",
        )
    with Store.open(location) as opened:
        wanted = [largest_stored(opened, exhibit) for exhibit in chosen(named(exhibits))]
        found = [from_store(opened, one) for one in wanted if one is not None]
    if not found:
        raise BadInputError(
            f"{location} contains no complete exhibit",
            hint="headwise reproduce --list shows what it has",
        )
    return Reproduction(tuple(found), _written(found, out, None))


def list_exhibits(
    exhibits: str | Sequence[str] = "all", *, store: Location | None = None, states: bool = False
) -> list[dict[str, Any]]:
    """List exhibits with their scales and what is recorded of them.

    Args:
        exhibits: Names, a folder, or "all".
        store: A path or an SQLAlchemy URL.
        states: Also look up how much of each scale the store holds. This loads the exhibits.

    Returns:
        For each exhibit: its name, title, scales, the recorded scales, and with ``states`` how
        much is stored of each scale.

    >>> list_exhibits("rank2026/table_2")[0]["scales"]
    ['miniature', 'paper']
    """
    found = entries(named(exhibits))
    rows = [
        {
            "exhibit": entry.name,
            "title": entry.title,
            "scales": list(entry.scales),
            "recorded": list(entry.recorded),
        }
        for entry in found
    ]
    if states:
        for row, entry in zip(rows, found, strict=True):
            row["stored"] = _states(entry, store)
    return rows


def _states(entry: Entry, store: Location | None) -> dict[str, str]:
    """How much of each scale a store holds; looking does not create one."""
    from headwise.papers.computing import store_exists, store_location
    from headwise.papers.reproduction import Wanted, state_in
    from headwise.runs import Store

    location = store_location(store)
    if not store_exists(location):
        return dict.fromkeys(entry.scales, "missing")
    exhibit = entry.load()
    with Store.open(location) as opened:
        return {s.value: str(state_in(opened, Wanted(exhibit, s))) for s in exhibit.scales}


def _written(
    found: Sequence[Reproduced], out: Location | None, workers: int | None
) -> tuple[Path, ...]:
    if out is None:
        return ()
    from headwise.papers.pages import write_exhibits
    from headwise.runs.executors.protocol import processors

    return tuple(write_exhibits(found, Path(out), workers or processors()))
