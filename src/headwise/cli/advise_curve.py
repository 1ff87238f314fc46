"""Rank curves in the terminal: head dimension on a logarithmic axis, one mark per curve."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headwise.advice.curves import RankCurve

COLUMNS, ROWS = 56, 11

#: Mark of each curve, and its name in the legend. Earlier ones are drawn over later ones.
MARKS: dict[str, tuple[str, str]] = {
    "model": ("●", "model's own start"),
    "model, causal": ("■", "own start, causal"),
    "paper": ("○", "N(0, 1) weights"),
    "paper, causal": ("○", "N(0, 1), causal"),
    "law": ("◇", "finite law"),
    "law, causal": ("◇", "finite law, causal"),
}


def terminal_curves(curves: Sequence[RankCurve], advised: int) -> str:
    """Every curve, the first one over the others, with a line at the advised rank.

    >>> curve = RankCurve("model", (1, 2, 4), (0.2, 0.7, 1.0), (0.0,) * 3, 8, 1.0, "measured")
    >>> print(terminal_curves([curve], 2).splitlines()[1])
    1.0 ┤                           ┆                           ●
    """
    last = math.log2(max(curve.head_dims[-1] for curve in curves))
    canvas = [[" "] * COLUMNS for _ in range(ROWS)]
    line = _column(advised, last)
    for row in canvas:
        row[min(line, COLUMNS - 1)] = "┆"
    for curve in reversed(curves):
        for dim, mean in zip(curve.head_dims, curve.mean, strict=True):
            canvas[_row(mean)][_column(dim, last)] = MARKS[curve.name][0]
    labels = [f"{1 - row / (ROWS - 1):3.1f} ┤" for row in range(ROWS)]
    lines = [label + "".join(row).rstrip() for label, row in zip(labels, canvas, strict=True)]
    legend = "   ".join(" ".join(MARKS[c.name]) for c in curves)
    axis = f"    └{'─' * COLUMNS}"
    return "\n".join(
        ["rank / tokens", *lines, axis, _ticks(curves, last), f"     {legend}   ┆ advised"]
    )


def _ticks(curves: Sequence[RankCurve], last: float) -> str:
    """The powers of two under the axis, where there is room."""
    text = [" "] * (COLUMNS + 4)
    free = 0
    for dim in sorted({d for curve in curves for d in curve.head_dims if d & (d - 1) == 0}):
        start = _column(dim, last)
        if start >= free:
            text[start : start + len(str(dim))] = str(dim)
            free = start + len(str(dim)) + 1
    return "     " + "".join(text).rstrip() + "  head dimension"


def _row(ratio: float) -> int:
    return min(ROWS - 1, max(0, round((1 - ratio) * (ROWS - 1))))


def _column(dim: int, last: float) -> int:
    return round(math.log2(dim) / last * (COLUMNS - 1)) if last else 0
