"""headwise rank: how many singular values of a matrix, or of q and k's attention, count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_FILES = ".npy, .npz, .pt, .pth or .safetensors"
_QK = "Queries and keys"


def rank(
    file: Annotated[
        Path | None,
        typer.Argument(
            help=f"A matrix or a batch of matrices, (..., rows, columns): {_FILES}.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="In place of FILE: queries, (..., tokens, head dimension).",
            rich_help_panel=_QK,
            show_default=False,
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(help="The keys beside them.", rich_help_panel=_QK, show_default=False),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="What q·k is divided by.",
            rich_help_panel=_QK,
            show_default="root of the head dimension",
        ),
    ] = None,
    mask: Annotated[
        str,
        typer.Option(
            help="none, causal, window:128, causal+window:128, or a file: "
            "booleans (true: may attend) or floats added to the logits.",
            rich_help_panel=_QK,
        ),
    ] = "none",
    tolerance: Annotated[
        str,
        typer.Option(
            help="Which singular values count: those of at least this; relative:1e-6 of the "
            "largest; or dtype, what stands above the rounding of the file's dtype."
        ),
    ] = "1e-8",
    logits: Annotated[
        bool,
        typer.Option("--logits", help="FILE holds logits: measure the softmax of their rows."),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(help="Which array, if FILE holds several.", show_default=False),
    ] = None,
    queries_name: Annotated[
        str | None,
        typer.Option(
            help="Which array holds the queries.", rich_help_panel=_QK, show_default=False
        ),
    ] = None,
    keys_name: Annotated[
        str | None,
        typer.Option(help="Which array holds the keys.", rich_help_panel=_QK, show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """The rank of an attention matrix, or any other, as a certified count.

    The rank is the number of singular values of at least the tolerance. If rounding could
    have changed that number it is given as an interval: a bfloat16 matrix cannot tell.

    Examples: headwise rank attention.npy | headwise rank logits.pt --logits |
    headwise rank --queries q.npy --keys k.npy --mask causal --json
    """
    # torch takes a second to import: only once there is something to measure.
    from headwise.cli import rank_input, rank_report

    rule = rank_input.parsed_tolerance(tolerance)
    asked = rank_input.Asked(
        file, name, logits, queries, keys, queries_name, keys_name, temperature, mask
    )
    rank_report.report(asked.subject(), rule, as_json)
