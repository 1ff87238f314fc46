"""What ``headwise reproduce`` and ``headwise report`` print."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer

from headwise.cli.console import complain, print_json, screen

if TYPE_CHECKING:
    from rich.console import Console

    from headwise.papers.reproduce import Reproduction
    from headwise.report import Table

#: Where the exhibits of each folder come from.
FOLDERS = {
    "rank2026": "On the Limitation and Redundancy of Transformers: A Rank Perspective",
    "heads2024": "On the Benefits of Rank in Attention Layers (2024)",
    "beyond": "our own, beyond the two papers",
}

#: Every scale, the smallest first; a list shows their first letters.
SCALES = ("miniature", "laptop", "gpu", "paper")

#: More claims that do not hold than this are counted; the report names them.
MOST_CLAIMS = 12

#: Columns of the summary that a narrow terminal leaves to the report.
ONLY_WHERE_WIDE = ("published as", "within 3 standard errors")

#: What the columns of a list are.
HEAD = "exhibit, scales (miniature, laptop, gpu, paper), largest recorded scale, title:"


def show(found: Reproduction, as_json: bool) -> None:
    """Print the verdicts; exit with 1 if an exhibit could not be drawn."""
    for note in found.notes:
        complain(note)
    if as_json:
        print_json(found.as_json())
    else:
        _print(found)
    if any(one.presentation is None for one in found.exhibits):
        raise typer.Exit(1)


def show_list(listed: Sequence[dict[str, Any]], as_json: bool) -> None:
    """Print one line for each exhibit, by paper; if the store was looked at, also what it holds."""
    if as_json:
        print_json(list(listed))
        return
    out = screen()
    out.print(HEAD)
    for folder, group in groupby(listed, key=lambda row: row["exhibit"].partition("/")[0]):
        rows = list(group)
        out.print(f"\n{folder}/  {FOLDERS.get(folder, '')}", style="bold")
        wide = max(len(row["exhibit"]) for row in rows) - len(folder) - 1
        for row in rows:
            _print_exhibit(row, wide, out)


def _print_exhibit(row: dict[str, Any], wide: int, out: Console) -> None:
    name, recorded = row["exhibit"].partition("/")[2], (row["recorded"] or ["-"])[-1]
    scales = "".join(scale[0] if scale in row["scales"] else "." for scale in SCALES)
    line = f"{name:<{wide}}  {scales}  {recorded:<6}  {row['title']}"
    if out.is_terminal:
        out.print(line, no_wrap=True, overflow="ellipsis")
    else:
        out.print(line, soft_wrap=True)
    stored = row.get("stored", {})
    if stored:
        states = "; ".join(f"{scale} {stored[scale]}" for scale in row["scales"])
        out.print(f"    in the store: {states}")


def _print_table(table: Table, out: Console) -> None:
    """Print a table; where a terminal is too narrow, with fewer columns and cells in lines."""
    text = table.text()
    if not out.is_terminal or max(map(len, text.splitlines())) <= out.width:
        print(text)
        return
    from rich.table import Table as Wrapped

    shown = [j for j, name in enumerate(table.columns) if name not in ONLY_WHERE_WIDE]
    wrapped = Wrapped(box=None, pad_edge=False, padding=(0, 1))
    for j in shown:
        wrapped.add_column(table.columns[j], no_wrap=j == 0, justify="left")
    for row in table.rows:
        wrapped.add_row(*("" if row[j] is None else str(row[j]) for j in shown))
    out.print(wrapped)


def _print(found: Reproduction) -> None:
    """The summary, then what does not hold; of a single exhibit, also what differs."""
    lines = found.failed_claims()
    _print_table(found.summary(), screen())
    if lines and len(lines) <= MOST_CLAIMS:
        print("\n".join(["", *lines]))
    print()
    if len({one.name for one in found.exhibits}) == 1:
        print(found.details())
    else:
        differing = sum(cell.differs for one in found.exhibits for cell in one.shown.cells)
        print(f"Published values that differ: {differing}. Claims that do not hold: {len(lines)}.")
        print("The report lists them with the remarks.")
    print(f"\nreport: {found.files[0]}")
