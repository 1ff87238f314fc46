"""headwise bound: the least error of low-rank heads, or the heads that an error needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from headwise import Bound

Width = Annotated[float, typer.Option("--width", help="Model width d.", show_default=False)]
Rank = Annotated[float, typer.Option("--rank", help="Rank r of a head, below the width.")]
Heads = Annotated[
    float | None, typer.Option("--heads", help="Number of heads: what error must they have?")
]
Error = Annotated[
    float | None, typer.Option("--error", help="Error, at most 0.5: how many heads does it take?")
]
ValuesOf = Annotated[
    Literal["any", "identity"],
    typer.Option("--values", help="Value matrices: any form, or multiples of I."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

_POWERS = {10**12: "trillion", 10**9: "billion", 10**6: "million"}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def bound(
    width: Width,
    rank: Rank,
    heads: Heads = None,
    error: Error = None,
    values: ValuesOf = "any",
    as_json: AsJson = False,
) -> None:
    """Bound the error of low-rank heads on nearest neighbours, or the heads an error needs."""
    import headwise
    from headwise.cli.console import emphasised, print_json, screen

    found = headwise.bound(width, rank, heads, error, values)
    if as_json:
        print_json(found.as_json())
    else:
        screen().print(emphasised(_in_words(found)))


def _in_words(found: Bound) -> str:
    sizes = f"of rank {found.rank}"
    if found.given == "heads":
        verb = "has" if found.heads == 1 else "have"
        words = f"{counted(found.heads)} {sizes} {verb} error at least **{found.error:.4g}**"
    else:
        words = f"error {found.error:g} needs at least **{counted(found.heads)}** {sizes}"
    return f"{words} in {found.width} dimensions (values: {found.values})."


def counted(heads: int | float) -> str:
    """Return a number of heads in words, with three digits from a million on.

    >>> counted(1), counted(12_345), counted(7_739_990), counted(2.2e37)
    ('1 head', '12,345 heads', '7.74 million heads', '2.2·10³⁷ heads')
    """
    if heads < 10**6:
        return f"{heads:,.0f} head{'s' if heads != 1 else ''}"
    heads = float(f"{heads:.3g}")  # so that 999,999,999 is a billion
    power = math.floor(math.log10(heads))
    if power >= 15:
        return f"{heads / 10.0**power:.3g}·10{str(power).translate(_RAISED)} heads"
    size = next(size for size in _POWERS if heads >= size)
    return f"{heads / size:.3g} {_POWERS[size]} heads"
