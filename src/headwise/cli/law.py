"""headwise law: the rank a random head can have, and the head dimension at which it saturates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwise.cli.options import AsJson, figure_file, number_in, whole_from
from headwise.errors import BadInputError
from headwise.masks import MaskName

if TYPE_CHECKING:
    from headwise import Law

Length = Annotated[
    int,
    typer.Option(
        "--length",
        parser=whole_from(2, 10**12),
        metavar="NUMBER",
        help="Number of tokens, for example 1024 or 20k.",
        show_default=False,
    ),
]
HeadDims = Annotated[
    int | None,
    typer.Option(
        "--head-dim",
        parser=whole_from(1, 10**5),
        metavar="NUMBER",
        help="Head dimension to predict the rank for.",
        show_default="a table of several",
    ),
]
Fraction = Annotated[
    float,
    typer.Option(
        "--fraction",
        parser=number_in(0, 1, open_=True),
        metavar="NUMBER",
        help="Share of the largest possible rank that counts as enough.",
    ),
]
PlotFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        parser=figure_file,
        metavar="FILE",
        help="Draw the curve into a .png, .svg or .pdf file.",
    ),
]
Masked = Annotated[
    MaskName,
    typer.Option("--mask", help="causal: a token attends to itself and earlier ones."),
]


def law(
    length: Length,
    head_dims: HeadDims = None,
    fraction: Fraction = 0.9,
    mask: Masked = "none",
    plot: PlotFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rank of a random attention head, as a share of the number of tokens.

    The rank grows with the head dimension towards a barrier that no head passes. The critical head
    dimension is the first one that reaches --fraction of it.
    """
    if plot is not None:
        refuse_unwritable(plot)
    import headwise
    from headwise.cli.console import emphasised, note, print_json, screen, takes_only_ascii
    from headwise.cli.law_curve import table, terminal_plot
    from headwise.cli.progress_bar import progress_bar

    found = headwise.law(length, head_dims, mask, fraction, progress_bar())
    if as_json:
        print_json(found.as_json() if head_dims is None else _of_one(found))
    elif head_dims is None:
        screen().print(table(found))
        screen().print(terminal_plot(found, ascii_only=takes_only_ascii()))
    else:
        screen().print(emphasised(_in_words(found)))
    if plot is not None:
        (found if head_dims is None else headwise.law(length, None, mask, fraction)).plot(plot)
        note(f"drawn: {plot}")


def refuse_unwritable(file: Path) -> None:
    """Refuse a place that cannot hold the figure, before anything is computed."""
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
