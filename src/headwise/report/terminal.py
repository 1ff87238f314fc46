"""Draw a panel as text, for a terminal of 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from headwise.report.figures import Number, Panel

#: Size of the plot, with its frame, title and label.
COLUMNS, ROWS = 76, 17

#: Marks of the curves, of the way between their points, of levels and of a place.
MARKS, BETWEEN, LEVEL, PLACE = ("●", "○", "◆", "■"), "∙", "┄", "│"

#: The most ticks that fit on an axis.
TICKS = 12


def terminal_plot(panel: Panel, place: tuple[str, Number] | None = None) -> str:
    """Draw the means of the curves and the levels of a panel as text, without colours.

    Args:
        panel: What to draw. A logarithmic axis needs positive numbers.
        place: The name and the place of a vertical line; None draws none.

    Returns:
        The plot, and a legend below it.

    Example:
        >>> from headwise.report import Curve, Line
        >>> panel = Panel("A line", "x", "", (Curve("it", Line((1, 2), (3, 4))),))
        >>> print(*(line.strip() for line in terminal_plot(panel).splitlines()[::17]))
        A line ● it
    """
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(COLUMNS, ROWS)
    legend = _draw(plotext, panel)
    if place is not None:
        plotext.vertical_line(_places([place[1]], _bases(panel)[0])[0])
        legend.append(f"{PLACE} {place[0]}")
    plotext.xlabel(panel.x_label)
    plotext.title(": ".join(filter(None, (panel.title, panel.y_label))))
    text = plotext.uncolorize(plotext.build())
    plotext.clear_figure()
    # plotext would put the legend over the curves.
    joined = "   ".join(legend)
    below = [joined] if len(joined) <= COLUMNS else legend
    lines = [*text.splitlines(), *(f"     {line}" for line in below)]
    return "\n".join(line.rstrip() for line in lines)


def _draw(plotext: Any, panel: Panel) -> list[str]:
    """Draw levels, curves and ticks; return the lines of the legend."""
    base, y_base = _bases(panel)
    every_x = _places((x for curve in panel.curves for x in curve.mean.x), base)
    heights = [y for curve in panel.curves for y in curve.mean.y]
    heights += [height for _, height in panel.levels]
    for _, height in panel.levels:
        step = (max(every_x) - min(every_x)) / COLUMNS
        line = [min(every_x) + step * place for place in range(COLUMNS + 1)]
        plotext.scatter(line, _places([height] * len(line), y_base), marker=LEVEL)
    marked = list(zip(panel.curves, MARKS, strict=False))
    # The first curve is drawn last, above the others.
    for curve, mark in reversed(marked):
        points = _places(curve.mean.x, base), _places(curve.mean.y, y_base)
        if curve.style == "joined":
            plotext.plot(*points, marker=BETWEEN)
        plotext.scatter(*points, marker=mark)
    if base:
        _name_powers(plotext.xticks, every_x, base)
    elif panel.x_ticks:
        plotext.xticks(panel.x_ticks)
    if y_base:
        _name_powers(plotext.yticks, _places(heights, y_base), y_base)
    else:
        plotext.ylim(0, 1.05 * max(heights))
    named = [f"{mark} {curve.label}" for curve, mark in marked]
    return named + [f"{LEVEL} {name}" for name, _ in panel.levels]


def _bases(panel: Panel) -> tuple[int, int]:
    """Return the bases of logarithmic axes; 0 for a linear one."""
    return 2 * (panel.x_scale == "log"), 10 * (panel.y_scale == "log")


def _places(values: Iterable[Number], base: int) -> list[float]:
    """Return exponents for a logarithmic axis: plotext labels a linear one only."""
    return [math.log(value, base) if base else float(value) for value in values]


def _name_powers(name: Any, places: Sequence[float], base: int) -> None:
    powers = range(math.ceil(min(places) - 1e-9), math.floor(max(places) + 1e-9) + 1)
    shown = powers[:: 1 + len(powers) // TICKS]
    name(shown, [f"1e{power:+03d}" if base == 10 else str(base**power) for power in shown])
