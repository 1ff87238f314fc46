"""How ``headwise advise`` looks in a terminal: headline, curve, table, findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwise.advice.notes import cost_note, geometry_notes
from headwise.advice.result import CLOSING, headline, of_plateau
from headwise.advice.retrieval import shown_floor
from headwise.advice.tables import met, named_rows, rotary, share, short
from headwise.cli.advise_curve import terminal_curves
from headwise.cli.console import emphasised, screen

if TYPE_CHECKING:
    from rich.table import Table

    from headwise.advice import Advice, Choice


def show(advice: Advice) -> None:
    """The whole answer."""
    out = screen()
    out.print(f"Asked of {advice.evidence.words}.\n")
    out.print(headline(advice), style="bold")
    if advice.caveat is not None:
        out.print(advice.caveat)
    out.print()
    out.print(terminal_curves(advice.evidence.curves, advice.rank.rank))
    out.print()
    out.print(_geometries(advice))
    for note in geometry_notes(advice):
        out.print(note, style="dim")
    out.print(_costs(advice))
    out.print(f"{cost_note(advice)}\n", style="dim")
    for line in advice.findings:
        label, colon, rest = line.partition(": ")
        styled = f"**{label}{colon}**{rest}" if colon and " " not in label else line
        out.print(emphasised(f"• {styled}"))
    out.print(f"\n{CLOSING}", style="dim")


def _geometries(advice: Advice) -> Table:
    """What each choice is, and what it reaches."""
    rows = _named(advice)
    columns = {"heads": [str(choice.geometry.heads) for _, _, choice in rows]}
    if any(choice.geometry.group > 1 for _, _, choice in rows):
        columns["kv"] = [str(choice.geometry.kv_heads) for _, _, choice in rows]
    columns["rank"] = [str(choice.rank) for _, _, choice in rows]
    if any(rotary(choice.geometry) for _, _, choice in rows):
        columns["rotary"] = [str(rotary(choice.geometry)) for _, _, choice in rows]
    columns["value\nrank"] = [str(choice.geometry.v_rank) for _, _, choice in rows]
    columns["of\nplateau"] = [of_plateau(choice.plateau_share) for _, _, choice in rows]
    columns["meets\nneed"] = [met(choice) for _, _, choice in rows]
    columns["lookup\nerror"] = [shown_floor(choice.floor, choice.exact) for _, _, choice in rows]
    table = _empty(list(columns))
    for (name, style, _), *cells in zip(rows, *columns.values(), strict=True):
        table.add_row(name, *cells, style=style)
    return table


def _costs(advice: Advice) -> Table:
    """What each choice costs, as such and beside the present model or habit, and the largest."""
    names = ("parameters", "FLOPs per token", "KV bytes per token")
    table = _empty([f"{name}\n{advice.usual} largest" for name in names])
    for names, style, choice in _named(advice):
        # All names stand in the table above; here is room for one.
        name = names.partition(" = ")[0]
        cells = [
            f"{short(getattr(choice.costs, field))} {share(usual):>5} "
            f"{share(choice.against_largest[field]):>7}"
            for field, usual in choice.against_usual.items()
        ]
        table.add_row(name, *cells, style=style)
    return table


def _named(advice: Advice) -> list[tuple[str, str, Choice]]:
    """Every choice with its name and style; those only compared with come after."""
    rows = [
        (name if name[0].isdigit() else f"  {name}", choice) for name, choice in named_rows(advice)
    ]
    styles = ["bold"] + [""] * (len(advice.choices) - 1) + ["dim"] * len(rows)
    return [(name, style, choice) for (name, choice), style in zip(rows, styles, strict=False)]


def _empty(titles: list[str]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table
