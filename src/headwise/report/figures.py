"""Figures in one style: mean with a band, printed values hollow, a law as a thin line.

Each curve has a colour, a darkness and a marker of its own, so that figures can be read in
grey. The same data give the same file, byte for byte.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headwise.errors import BadInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: From dark to light, so that the order survives a grey printer; markers tell them apart.
COLOURS = ("#1d3557", "#a4243b", "#3f7d20", "#7b5ea7", "#d98324", "#62b6d9", "#b8c0c8")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: What files are written of each figure.
FORMATS = (".png", ".svg", ".pdf")

Number = float | int

_STYLE: dict[Any, Any] = {
    "figure.dpi": 160,
    "savefig.bbox": "tight",
    "font.size": 10,
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

    >>> len(Line((1, 2, 4), (0.1, 0.2, 0.3)))
    3
    """

    x: tuple[Number, ...] = ()
    y: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise BadInputError(
                f"a line of {len(self.x)} places has {len(self.y)} values", hint="give one each"
            )

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Curve:
    """What was measured, the half width of the band around it, and what stands beside it.

    >>> Curve("64 tokens", Line((1, 2), (0.1, 0.2)), spread=(0.01, 0.01)).label
    '64 tokens'
    """

    label: str
    mean: Line
    spread: tuple[Number, ...] = ()
    printed: Line = Line()
    law: Line = Line()

    def __post_init__(self) -> None:
        if self.spread and len(self.spread) != len(self.mean):
            raise BadInputError(
                f"a curve of {len(self.mean)} points has {len(self.spread)} half widths",
                hint="give one each, or none",
            )


@dataclass(frozen=True)
class Panel:
    """One pair of axes, labelled in words.

    >>> Panel("Rank levels off", "head dimension", "rank / tokens", ()).x_scale
    'linear'
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"


def draw(panels: Sequence[Panel]) -> Any:
    """A matplotlib figure of panels side by side; it belongs to no window and no backend.

    >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    >>> len(draw([panel]).axes)
    1
    """
    from matplotlib.figure import Figure

    with _style():
        figure = Figure(figsize=(4.8 * len(panels), 3.5), layout="constrained")
        for axes, panel in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            _draw_panel(axes, panel)
    return figure


def save_figure(figure: Any, stem: str | os.PathLike[str]) -> list[Path]:
    """Write a figure as PNG, SVG and PDF beside each other.

    >>> import tempfile
    >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    >>> [path.name for path in save_figure(draw([panel]), Path(tempfile.mkdtemp()) / "line")]
    ['line.png', 'line.svg', 'line.pdf']
    """
    stem = Path(stem)
    paths = [stem.with_name(stem.name + ending) for ending in FORMATS]
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for path in paths:
            path.write_bytes(_bytes(figure, path.suffix[1:]))
    except OSError as error:
        raise BadInputError(
            f"{stem} cannot be written ({error.strerror})", hint="choose another --out"
        ) from None
    return paths


def inline_svg(figure: Any) -> str:
    """A figure as an <svg> element, to be put into a page.

    >>> panel = Panel("A line", "x", "y", (Curve("it", Line((1, 2), (3, 4))),))
    >>> inline_svg(draw([panel])).startswith("<svg")
    True
    """
    text = _bytes(figure, "svg").decode()
    return text[text.index("<svg") :]


def _bytes(figure: Any, kind: str) -> bytes:
    # A date would make every file differ from the last.
    dates: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    out = io.BytesIO()
    with _style():
        figure.savefig(out, format=kind, metadata=dates.get(kind, {}))
    return out.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    defaults: dict[Any, Any] = dict(matplotlib.rcParamsDefault)
    with matplotlib.rc_context(defaults | _STYLE):
        yield


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    axes.set_xscale(panel.x_scale)
    axes.set_yscale(panel.y_scale)
    for number, curve in enumerate(panel.curves):
        _draw_curve(axes, curve, COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)])
    if any(len(curve.printed) for curve in panel.curves):
        axes.plot([], [], "o", color="0.3", markerfacecolor="none", label="printed")
    if any(len(curve.law) for curve in panel.curves):
        axes.plot([], [], color="0.3", linewidth=0.8, label="law")
    if panel.curves:
        axes.legend()


def _draw_curve(axes: Axes, curve: Curve, colour: str, marker: str) -> None:
    x, y = curve.mean.x, curve.mean.y
    axes.plot(x, y, marker=marker, markersize=4, color=colour, label=curve.label, linewidth=1.6)
    if curve.spread:
        low = [value - half for value, half in zip(y, curve.spread, strict=True)]
        high = [value + half for value, half in zip(y, curve.spread, strict=True)]
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    printed = {"linestyle": "none", "markerfacecolor": "none", "markersize": 9}
    axes.plot(curve.printed.x, curve.printed.y, marker=marker, color=colour, **printed)
    axes.plot(curve.law.x, curve.law.y, color=colour, linewidth=0.8, zorder=1)
