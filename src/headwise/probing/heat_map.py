"""A heat map of layers × heads."""

from __future__ import annotations

import math
from typing import Any

#: Heat maps of more cells than this have no numbers in the cells.
MOST_NUMBERS = 400


def heat_map(table: list[list[float]], layers: list[str], title: str) -> Any:
    """Draw a table of layers × heads, with the numbers where they fit."""
    from matplotlib.figure import Figure

    height, width = len(table), len(table[0])
    figure = Figure(figsize=(2.2 + 0.42 * width, 1.3 + 0.26 * height))
    axes = figure.add_subplot()
    image = axes.imshow(table, aspect="auto", cmap="viridis")
    axes.set(xlabel="head", ylabel="layer", title=title, xticks=range(width))
    axes.set_yticks(range(height), short_names(layers), fontsize=7)
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(False)
    if width * height <= MOST_NUMBERS:
        _write_numbers(axes, table)
    figure.colorbar(image)
    return figure


def _write_numbers(axes: Any, table: list[list[float]]) -> None:
    known = [value for heads in table for value in heads if math.isfinite(value)]
    middle = (min(known, default=0) + max(known, default=0)) / 2
    for i, heads in enumerate(table):
        for j, value in enumerate(heads):
            if math.isfinite(value):
                text = f"{value:.0f}" if value >= 10 else f"{value:.2g}"
                colour = "black" if value > middle else "white"
                axes.text(j, i, text, ha="center", va="center", fontsize=6, color=colour)


def short_names(layers: list[str]) -> list[str]:
    """Shorten the names of layers by the parts that all of them share.

    Args:
        layers: The names.

    Returns:
        The short names, in the same order.

    Example:
        >>> short_names(["encoder.0.attention", "encoder.1.attention"])
        ['0', '1']
    """
    if len(layers) < 2:
        return layers
    parts = [layer.split(".") for layer in layers]
    while all(len(part) > 1 for part in parts) and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    while all(len(part) > 1 for part in parts) and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    return [".".join(part) for part in parts]
