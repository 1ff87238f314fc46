"""A small picture of falling values in the terminal, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

#: Powers of ten from one row to the next.
DECADES = 2


def sketch(
    curves: Mapping[str, tuple[str, Sequence[float]]], *, level: float, columns: int = 60
) -> str:
    """Curves by the mark they are drawn with, each with its name; a line marks ``level``.

    Values are drawn down to the square of ``level``; smaller ones lie on the bottom row.
    Where curves meet, the last one is seen.

    >>> print(sketch({"*": ("falling", [1.0, 1e-9])}, level=1e-4, columns=4))
    1e+00 ┤**
    1e-02 ┤
    1e-04 ┤┄┄┄┄
    1e-06 ┤
    1e-08 ┤  **
           * falling   ┄ 1e-04
    """
    middle = round(math.log10(level))
    top = max(value for _, values in curves.values() for value in values)
    ceiling = middle + DECADES * max(0, round((math.log10(top) - middle) / DECADES))
    powers = range(ceiling, 2 * middle - 1, -DECADES)
    canvas = [[" "] * columns for _ in powers]
    canvas[powers.index(middle)] = ["┄"] * columns
    for mark, (_, values) in curves.items():
        for column in range(columns):
            value = values[column * len(values) // columns]
            canvas[_row(value, powers)][column] = mark
    lines = [
        f"1e{power:+03d} ┤{''.join(line).rstrip()}"
        for power, line in zip(powers, canvas, strict=True)
    ]
    legend = "   ".join(f"{mark} {name}" for mark, (name, _) in curves.items())
    return "\n".join([*lines, f"       {legend}   ┄ {level:.0e}"])


def _row(value: float, powers: range) -> int:
    """The row whose power of ten is nearest to the value."""
    if value <= 0:
        return len(powers) - 1
    return min(len(powers) - 1, max(0, round((powers[0] - math.log10(value)) / DECADES)))
