"""A heat map of layers × heads."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

#: Heat maps of more cells than this have no numbers in the cells.
MOST_NUMBERS = 400


#: A part of a name that so large a share of the layers has tells little about any of them.
COMMON = 0.75


@dataclass(frozen=True)
class Scale:
    """The colours of a heat map: from 0 to ``top``, and what ``top`` is."""

    top: float
    label: str = ""


def heat_map(
    table: list[list[float]], layers: list[str], title: str, scale: Scale | None = None
) -> Any:
    """Draw a table of layers × heads, with the numbers where they fit.

    Colours begin at 0, so that maps with the same scale can be compared.

    Returns:
        The matplotlib figure.
    """
    from matplotlib.figure import Figure

    height, width = len(table), len(table[0])
    known = [value for heads in table for value in heads if math.isfinite(value)]
    scale = scale or Scale(max(known, default=1.0))
    figure = Figure(figsize=(2.4 + 0.42 * width, 1.3 + 0.26 * height))
    axes = figure.add_subplot()
    image = axes.imshow(table, aspect="auto", cmap="viridis", vmin=0, vmax=scale.top or 1.0)
    axes.set(xlabel="head", ylabel="layer", title=title, xticks=range(width))
    # A layer may be called anything: without this, "$\\frac{$" would be a wrong formula.
    axes.set_yticks(range(height), short_names(layers), fontsize=7, parse_math=False)
    axes.tick_params(axis="x", labelsize=7)
    axes.grid(False)
    if width * height <= MOST_NUMBERS:
        _write_numbers(axes, table, scale.top / 2)
    figure.colorbar(image, label=scale.label)
    return figure


def _write_numbers(axes: Any, table: list[list[float]], middle: float) -> None:
    for i, heads in enumerate(table):
        for j, value in enumerate(heads):
            if math.isfinite(value):
                text = f"{value:.0f}" if value >= 10 else f"{value:.2g}"
                colour = "black" if value > middle else "white"
                axes.text(j, i, text, ha="center", va="center", fontsize=6, color=colour)


def short_names(layers: list[str]) -> list[str]:
    """Shorten the names of layers by the parts that most of them share.

    Args:
        layers: The names.

    Returns:
        The short names, in the same order and as different as the long ones.

    Example:
        >>> short_names(["encoder.0.attention", "encoder.1.attention"])
        ['0', '1']
        >>> short_names(["text.layers.0.attn", "text.layers.1.attn", "image.layers.0.attn"])
        ['text.0', 'text.1', 'image.0']
    """
    parts = [layer.split(".") for layer in layers]
    if len(layers) < 2:
        numbers = [[part for part in name if part.isdecimal()] for name in parts]
        return [".".join(number) or layer for number, layer in zip(numbers, layers, strict=True)]
    while all(len(part) > 1 for part in parts) and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    while all(len(part) > 1 for part in parts) and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    counts = Counter(part for name in parts for part in set(name) if not part.isdecimal())
    for common, count in counts.items():
        shorter = [[part for part in name if part != common] for name in parts]
        if count >= COMMON * len(layers) and len(set(map(tuple, shorter))) == len(layers):
            parts = shorter
    return [".".join(part) for part in parts]
