"""How ``headwise advise`` looks in a terminal: headline, curve, table, findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwise.advice.candidates import content_rank
from headwise.advice.result import CLOSING, headline
from headwise.cli.advise_curve import terminal_curves
from headwise.cli.console import screen

if TYPE_CHECKING:
    from rich.table import Table

    from headwise.advice import Advice, Choice


def show(advice: Advice) -> None:
    """The whole answer."""
    out = screen()
    out.print(f"Asked of {advice.evidence.words}.\n")
    out.print(f"[bold]{headline(advice)}[/bold]\n")
    out.print(terminal_curves(advice.evidence.curves, advice.rank.rank), markup=False)
    out.print()
    out.print(_geometries(advice))
    out.print(_costs(advice))
    for line in advice.findings:
        label, colon, rest = line.partition(": ")
        styled = f"[bold]{label}{colon}[/bold]{rest}" if colon and " " not in label else line
        out.print(f"• {styled}")
    out.print(f"\n[dim]{CLOSING}[/dim]")


def _geometries(advice: Advice) -> Table:
    """What each choice is, and what it reaches."""
    every = (*advice.choices, *advice.references)
    grouped = any(choice.geometry.kv_heads != choice.geometry.heads for choice in every)
    titles = ["heads", *(["kv"] if grouped else []), "rank", "value rank"]
    table = _empty([*titles, "of plateau", "lookup error"])
    for name, style, choice in _named(advice):
        g = choice.geometry
        shared = [str(g.kv_heads)] if grouped else []
        exact = content_rank(g) >= advice.rank.retrieval
        lookup = "0" if exact else f"≥ {choice.floor:.3f}"
        cells = [str(g.heads), *shared, str(g.qk_rank), str(g.v_rank)]
        table.add_row(name, *cells, f"{choice.plateau_share:.0%}", lookup, style=style)
    return table


def _costs(advice: Advice) -> Table:
    """What each choice costs, and how that compares with the habit and with the largest."""
    names = ("parameters", "FLOPs per token", "KV bytes per token")
    table = _empty([f"{name}\nhabit  most" for name in names])
    for name, style, choice in _named(advice):
        cells = [
            f"{short(getattr(choice.costs, field))}{habit:6.0%}{choice.against_largest[field]:6.0%}"
            for field, habit in choice.against_habit.items()
        ]
        table.add_row(name, *cells, style=style)
    return table


def _named(advice: Advice) -> list[tuple[str, str, Choice]]:
    """Every choice with its name and style; those only compared with come after."""
    ranked = [
        (f"{place} {choice.role}", "bold" if place == 1 else "", choice)
        for place, choice in enumerate(advice.choices, 1)
    ]
    return ranked + [(f"  {choice.role}", "dim", choice) for choice in advice.references]


def _empty(titles: list[str]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1))
    table.add_column("", no_wrap=True)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def short(number: int | float) -> str:
    """A number in three digits.

    >>> short(64), short(4096), short(2_359_296), short(18.9e6)
    ('64', '4.1k', '2.36M', '18.9M')
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            value = number / size
            digits = 2 if value < 10 and size >= 1e6 else 1 if value < 100 else 0
            return f"{value:.{digits}f}{letter}"
    return str(number)
