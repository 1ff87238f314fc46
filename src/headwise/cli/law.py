"""headwise law: the rank a random head can have, and the head dimension at which it saturates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwise.errors import BadInputError
from headwise.masks import MaskName

if TYPE_CHECKING:
    from headwise import Law

#: How the name of a figure's file may end.
FORMATS = (".png", ".svg", ".pdf")

Length = Annotated[
    float, typer.Option("--length", help="Number of tokens n, 2 to 1e12.", show_default=False)
]
HeadDims = Annotated[
    float | None,
    typer.Option("--head-dim", help="Head dimension d_h, 1 to 1e5.", show_default="a table"),
]
Fraction = Annotated[
    float, typer.Option("--fraction", help="Share of the barrier the critical d_h must reach.")
]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", help="Draw the curve into a file: png, svg or pdf.")
]
Masked = Annotated[
    MaskName,
    typer.Option("--mask", help="Which keys a token picks among: all, or up to its own."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def law(
    length: Length,
    head_dims: HeadDims = None,
    fraction: Fraction = 0.9,
    mask: Masked = "none",
    plot: PlotFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rank of a random attention head, as a share of the length."""
    import headwise
    from headwise.cli.console import emphasised, note, print_json, screen
    from headwise.cli.law_curve import table, terminal_plot
    from headwise.cli.progress_bar import progress_bar

    if plot is not None:
        refuse_unwritable(plot)
    found = headwise.law(length, head_dims, mask, fraction, progress_bar())
    if as_json:
        print_json(found.as_json() if head_dims is None else _of_one(found))
    elif head_dims is None:
        screen().print(table(found))
        screen().print(terminal_plot(found))
    else:
        screen().print(emphasised(_in_words(found)))
    if plot is not None:
        (found if head_dims is None else headwise.law(length, None, mask, fraction)).plot(plot)
        note(f"drawn: {plot}")


def refuse_unwritable(file: Path) -> None:
    """Refuse a name or a folder that cannot hold the figure, before anything is computed."""
    if file.suffix.lower() not in FORMATS:
        raise BadInputError(
            f"{file.name} is not a figure file", hint="end its name in .png, .svg or .pdf"
        )
    if not file.parent.is_dir():
        raise BadInputError(
            f"cannot write {file}: there is no folder {file.parent}",
            hint="choose a folder that exists",
        )
    if file.is_dir():
        raise BadInputError(f"cannot write {file}: it is a folder", hint="choose another name")


def _of_one(found: Law) -> dict[str, Any]:
    """The answer for one head dimension, with values in place of lists of one."""
    return {
        name: value[0] if isinstance(value, list) else value
        for name, value in found.as_json().items()
    }


def _in_words(found: Law) -> str:
    (row,) = found.rows
    under = "" if found.mask == "none" else f", {found.mask} mask"
    return (
        f"A random head of dimension {row.head_dim} uses **{row.ratio:.4g}** ± {row.error:.2g} "
        f"of {found.length} columns ({row.method}{under}).\n"
        f"That is {row.ratio / found.barrier:.0%} of the barrier {found.barrier:.4f}; "
        f"{found.fraction:.0%} of it needs head dimension **{found.critical_head_dim}**."
    )
