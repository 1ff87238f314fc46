"""headwise law: the attention rank of a random head, and where it saturates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwise.cli.options import (
    AsJson,
    figure_file,
    number_in,
    one_or_several,
    option,
    refuse_unwritable,
    whole_from,
)
from headwise.mask_names import MaskName

if TYPE_CHECKING:
    from headwise.theory import Law

Length = Annotated[
    int,
    option(
        "--length",
        "Number of tokens, for example 1024 or 20k.",
        whole_from(2, 10**12),
        default=False,
    ),
]
HeadDim = Annotated[
    Any,  # an int, a list of them or None: Typer knows no unions
    option(
        "--head-dim",
        "Head dimensions to predict the rank for: 64, or 64,128 for both; write 1024 without a "
        "comma.",
        one_or_several(1, 10**5),
        default="a table of several",
    ),
]
Fraction = Annotated[
    float,
    option(
        "--fraction",
        "Share of the barrier that counts as enough.",
        number_in(0, 1, open_=True),
    ),
]
PlotFile = Annotated[
    Path | None,
    option("--plot", "Draw the curve into a .png, .svg or .pdf file.", figure_file, metavar="FILE"),
]
Masked = Annotated[
    MaskName,
    typer.Option("--mask", help="causal: a token attends to itself and earlier ones."),
]

#: What stands behind ±, for each method.
ERRORS = {
    "exact": "the most that the formula leaves out",
    "simulation": "three standard errors of the mean of drawn heads",
    "law": "the largest distance between the law and drawn heads that was measured",
}

#: What the methods of a prediction are.
METHODS = {
    "exact": "a formula",
    "simulation": "mean of drawn heads",
    "law": "an approximation",
    "upper bound": "the law where it is too high",
}


def law(
    length: Length,
    head_dim: HeadDim = None,
    fraction: Fraction = 0.9,
    mask: Masked = "none",
    plot: PlotFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict the attention rank of a random head, as a share of the number of tokens.

    Each token picks the key with the largest score; the rank is the number of keys that are picked.
    Its mean grows with the head dimension towards a limit, the barrier. The critical head dimension
    is the first one that reaches --fraction of it.

    \b
    headwise law --length 1024
    headwise law --length 1024 --head-dim 64,128 --mask causal
    """
    refuse_unwritable(plot)
    import headwise
    from headwise.cli.console import emphasised, note, print_json, screen
    from headwise.cli.law_report import picture, table
    from headwise.cli.progress_bar import progress_bar

    found = headwise.law(length, head_dim, mask, fraction, progress_bar())
    if as_json:
        print_json(found.as_json())
    elif found.scalar:
        screen().print(emphasised(_in_words(found)))
    else:
        screen().print(table(found))
        screen().print(_methods(found))
        if head_dim is None:
            screen().print(picture(found))
    if plot is not None:
        found.plot(plot)
        note(f"drawn: {plot}")


def _methods(found: Law) -> str:
    """What the barrier is, and what the methods that are shown mean."""
    shown = {row.method for row in found.rows}
    methods = "; ".join(f"{name}: {words}" for name, words in METHODS.items() if name in shown)
    needs = f"{found.fraction:.0%} of it needs head dimension {found.critical_head_dim:,}"
    return f"barrier: the rank / length of a head of very large dimension; {needs}.\n{methods}.\n"


def _in_words(found: Law) -> str:
    (row,) = found.rows
    under = "" if found.mask == "none" else f", {found.mask} mask"
    return (
        f"A random head of dimension {row.head_dim:,} uses **{row.ratio:.4g}** ± {row.error:.2g} "
        f"of {found.length:,} columns ({row.method}{under}).\n"
        f"That is {row.ratio / found.barrier:.0%} of the barrier {found.barrier:.4f}; "
        f"{found.fraction:.0%} of it needs head dimension **{found.critical_head_dim:,}**.\n"
        f"±: {ERRORS[row.method]}.\n"
        "The columns are those of hardmax, on average; the rank of softmax, which headwise rank "
        "counts, can be a little higher."
    )
