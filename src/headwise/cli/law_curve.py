"""The answer of ``headwise law`` in the terminal: a table and a plot."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from headwise import Law

_PLOT_COLUMNS, _PLOT_ROWS = 60, 14

#: The same plot for outputs that lack these marks; each one stays distinct.
_ASCII = str.maketrans({"◆": "#", "●": "o", "┄": "-", "·": ".", "┤": "|", "└": "+", "─": "="})


def table(curve: Law) -> Table:
    """One row per head dimension; the critical one stands out."""
    from rich import box
    from rich.table import Table

    under = "" if curve.mask == "none" else f", {curve.mask} mask"
    title = f"rank of a random head, {curve.length} tokens{under} (barrier {curve.barrier:.4f})"
    result = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("head dimension", "rank / length", "of barrier"):
        result.add_column(name, justify="right")
    result.add_column("method")
    for row in curve.rows:
        marked = row.head_dim == curve.critical_head_dim
        note = f"{row.method}  ← reaches {curve.fraction:.0%}" if marked else row.method
        share = f"{row.ratio / curve.barrier:.0%}"
        cells = (str(row.head_dim), f"{row.ratio:.4g}", share, note)
        result.add_row(*cells, style="bold" if marked else "")
    return result


def terminal_plot(curve: Law, *, ascii_only: bool = False) -> str:
    """Rank over length against head dimension (logarithmic), with the barrier as a line."""
    top = 1.1 * curve.barrier
    canvas = [[" "] * _PLOT_COLUMNS for _ in range(_PLOT_ROWS)]
    canvas[_row(curve.barrier, top)] = ["┄"] * _PLOT_COLUMNS
    points = [(int(row.head_dim), row.ratio) for row in curve.rows]
    last = math.log2(points[-1][0])
    for before, after in itertools.pairwise(points):
        _draw_segment(canvas, before, after, last=last, top=top)
    for dim, ratio in points:
        mark = "◆" if dim == curve.critical_head_dim else "●"
        canvas[_row(ratio, top)][_column(dim, last)] = mark
    labels = [f"{top * (1 - (row + 0.5) / _PLOT_ROWS):5.2f} ┤" for row in range(_PLOT_ROWS)]
    lines = [label + "".join(line).rstrip() for label, line in zip(labels, canvas, strict=True)]
    axis = f"      └{'─' * _PLOT_COLUMNS}"
    ends = f"       1{f'head dimension {points[-1][0]}':>{_PLOT_COLUMNS - 1}}"
    legend = f"       ● predicted   ◆ critical head dimension {curve.critical_head_dim}   ┄ barrier"
    plot = "\n".join(["rank / length", *lines, axis, ends, legend])
    return plot.translate(_ASCII) if ascii_only else plot


def _draw_segment(
    canvas: list[list[str]],
    before: tuple[int, float],
    after: tuple[int, float],
    *,
    last: float,
    top: float,
) -> None:
    start, end = _column(before[0], last), _column(after[0], last)
    for column in range(start + 1, end):
        share = (column - start) / (end - start)
        canvas[_row(before[1] + share * (after[1] - before[1]), top)][column] = "·"


def _row(ratio: float, top: float) -> int:
    return min(_PLOT_ROWS - 1, max(0, int((1 - ratio / top) * _PLOT_ROWS)))


def _column(dim: int, last: float) -> int:
    return round(math.log2(dim) / last * (_PLOT_COLUMNS - 1))
