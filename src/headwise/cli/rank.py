"""headwise rank: how many singular values of a matrix, or of q and k's attention, count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def rank(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A matrix or a batch of them, (..., rows, columns), in a file ending in "
            ".npy, .npz, .pt, .pth or .safetensors.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Which array, if FILE holds several.", show_default=False)
    ] = None,
    logits: Annotated[
        bool,
        typer.Option("--logits", help="FILE holds logits: measure the softmax of their rows."),
    ] = False,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="In place of FILE: queries, (..., tokens, head dimension).", show_default=False
        ),
    ] = None,
    queries_name: Annotated[
        str | None, typer.Option(help="Which array, if it holds several.", show_default=False)
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="The keys that go with them.", show_default=False)
    ] = None,
    keys_name: Annotated[
        str | None, typer.Option(help="Which array, if it holds several.", show_default=False)
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="What q·k is divided by.", show_default="√ of the head dimension"),
    ] = None,
    mask: Annotated[
        str,
        typer.Option(
            help="none, causal, window:128, causal+window:128, or a file: booleans "
            "(true: may attend) or floats added to the logits."
        ),
    ] = "none",
    tolerance: Annotated[
        str,
        typer.Option(
            help="Count singular values of at least this; relative:1e-6 is a share of the "
            "largest; dtype is the share that the file's dtype rounds away."
        ),
    ] = "1e-8",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """The rank of an attention matrix, or any other, certified.

    The rank is the number of singular values of at least the tolerance. Where rounding
    could have changed that number, it is given as an interval. --queries and --keys take
    the place of FILE.

    \b
    headwise rank attention.npy
    headwise rank logits.pt --logits --tolerance relative:1e-6
    headwise rank --queries q.npy --keys k.npy --mask causal --json
    """
    # torch takes a second to import: only once there is something to measure.
    from headwise.cli import rank_input, rank_report

    rule = rank_input.parsed_tolerance(tolerance)
    asked = rank_input.Asked(
        file, name, logits, queries, keys, queries_name, keys_name, temperature, mask
    )
    rank_report.report(asked.subject(), rule, as_json)
