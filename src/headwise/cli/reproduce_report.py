"""What ``headwise reproduce`` and ``headwise report`` print and write."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from headwise.cli.console import print_json, screen
from headwise.papers.comparison import FLOOR, STANDARD_ERRORS, Cell, comparison_table, verdict
from headwise.papers.exhibit import Exhibit, Presentation
from headwise.papers.pages import summary_table, write_exhibits
from headwise.papers.recorded import recorded_scales
from headwise.papers.reproduction import Reproduced, State, Wanted, state_in
from headwise.runs import Store
from headwise.runs.executors.protocol import processors
from headwise.runs.locations import DEFAULT_STORE

#: What the star in the table of cells stands for: the rule of headwise.papers.comparison.
STAR = (
    f"* further from print than allowed: {FLOOR} (of a loss, a fifth of the printed value if that "
    f"is less), or {STANDARD_ERRORS:.0f} combined standard errors of both values if that is more"
)


def show(found: Sequence[Reproduced], out: Path, as_json: bool, workers: int | None = None) -> None:
    """Write figures and the page, print verdicts; exit 1 if an exhibit could not be drawn."""
    files = write_exhibits(found, out, workers or processors())
    if as_json:
        print_json({"exhibits": [_as_json(one) for one in found], "files": list(map(str, files))})
    else:
        _print(found, files)
    if any(one.presentation is None for one in found):
        raise typer.Exit(1)


def show_states(exhibits: Sequence[Exhibit], place: str | None, as_json: bool) -> None:
    """Every exhibit with its scales, what is stored of each, and what comes with headwise."""
    with ExitStack() as stack:
        store = _existing(place, stack)
        rows = [_states(exhibit, store) for exhibit in exhibits]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        screen().print(f"[bold]{row['exhibit']}[/bold]  {row['title']}")
        for scale, state in row["scales"].items():
            extra = "; recorded rows: --from-records" if scale in row["recorded"] else ""
            screen().print(f"    {scale:<10} {state}{extra}")


def _existing(place: str | None, stack: ExitStack) -> Store | None:
    """The store, or None where looking for it would create it."""
    location = str(DEFAULT_STORE) if place is None else place
    if "://" not in location and not Path(location).exists():
        return None
    return stack.enter_context(Store.open(location))


def _states(exhibit: Exhibit, store: Store | None) -> dict[str, Any]:
    return {
        "exhibit": exhibit.name,
        "title": exhibit.title,
        "scales": {
            scale.value: str(_state(Wanted(exhibit, scale), store)) for scale in exhibit.scales
        },
        "recorded": [scale.value for scale in recorded_scales(exhibit)],
    }


def _state(wanted: Wanted, store: Store | None) -> State:
    if store is None:
        return State(answered=0, failed=0, asked=len(wanted.specs()))
    return state_in(store, wanted)


def _print(found: Sequence[Reproduced], files: Sequence[Path]) -> None:
    for one in found:
        if one.presentation is not None:
            _print_notes(one.wanted.exhibit.name, one.presentation, alone=len(found) == 1)
    for line in failed_claims(found):
        typer.echo(line)
    typer.echo(summary_table(found).text())
    typer.echo(f"\nreport: {files[0]}")


def _print_notes(name: str, shown: Presentation, *, alone: bool) -> None:
    """What differs from print, with the remarks; where nothing is printed these, if asked alone.

    Of many exhibits the report has the remarks: here they would push the summary out of sight.
    """
    differing = [cell for cell in shown.cells if cell.differs]
    if differing:
        screen().print(f"[bold]{name}[/bold] differs from print in:")
        typer.echo(comparison_table(differing).text())
        typer.echo(STAR)
    elif alone and shown.remarks and not shown.cells:
        screen().print(f"[bold]{name}[/bold], to know of it:")
    else:
        return
    for remark in shown.remarks:
        screen().print(f"• {remark}", highlight=False, markup=False)
    typer.echo()


def failed_claims(found: Sequence[Reproduced]) -> list[str]:
    """A line for each claim that does not hold: a count alone does not say which it is."""
    return [
        f"{one.wanted.exhibit.name}: does not hold: {claim.words}"
        for one in found
        if one.presentation is not None
        for claim in one.presentation.claims
        if not claim.holds
    ]


def _as_json(one: Reproduced) -> dict[str, Any]:
    found: dict[str, Any] = {
        "exhibit": one.wanted.exhibit.name,
        "scale": one.wanted.scale.value,
        "state": one.problem or "drawn",
    }
    if one.presentation is None:
        return found
    shown = one.presentation
    return found | {
        "verdict": verdict(shown.cells, one.why_uncompared),
        "remarks": list(shown.remarks),
        "cells": [_cell_as_json(cell) for cell in shown.cells],
        "claims": [
            {"claim": claim.words, "holds": claim.holds, "source": claim.source}
            for claim in shown.claims
        ],
        "sources": list(one.sources),
    }


def _cell_as_json(cell: Cell) -> dict[str, Any]:
    derived = ("difference", "tolerance", "agrees", "verdict")
    return vars(cell) | {name: getattr(cell, name) for name in derived}
