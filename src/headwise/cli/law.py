"""headwise law: the rank a random head can have, and the head dimension at which it saturates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.masks import MaskName

if TYPE_CHECKING:
    from headwise.theory import Prediction

Length = Annotated[
    float, typer.Option("--length", help="Number of tokens n, 2 to 1e12.", show_default=False)
]
HeadDim = Annotated[
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
    head_dim: HeadDim = None,
    fraction: Fraction = 0.9,
    mask: Masked = "none",
    plot: PlotFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rank of a random attention head, as a share of the length."""
    if plot is not None:
        from headwise.cli.law_figure import refuse_unwritable

        refuse_unwritable(plot)
    if head_dim is None:
        _answer_with_curve(length, fraction, mask, as_json)
    else:
        _answer_one(length, head_dim, fraction, mask, as_json)
    if plot is not None:
        from headwise.cli.console import note
        from headwise.cli.law_curve import curve_of
        from headwise.cli.law_figure import draw

        draw(curve_of(length, fraction, mask), plot)
        note(f"drawn: {plot}")


def _answer_one(
    length: float, head_dim: float, fraction: float, mask: MaskName, as_json: bool
) -> None:
    from headwise.cli.console import emphasised, print_json, screen
    from headwise.theory import barrier_ratio, critical_head_dim, ready_ratio
    from headwise.theory.ready import UPPER_BOUND

    critical = critical_head_dim(length, fraction, mask)
    found = ready_ratio(length, head_dim, mask)
    if found.method == UPPER_BOUND:
        from headwise.cli.progress_bar import progress_bar
        from headwise.theory import predict_ratio

        found = predict_ratio(length, head_dim, progress=progress_bar(), mask=mask)
    if as_json:
        keys = ("length", "head_dim", "ratio", "error", "method")
        answer = {key: getattr(found, key) for key in keys} | {"critical_head_dim": critical}
        barrier = barrier_ratio(length, mask)
        print_json(answer | {"fraction": fraction, "barrier": barrier, "mask": mask})
    else:
        screen().print(emphasised(_in_words(found, critical, fraction, mask)))


def _in_words(found: Prediction, critical: int, fraction: float, mask: MaskName) -> str:
    from headwise.theory import barrier_ratio

    barrier, under = barrier_ratio(found.length, mask), "" if mask == "none" else f", {mask} mask"
    return (
        f"**{found.ratio:.4g}** ± {found.error:.2g} of {found.length} columns are used "
        f"by a random head of dimension {found.head_dim} ({found.method}{under}).\n"
        f"That is {found.ratio / barrier:.0%} of the barrier {barrier:.4f}; {fraction:.0%} of "
        f"it needs head dimension **{critical}**."
    )


def _answer_with_curve(length: float, fraction: float, mask: MaskName, as_json: bool) -> None:
    from headwise.cli.console import print_json, screen
    from headwise.cli.law_curve import curve_of, table, terminal_plot
    from headwise.cli.progress_bar import progress_bar

    curve = curve_of(length, fraction, mask, progress_bar())
    if as_json:
        print_json(curve.as_json())
        return
    screen().print(table(curve))
    screen().print(terminal_plot(curve))
