"""headwise rank: how many singular values of a matrix, or of q and k's attention, count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def _optional(help_text: str) -> typer.models.OptionInfo:
    return typer.Option(help=help_text, show_default=False)


Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="SOURCE",
        help="A matrix or a batch of them, (..., rows, columns), in a file ending in "
        ".npy, .npz, .pt, .pth or .safetensors.",
        show_default=False,
    ),
]
Name = Annotated[str | None, _optional("Which array, if SOURCE holds several.")]
Logits = Annotated[
    bool, typer.Option("--logits", help="SOURCE holds logits: measure the softmax of their rows.")
]
Queries = Annotated[
    Path | None, _optional("Instead of SOURCE: queries, (..., tokens, head dimension).")
]
QueriesName = Annotated[str | None, _optional("Which array, if that file holds several.")]
Keys = Annotated[Path | None, _optional("The keys that go with them.")]
KeysName = Annotated[str | None, _optional("Which array, if that file holds several.")]
Temperature = Annotated[
    float | None,
    typer.Option(help="What q·k is divided by.", show_default="√ of the head dimension"),
]
MaskText = Annotated[
    str,
    typer.Option(
        help="none, causal, window:128, causal+window:128, or a file: booleans "
        "(true: may attend) or floats added to the logits."
    ),
]
ToleranceText = Annotated[
    str,
    typer.Option(
        help="Count singular values of at least this; relative:1e-6 is a share of the "
        "largest; dtype is the share that the file's dtype rounds away."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def rank(
    source: Source = None,
    name: Name = None,
    logits: Logits = False,
    queries: Queries = None,
    queries_name: QueriesName = None,
    keys: Keys = None,
    keys_name: KeysName = None,
    temperature: Temperature = None,
    mask: MaskText = "none",
    tolerance: ToleranceText = "1e-8",
    as_json: AsJson = False,
) -> None:
    """Measure the rank of an attention matrix, or of any other, with a certificate.

    The rank is the number of singular values of at least the tolerance. If rounding could have
    changed that number, it is given as an interval. Pass SOURCE, or --queries and --keys.

    \b
    headwise rank attention.npy
    headwise rank logits.pt --logits --tolerance relative:1e-6
    headwise rank --queries q.npy --keys k.npy --mask causal --json
    """
    # Importing torch takes a second, so `headwise --help` does without it.
    import headwise
    from headwise.cli import rank_report
    from headwise.cli.progress_bar import progress_bar

    asked: dict[str, Any] = {
        "name": name,
        "logits": logits,
        "queries": queries,
        "keys": keys,
        "queries_name": queries_name,
        "keys_name": keys_name,
        "temperature": temperature,
        "mask": mask,
        "tolerance": tolerance,
    }
    found = headwise.rank(source, **asked, progress=progress_bar())
    inputs = {
        option: str(value) if isinstance(value, Path) else value
        for option, value in ({"file": source} | asked).items()
        if value is not None
    }
    rank_report.report(found, as_json, inputs)
