"""Turn the panels of an exhibit into figures that plotly draws in the browser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from headwise.report.figures import COLOURS, Curve, Panel


def figure(panel: Panel) -> dict[str, Any]:
    """One panel as plotly's data and layout, with a text alternative."""
    traces = [trace for place, one in enumerate(panel.curves) for trace in _traces(one, place)]
    layout = {
        "title": {"text": panel.title},
        "xaxis": {"title": {"text": panel.x_label}, "type": panel.x_scale},
        "yaxis": {"title": {"text": panel.y_label}, "type": panel.y_scale},
        "shapes": [_level(height) for _, height in panel.levels],
        "annotations": [_name(*level, panel.y_scale) for level in panel.levels if level[0]],
    }
    return {"data": traces, "layout": layout, "alternative": alternative(panel)}


def alternative(panel: Panel) -> str:
    """The panel in words, for those who cannot see it."""
    lines = [f"{panel.title}: {panel.y_label} against {panel.x_label}."]
    for curve in panel.curves:
        if len(curve.mean):
            first, last = curve.mean.y[0], curve.mean.y[-1]
            places = f"{curve.mean.x[0]:g} to {curve.mean.x[-1]:g}"
            lines.append(f"{curve.label}: from {first:.3g} to {last:.3g} over {places}.")
    if any(len(curve.printed) for curve in panel.curves):
        lines.append("Hollow points are published values.")
    if any(len(curve.law) for curve in panel.curves):
        lines.append("Dotted lines are the law.")
    return " ".join(lines)


def _traces(curve: Curve, place: int) -> list[dict[str, Any]]:
    colour = COLOURS[place % len(COLOURS)]
    mean = {
        "x": list(curve.mean.x),
        "y": list(curve.mean.y),
        "name": curve.label,
        "mode": "lines+markers" if curve.style == "joined" else "markers",
        "line": {"color": colour},
        "marker": {"color": colour},
    }
    if curve.spread:
        mean["error_y"] = {"type": "data", "array": list(curve.spread), "color": colour}
    beside = [
        (curve.printed, "published", {"mode": "markers", "marker": _hollow(colour)}),
        (curve.law, "law", {"mode": "lines", "line": {"color": colour, "width": 1, "dash": "dot"}}),
    ]
    return [
        mean,
        *(
            {"x": list(line.x), "y": list(line.y), "name": f"{curve.label} ({name})", **look}
            for line, name, look in beside
            if len(line)
        ),
    ]


def _hollow(colour: str) -> dict[str, Any]:
    return {"symbol": "circle-open", "size": 10, "color": colour}


def _level(height: float) -> dict[str, Any]:
    line = {"dash": "dash", "width": 1, "color": "#888"}
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": height,
        "y1": height,
        "line": line,
    }


def _name(words: str, height: float, scale: str) -> dict[str, Any]:
    """A level's name above its line; plotly takes the logarithm of lines, but not of words."""
    y = math.log10(height) if scale == "log" else height
    return {"text": words, "xref": "paper", "x": 1, "y": y, "showarrow": False, "yshift": 8}


def figures(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Every panel of an exhibit."""
    return [figure(panel) for panel in panels]
