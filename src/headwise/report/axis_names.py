"""Name the ticks and levels of a pair of axes, so that no names cover each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The width of a digit, as a share of the axis.
DIGIT = 0.028


def name_ticks(axes: Axes, ticks: Sequence[float | int]) -> None:
    """Set these ticks of the horizontal axis alone, with names that do not touch."""
    axes.set_xticks(ticks)  # which may widen the axis
    axes.set_xticks(ticks, labels=_tick_names(axes, ticks))
    axes.set_xticks([], minor=True)


def _tick_names(axes: Axes, ticks: Sequence[float | int]) -> list[str]:
    """Name the ticks, except where a name would touch the one before."""
    names, end = [], -math.inf
    for tick in ticks:
        name = f"{tick:g}"
        middle = axes.transAxes.inverted().transform(axes.transData.transform((tick, 1)))[0]
        half = len(name) * DIGIT / 2
        names.append(name if middle - half > end else "")
        end = max(end, middle + half) if names[-1] else end
    return names


#: A logarithmic axis spans at least the first factor, and has plain numbers below the second.
LEAST_FACTOR, PLAIN_FACTOR = 4.0, 40.0


def name_heights(axes: Axes) -> None:
    """Write plain numbers on a short logarithmic axis, instead of 4.05 × 10¹."""
    low, high = axes.get_ylim()
    if high < LEAST_FACTOR * low:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(LEAST_FACTOR), middle * math.sqrt(LEAST_FACTOR)
        axes.set_ylim(low, high)
    if high > PLAIN_FACTOR * low:
        return
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    digits = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 6, 8)
    places = [d * 10.0**power for power in range(first, last + 1) for d in digits]
    shown = [place for place in places if low <= place <= high]
    axes.set_yticks(shown, labels=[f"{place:g}" for place in shown])
    axes.set_yticks([], minor=True)


#: Names of levels closer together than this share of the axis are put side by side.
LEVEL_ROOM = 0.07


def name_levels(axes: Axes, levels: Sequence[tuple[str, float | int]], *, on_right: bool) -> None:
    """Write the names of levels just above their lines, at one edge."""
    before, column = None, 0
    named = [level for level in levels if level[0]]
    for name, height in sorted(named, key=lambda level: level[1]):
        shown = axes.transAxes.inverted().transform(axes.transData.transform((1, height)))[1]
        near = before is not None and shown - before < LEVEL_ROOM
        before, column = shown, column + 1 if near else 0
        place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        inwards = 0.015 + 0.3 * column
        where = (1 - inwards if on_right else inwards, height)
        place["ha"] = "right" if on_right else "left"
        # A level line fades where it runs through the name of another.
        behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0}
        axes.annotate(name, where, xytext=(0, 3), color="0.35", fontsize=8, bbox=behind, **place)
