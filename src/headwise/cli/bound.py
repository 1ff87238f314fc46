"""headwise bound: the least error of low-rank heads, or the heads that an error needs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from headwise.cli.console import UsageError


class ValueClass(StrEnum):
    """The value matrices a head may have, as written on the command line."""

    any = "any"
    identity = "identity"


Width = Annotated[float, typer.Option("--width", help="Model width d.", show_default=False)]
Rank = Annotated[float, typer.Option("--rank", help="Rank r of a head, below the width.")]
Heads = Annotated[
    float | None, typer.Option("--heads", help="Number of heads: what error must they have?")
]
Error = Annotated[
    float | None, typer.Option("--error", help="Error, at most 0.5: how many heads does it take?")
]
ValuesOf = Annotated[
    ValueClass, typer.Option("--values", help="Value matrices: any form, or multiples of I.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def bound(
    width: Width,
    rank: Rank,
    heads: Heads = None,
    error: Error = None,
    values: ValuesOf = ValueClass.any,
    as_json: AsJson = False,
) -> None:
    """Bound the error of low-rank heads on nearest neighbours, or the heads an error needs."""
    from headwise.cli.console import emphasised, print_json, screen
    from headwise.theory import Values, error_lower_bound, heads_needed

    kind = Values(values.value)
    if heads is not None and error is None:
        least = error_lower_bound(width, rank, heads, kind)
        answer: dict[str, float] = {"error_lower_bound": least}
        words = f"{heads:.6g} heads of rank {rank:.0f} have error at least **{least:.4g}**"
    elif error is not None and heads is None:
        count = heads_needed(width, rank, error, kind)
        answer = {"heads": count}
        words = f"error {error:g} needs at least **{count:.6g}** heads of rank {rank:.0f}"
    else:
        raise UsageError("pass either --heads or --error, and not both")
    if as_json:
        asked = {"width": width, "rank": rank, "heads": heads, "error": error}
        inputs = {name: value for name, value in asked.items() if value is not None}
        print_json(answer | {"inputs": inputs | {"values": values.value}})
    else:
        screen().print(emphasised(f"{words} in {width:.0f} dimensions (values: {values.value})."))
