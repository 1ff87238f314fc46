"""What ``headwise reproduce`` and ``headwise report`` print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from headwise.cli.console import complain, emphasised, print_json, screen
from headwise.papers.comparison import FLOOR, STANDARD_ERRORS, comparison_table, verdict
from headwise.papers.reproduce import Reproduction, cell_fields

if TYPE_CHECKING:
    from headwise.papers.reproduction import Reproduced

#: What the star in the table of cells means: the rule of headwise.papers.comparison.
STAR = (
    f"* further from print than allowed: {FLOOR} (for a loss, a fifth of the printed value if that "
    f"is less), or {STANDARD_ERRORS:.0f} combined standard errors if that is more"
)


def show(found: Reproduction, as_json: bool) -> None:
    """Print the verdicts; exit with 1 if an exhibit could not be drawn."""
    for note in found.notes:
        complain(note)
    if as_json:
        exhibits = [_as_json(one) for one in found.exhibits]
        print_json({"exhibits": exhibits, "files": list(map(str, found.files))})
    else:
        _print(found)
    if any(one.presentation is None for one in found.exhibits):
        raise typer.Exit(1)


def show_list(listed: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print every exhibit with its scales, and how much is stored of each if that is known."""
    if as_json:
        print_json(list(listed))
        return
    for row in listed:
        screen().print(emphasised(f"**{row['exhibit']}**  {row['title']}"))
        for scale in row["scales"]:
            state = row.get("stored", {}).get(scale, "")
            extra = ["recorded: draw it with --from-records"] * (scale in row["recorded"])
            screen().print(f"    {scale:<10} {'; '.join([*([state] if state else []), *extra])}")


def failed_claims(found: Sequence[Reproduced]) -> list[str]:
    """Return a line for each claim that does not hold: a count alone does not name it."""
    return [
        f"{one.name}: does not hold: {claim.words} ({claim.source})"
        for one in found
        for claim in one.shown.claims
        if not claim.holds
    ]


def _print(found: Reproduction) -> None:
    """The summary, then what does not hold; of a single exhibit, also the rows that differ."""
    lines = failed_claims(found.exhibits)
    print(found.summary().text())
    print("\n".join(["", *lines] if lines else []))
    names = {one.name for one in found.exhibits}
    if len(names) == 1:
        for one in found.exhibits:
            _print_details(one)
        if any(cell.differs for one in found.exhibits for cell in one.shown.cells):
            print(STAR)
    else:
        differing = sum(cell.differs for one in found.exhibits for cell in one.shown.cells)
        print(f"{differing} printed values differ; the report lists them with the remarks.")
    print(f"\nreport: {found.files[0]}")


def _print_details(one: Reproduced) -> None:
    differing = [cell for cell in one.shown.cells if cell.differs]
    if differing:
        title = f"{one.name} at scale {one.wanted.scale.value} differs from print in:"
        screen().print(title, style="bold")
        print(comparison_table(differing).text())
    for remark in one.shown.remarks:
        screen().print(f"• {remark}")


def _as_json(one: Reproduced) -> dict[str, Any]:
    found: dict[str, Any] = {
        "exhibit": one.name,
        "source": one.wanted.exhibit.source,
        "scale": one.wanted.scale.value,
        "state": one.problem or "drawn",
    }
    if one.presentation is None:
        return found
    shown = one.presentation
    return found | {
        "verdict": verdict(shown.cells, one.why_uncompared),
        "remarks": list(shown.remarks),
        "cells": list(map(cell_fields, shown.cells)),
        "claims": list(_claims(one)),
        "sources": list(one.sources),
    }


def _claims(one: Reproduced) -> Iterator[dict[str, Any]]:
    for claim in one.shown.claims:
        yield {"claim": claim.words, "holds": claim.holds, "printed": claim.printed or None}
