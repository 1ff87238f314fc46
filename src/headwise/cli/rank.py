"""headwise rank: how many singular values of a matrix, or of q and k's attention, count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headwise.cli.options import AsJson, matching, number_above, option, passing, refuse_missing
from headwise.mask_names import MASK_NAME, names_mask_file
from headwise.rank_arguments import refuse_mixtures, tolerance_parts


def _optional(help_text: str) -> typer.models.OptionInfo:
    return typer.Option(help=help_text, show_default=False)


def _mask(text: str) -> str:
    """Read the name of a mask, or of a file that is there."""
    wanted = "none, causal, window:128 (1 or more), causal+window:128 or a file"
    return text if names_mask_file(text) else matching(MASK_NAME, wanted)(text)


Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="SOURCE",
        help="A file with a matrix, or a batch of them of shape (..., rows, columns): .npy, .npz, "
        ".pt, .pth or .safetensors.",
        show_default=False,
    ),
]
Name = Annotated[str | None, _optional("Which array, if SOURCE holds several.")]
Logits = Annotated[
    bool, typer.Option("--logits", help="SOURCE holds logits: measure their softmax by rows.")
]
Queries = Annotated[
    Path | None, _optional("Instead of SOURCE: a file of queries, (..., tokens, head dimension).")
]
QueriesName = Annotated[str | None, _optional("Which array, if that file holds several.")]
Keys = Annotated[Path | None, _optional("The file of keys that goes with --queries.")]
KeysName = Annotated[str | None, _optional("Which array, if that file holds several.")]
Temperature = Annotated[
    float | None,
    option(
        "--temperature",
        "With --queries: divisor of the logits q·k.",
        number_above(0),
        default="√ of the head dimension",
    ),
]
MaskText = Annotated[
    str,
    option(
        "--mask",
        "With --queries or --logits: none, causal, window:128, causal+window:128, or a file "
        "of booleans (true: may attend) or of floats to add to the logits (not of 0 and 1).",
        _mask,
        metavar="MASK",
    ),
]
ToleranceText = Annotated[
    str,
    option(
        "--tolerance",
        "Count singular values of at least this. relative:1e-6 is a share of the largest; "
        "dtype is the share that the file's dtype rounds away.",
        passing(tolerance_parts),
        metavar="RULE",
    ),
]


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
    """Measure the rank of an attention matrix, or of any other matrix.

    The rank is the number of singular values of at least the tolerance. If rounding could have
    changed that number, the answer is an interval. Pass SOURCE, or --queries and --keys.

    \b
    headwise rank attention.npy
    headwise rank logits.pt --logits --tolerance relative:1e-6
    headwise rank --queries q.npy --keys k.npy --mask causal --json
    """
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
    refuse_mixtures({"source": source} | asked)
    mask_file = Path(mask) if names_mask_file(mask) else None
    refuse_missing(arrays=(source, queries, keys, mask_file))
    # Importing torch takes seconds, so everything above does without it.
    import headwise
    from headwise.cli import rank_report
    from headwise.cli.progress_bar import progress_bar

    rank_report.report(headwise.rank(source, **asked, progress=progress_bar()), as_json)
