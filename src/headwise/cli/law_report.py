"""The answer of ``headwise law`` in the terminal: a table and a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwise.report import Curve, Line, Panel, terminal_plot

if TYPE_CHECKING:
    from rich.console import Group

    from headwise.theory import Law


def table(curve: Law) -> Group:
    """One row per head dimension; the critical one stands out."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    under = "" if curve.mask == "none" else f", {curve.mask} mask"
    size = f"{curve.length:,} tokens{under} (barrier {curve.barrier:.4f})"
    result = Table(box=box.SIMPLE_HEAD)
    for name in ("head dimension", "rank / length", "of barrier"):
        result.add_column(name, justify="right")
    result.add_column("method")
    for row in curve.rows:
        marked = row.head_dim == curve.critical_head_dim
        note = f"{row.method}  ← reaches {curve.fraction:.0%}" if marked else row.method
        share = f"{row.ratio / curve.barrier:.0%}"
        cells = (f"{row.head_dim:,}", f"{row.ratio:.4g}", share, note)
        result.add_row(*cells, style="bold" if marked else "")
    # A title of the table itself would be wrapped to the width of its columns.
    return Group(f"attention rank of a random head, {size}", result)


def picture(curve: Law) -> str:
    """Rank over length against head dimension, the barrier and the critical head dimension."""
    dims = tuple(int(row.head_dim) for row in curve.rows)
    predicted = Curve("predicted", Line(dims, tuple(row.ratio for row in curve.rows)))
    levels = (("barrier", curve.barrier),)
    axes = ("random head", "head dimension", "rank / length")
    critical = curve.critical_head_dim
    return terminal_plot(
        Panel(*axes, (predicted,), x_scale="log", levels=levels),
        (f"critical head dimension {critical:,}", critical),
    )
