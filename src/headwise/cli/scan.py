"""headwise scan: the ranks of every layer and head of a checkpoint on a text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli.console import UsageError

if TYPE_CHECKING:
    from headwise.probing import Scan

Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Folder of a checkpoint.", show_default=False),
]
Text = Annotated[
    str, typer.Option("--text", help="Text file to scan on; - reads stdin.", show_default=False)
]
Length = Annotated[int, typer.Option("--length", min=2, help="Largest number of tokens.")]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", help="Draw the heat map into a file: png, svg or pdf."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def scan(
    model: Model, text: Text, length: Length = 512, plot: Plot = None, as_json: AsJson = False
) -> None:
    """Measure the rank of every attention head of a checkpoint on a text."""
    content = _content(text)
    from headwise.probing import scan_checkpoint

    found = scan_checkpoint(model, content, length=length)
    if as_json:
        from dataclasses import asdict

        from headwise.cli.console import print_json

        print_json({"model": str(model), "rows": [asdict(row) for row in found.rows]})
    else:
        _print(found)
    if plot is not None:
        found.plot(file=plot)
        from headwise.cli.console import note

        note(f"drawn: {plot}")


def _content(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    try:
        return Path(text).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"--text {text!r} is not a readable UTF-8 file; pass one") from None


def _print(found: Scan) -> None:
    """Print one line for each layer: means over its heads."""
    from rich.table import Table

    from headwise.cli.console import screen

    table = Table(
        "layer", "heads", "tokens", "rank 1e-8", "rank 1e-2", "effective", "mask", box=None
    )
    for layer in found.layers:
        rows = [row for row in found.rows if row.layer == layer]
        columns = ("tokens", "rank", "coarse_rank", "effective_rank")
        means = [sum(getattr(row, name) for row in rows) / len(rows) for name in columns]
        table.add_row(layer, str(len(rows)), *(f"{mean:.1f}" for mean in means), rows[0].mask)
    screen().print(table)
