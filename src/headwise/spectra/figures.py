"""Draw singular values and certified ranks; matplotlib is loaded only when a figure is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from headwise.report import Curve, Line, Panel, draw

#: The most matrices of a batch that a figure of singular values shows.
CURVES = 8


def spectrum_figure(rows: Iterable[tuple[tuple[int, ...], Sequence[float]]], epsilon: float) -> Any:
    """Draw the singular values of the first matrices, and ε as a dashed line."""
    curves = tuple(
        Curve(", ".join(map(str, index)) or "matrix", _positive(values))
        for (index, values), _ in zip(rows, range(CURVES), strict=False)
    )
    # A logarithmic axis without a single point has no range.
    scale = "log" if any(len(curve.mean) for curve in curves) else "linear"
    axes = Panel("Spectrum", "number", "singular value", curves, y_scale=scale)
    return draw([replace(axes, levels=(("tolerance", epsilon),))])


def rank_figure(low: Sequence[int], high: Sequence[int]) -> Any:
    """Draw the rank of each matrix, and the largest possible one where it is not certain."""
    curves = (Curve("rank", Line(tuple(range(len(low))), tuple(low)), style="rings"),)
    if uncertain := tuple(i for i in range(len(low)) if low[i] < high[i]):
        most = Line(uncertain, tuple(high[i] for i in uncertain))
        curves += (Curve("at most", most, style="rings"),)
    return draw([Panel("Rank", "matrix", "rank", curves)])


def _positive(values: Sequence[float]) -> Line:
    """Return the values above zero: a logarithmic axis cannot show zero."""
    shown = tuple(value for value in values if value > 0)
    return Line(tuple(range(1, len(shown) + 1)), shown)
