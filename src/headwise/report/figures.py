"""Draw figures in one style: means with bands, published values hollow, predictions as thin lines.

Each curve has its own colour, darkness and marker, so figures can be read in grey. The same data
give the same file, byte for byte.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headwise.errors import BadInputError
from headwise.report.axis_names import name_heights, name_levels, name_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: From dark to light, so that the order shows in grey; markers distinguish them too.
COLOURS = ("#1d3557", "#a4243b", "#3f7d20", "#7b5ea7", "#4c8f9c", "#d98324", "#62b6d9", "#b8c0c8")
MARKERS = ("o", "s", "^", "D", "<", "v", "P", "X")
#: Broken lines show the curve below where curves coincide.
LINES = ("-", (0, (5, 1.5)), (0, (6, 1.5, 1.5, 1.5)))

#: Width and height of a pair of axes, and width of the legend beside it, in inches: text stays
#: legible where a page is 800 pixels wide.
PANEL_WIDTH, PANEL_HEIGHT, LEGEND_WIDTH = 4.0, 3.2, 1.5

Number = float | int

_STYLE: dict[Any, Any] = {
    "figure.dpi": 160,
    "savefig.dpi": 160,
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "headwise",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Line:
    """Points, in the order they are drawn.

    Args:
        x: Horizontal places.
        y: Heights, one for each place.

    Raises:
        BadInputError: If there are not as many heights as places.

    Example:
        >>> len(Line((1, 2, 4), (0.1, 0.2, 0.3)))
        3
    """

    x: tuple[Number, ...] = ()
    y: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise BadInputError(
                f"expected {len(self.x)} values, got {len(self.y)}",
                hint="pass one per place",
            )

    def __len__(self) -> int:
        return len(self.x)

    @classmethod
    def of(cls, points: Mapping[Any, Number]) -> Line:
        """Make a line from heights by their places."""
        return cls(tuple(points), tuple(points.values()))


@dataclass(frozen=True)
class Curve:
    """A measured curve, with its band and the values to compare it with.

    Args:
        label: The name in the legend.
        mean: The measured points.
        spread: Half the width of the band at each point; empty for no band.
        printed: Published values, drawn hollow.
        law: The prediction, drawn as a thin line.
        style: "joined" connects the points; "rings" draws open rings, which stay visible around
            another curve.
        least: The smallest measurement behind each mean, drawn dotted.

    Raises:
        BadInputError: If ``spread`` does not fit the points.

    Example:
        >>> Curve("64 tokens", Line((1, 2), (0.1, 0.2)), spread=(0.01, 0.01)).label
        '64 tokens'
    """

    label: str
    mean: Line
    spread: tuple[Number, ...] = ()
    printed: Line = Line()
    law: Line = Line()
    style: Literal["joined", "rings"] = "joined"
    least: Line = Line()

    def __post_init__(self) -> None:
        if self.spread and len(self.spread) != len(self.mean):
            raise BadInputError(
                f"expected {len(self.mean)} half widths for a curve, got {len(self.spread)}",
                hint="pass one per point, or none",
            )


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Args:
        title: The heading.
        x_label: The label of the horizontal axis.
        y_label: The label of the vertical axis.
        curves: What to draw.
        x_scale: "linear" or "log".
        y_scale: "linear" or "log".
        x_ticks: The places with a tick; chosen by matplotlib if empty.
        levels: Names (or "") and heights of dashed horizontal lines.
        law_label: The name of the thin lines.
        shared_y: Whether panels with the same label share one vertical range.
        ceiling: The largest value that is possible; bands end there.

    Example:
        >>> Panel("Rank levels off", "head dimension", "rank / tokens", ()).x_scale
        'linear'
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    x_ticks: tuple[Number, ...] = ()
    levels: tuple[tuple[str, Number], ...] = ()
    law_label: str = "law"
    shared_y: bool = False
    ceiling: Number = math.inf


#: More panels than this go into several rows.
IN_A_ROW = 2


def draw(panels: Sequence[Panel]) -> Any:
    """Draw panels, two in a row; the figure is not attached to a window.

    Neighbouring panels that name the same curves share a legend.

    Args:
        panels: What to draw.

    Returns:
        A matplotlib ``Figure`` with one axes for each panel.

    Example:
        >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
        >>> len(draw([panel]).axes)
        1
    """
    from matplotlib.figure import Figure

    columns = min(len(panels), IN_A_ROW)
    rows = -(-len(panels) // columns)
    legends = _legends(panels, columns)
    beside = max(Counter(place // columns for place in legends).values(), default=0)
    width = PANEL_WIDTH * columns + LEGEND_WIDTH * beside
    with in_style():
        figure = Figure(figsize=(width, PANEL_HEIGHT * rows), layout="constrained")
        places = figure.subplots(rows, columns, squeeze=False).flat
        # Axes last in zip: taken after the last panel, they would be neither drawn nor removed.
        for panel, axes in zip(panels, places, strict=False):
            _draw_panel(axes, panel)
        for empty in places:
            empty.remove()
        _share_heights(panels, figure.axes)
        for panel, axes in zip(panels, figure.axes, strict=True):
            _name_panel(axes, panel)
        for place, group in legends.items():
            _draw_legend(figure.axes[place], [figure.axes[number] for number in group])
    return figure


def _share_heights(panels: Sequence[Panel], places: Sequence[Axes]) -> None:
    """Give panels with ``shared_y`` and the same label one common range."""
    alike: dict[str, list[Axes]] = {}
    for panel, axes in zip(panels, places, strict=True):
        if panel.shared_y:
            alike.setdefault(panel.y_label, []).append(axes)
    for group in alike.values():
        low, high = zip(*(axes.get_ylim() for axes in group), strict=True)
        for axes in group:
            axes.set_ylim(min(low), max(high))


@contextmanager
def in_style() -> Iterator[None]:
    """Draw and save in the style of these figures inside the block."""
    import matplotlib

    defaults: dict[Any, Any] = dict(matplotlib.rcParamsDefault)
    with matplotlib.rc_context(defaults | _STYLE):
        yield


def _legends(panels: Sequence[Panel], columns: int) -> dict[int, list[int]]:
    """Return, for each panel with a legend beside it, the panels that the legend explains."""
    # Neighbours share a legend if no look has two names; it is in the first of their rows.
    groups: list[list[int]] = []
    known: dict[Any, str] = {}
    for number, panel in enumerate(panels):
        own = _looks(panel)
        if not groups or any(known.get(look, name) != name for look, name in own.items()):
            groups.append([])
            known = {}
        groups[-1].append(number)
        known |= own
    named = [group for group in groups if any(_looks(panels[number]) for number in group)]
    return {max(n for n in own if n // columns == own[0] // columns): own for own in named}


def _looks(panel: Panel) -> dict[Any, str]:
    """Return the name of each look in a panel: of its curves by number, and of extra lines."""
    shown = {
        (number, curve.style): curve.label
        for number, curve in enumerate(panel.curves)
        if _drawn(curve)
    }
    law = {"law": panel.law_label} if any(len(curve.law) for curve in panel.curves) else {}
    return shown | law


def _draw_legend(beside: Axes, explained: Sequence[Axes]) -> None:
    """Draw one legend for several axes beside one of them, where it cannot cover data."""
    handles: dict[str, Any] = {}
    for axes in explained:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    # Lines without points explain published values, laws and minima: they follow the curves.
    named = sorted(handles.items(), key=lambda pair: not len(pair[1].get_xdata()))
    names, lines = zip(*named, strict=True)
    beside.legend(lines, names, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _drawn(curve: Curve) -> bool:
    """Whether anything of a curve is visible, so that the legend should name it."""
    return any(len(line) for line in (curve.mean, curve.printed, curve.law))


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    # A fixed height: otherwise matplotlib measures every tick to find a free place.
    axes.set_title(panel.title, y=1.0)
    axes.set_xscale(panel.x_scale, **({"base": 2} if panel.x_scale == "log" else {}))
    axes.set_yscale(panel.y_scale)
    for number, curve in enumerate(panel.curves):
        _draw_curve(axes, curve, number, panel)
    for _, height in panel.levels:
        axes.axhline(height, color="0.45", linewidth=0.8, linestyle=(0, (5, 3)), zorder=1)


def _name_panel(axes: Axes, panel: Panel) -> None:
    """Set ticks and names, once the height of the panel is known."""
    if panel.y_scale == "log":
        name_heights(axes)
    name_levels(axes, panel.levels, on_right=_falls(panel))
    if any(len(curve.printed) for curve in panel.curves):
        axes.plot([], [], "o", color="0.3", markerfacecolor="none", label="published")
    if any(len(curve.law) for curve in panel.curves):
        axes.plot([], [], color="0.3", linewidth=0.8, label=panel.law_label)
    if any(len(curve.least) for curve in panel.curves):
        axes.plot([], [], color="0.3", linewidth=1.2, linestyle=":", label="minimum")
    if panel.x_ticks:
        name_ticks(axes, panel.x_ticks)


def _falls(panel: Panel) -> bool:
    """Whether most curves end lower than they begin: then the right edge has room for names."""
    ends = [(curve.mean.y[0], curve.mean.y[-1]) for curve in panel.curves if len(curve.mean)]
    return sum(first > last for first, last in ends) > len(ends) / 2


def _draw_band(axes: Axes, curve: Curve, colour: str, panel: Panel) -> None:
    y, halves = curve.mean.y, curve.spread
    low = [value - half for value, half in zip(y, halves, strict=True)]
    high = [min(value + half, panel.ceiling) for value, half in zip(y, halves, strict=True)]
    alpha = 0.18 if len(panel.curves) < 3 else 0.1
    axes.fill_between(curve.mean.x, low, high, color=colour, alpha=alpha, linewidth=0)


def _draw_curve(axes: Axes, curve: Curve, number: int, panel: Panel) -> None:
    x, y = curve.mean.x, curve.mean.y
    colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
    looks: dict[str, Any] = {"linewidth": 1.6, "markersize": 4}
    looks["linestyle"] = LINES[number % len(LINES)]
    if curve.style == "rings":
        looks = {"linestyle": "none", "markersize": 8, "markerfacecolor": "none"}
    # Layers may be called anything: "$\\frac{$" would be a wrong formula.
    label = curve.label.replace("$", r"\$") if _drawn(curve) else None
    axes.plot(x, y, marker=marker, color=colour, label=label, **looks)
    if curve.spread:
        _draw_band(axes, curve, colour, panel)
    printed = {"linestyle": "none", "markerfacecolor": "none", "markersize": 9}
    axes.plot(curve.printed.x, curve.printed.y, marker=marker, color=colour, **printed)
    axes.plot(curve.law.x, curve.law.y, color=colour, linewidth=0.8, zorder=1)
    axes.plot(curve.least.x, curve.least.y, color=colour, linewidth=1.2, linestyle=":", zorder=1)
