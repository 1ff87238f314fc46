"""headwise bound: the least error of low-rank heads, or the heads that an error needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headwise.cli.console import UsageError
from headwise.cli.options import AsJson, number_above, number_in, option, whole_from

if TYPE_CHECKING:
    from headwise.theory import Bound


Width = Annotated[
    int,
    option("--width", "Width of the model.", whole_from(2, 10**6)),
]
Rank = Annotated[
    int,
    option("--rank", "Rank of a head, below the width.", whole_from(1)),
]
Heads = Annotated[
    float | None,
    option("--heads", "Ask for the least error of this many heads.", number_in(1)),
]
Error = Annotated[
    float | None,
    option(
        "--error",
        "Ask for the number of heads that this error needs; at most 0.5.",
        number_above(0, 0.5),
    ),
]
ValuesOf = Annotated[
    Literal["any", "identity"],
    typer.Option("--values", help="Value matrices: any form, or multiples of I."),
]

_VALUES = {"any": "any value matrices", "identity": "value matrices that are multiples of I"}
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
    """Bound the error of low-rank heads, or the number of heads that an error needs.

    The task is to retrieve the nearer of two tokens. The error is the mean squared error; without
    attention it is 0.5. Pass --heads or --error; the other one is the answer.

    \b
    headwise bound --width 64 --rank 8 --error 0.1
    headwise bound --width 64 --rank 16 --heads 4
    """
    if (heads is None) == (error is None):
        got = "neither" if heads is None else "both"
        raise UsageError(f"expected --heads or --error, got {got}; pass one of them")
    if rank >= width:
        raise UsageError(
            f"expected --rank below the width {width:,}, got {rank:,}; pass a smaller one: a "
            "single head of full rank is exact"
        )
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
        words = f"{counted(found.heads)} {sizes} {verb} an error of at least **{found.error:.4g}**"
    else:
        words = f"An error of {found.error:g} needs at least **{counted(found.heads)}** {sizes}"
    return (
        f"{words} at width {found.width:,}, with {_VALUES[found.values]}.\n"
        "The task is to retrieve the nearer of two tokens. The error is the mean squared error; "
        "without attention it is 0.5."
    )


def counted(heads: int | float) -> str:
    """Return a number of heads in words, with three digits from a million on."""
    if heads < 10**6:
        return f"{heads:,.0f} head{'s' if heads != 1 else ''}"
    heads = float(f"{heads:.3g}")  # so that 999,999,999 is a billion
    power = math.floor(math.log10(heads))
    if power >= 15:
        return f"{heads / 10.0**power:.3g}·10{str(power).translate(_RAISED)} heads"
    size = next(size for size in _POWERS if heads >= size)
    return f"{heads / size:.3g} {_POWERS[size]} heads"
