"""headwise reduce: cut the attention of a trained model to the rank it uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headwise.cli.console import UsageError, quieten_transformers
from headwise.cli.options import (
    AsJson,
    Html,
    Model,
    amount,
    number_above,
    option,
    passing,
    refuse_unwritable,
    store_place,
    text_in_file,
    whole_from,
)
from headwise.devices import device_kind
from headwise.whole_files import new_folder

if TYPE_CHECKING:
    from headwise.reduction import Reduction

#: The columns of the table that compares two models.
ROWS = ("", "before", "after")

Text = Annotated[
    str,
    typer.Option(
        "--text",
        help="Text file to calibrate and to judge on; - reads stdin.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Folder to write the model to; must not exist.")
]
KvBytes = Annotated[
    str | None,
    option(
        "--kv-bytes",
        "Budget: bytes of keys and values per token, all layers, or a share such as 50%.",
        amount,
    ),
]
Params = Annotated[
    str | None,
    option("--params", "Budget: parameters of the attention, or a share such as 50%.", amount),
]
Keep = Annotated[
    float | None,
    option(
        "--keep",
        "Budget: keep this share of the weighted squared singular values of every cut matrix.",
        number_above(0, 1),
    ),
]
Rank = Annotated[
    int | None,
    option(
        "--rank",
        "Budget: one rank for every head, and for a vector that holds the keys of all heads.",
        whole_from(1),
    ),
]
KeysCut = Annotated[
    Literal["latent", "rotated", "pairs"] | None,
    typer.Option(
        "--keys",
        help="How a decoder's keys are cut: latent loses least, rotated decodes faster, pairs "
        "drops rotation pairs.",
        show_default="latent",
    ),
]
Only = Annotated[
    Literal["keys", "values"] | None,
    typer.Option(
        "--only",
        help="Cut only keys, with the queries that meet them, or only values; the budget counts "
        "these alone.",
    ),
]
Step = Annotated[
    int,
    option("--step", "Make ranks multiples of this.", whole_from(1)),
]
Tokens = Annotated[
    int | None,
    option(
        "--tokens",
        "Calibrate on at most this many tokens.",
        whole_from(1),
        default="8192, encoders 16384",
    ),
]
HeldOut = Annotated[
    int,
    option("--held-out", "Judge on at most this many tokens.", whole_from(1)),
]
Length = Annotated[
    int | None,
    option("--length", "Tokens of a sequence.", whole_from(8), default="512, encoders 64"),
]
Heal = Annotated[
    int,
    option("--heal", "Train the cut layers for this many steps.", whole_from(0)),
]
WithCurve = Annotated[
    bool, typer.Option("--curve", help="Score the model at up to six other budgets too.")
]
Context = Annotated[
    int,
    option("--context", "Tokens in the cache to time decoding; 0: no times.", whole_from(0)),
]
Device = Annotated[
    str,
    option("--device", "Where to compute, such as cuda.", passing(device_kind), metavar="DEVICE"),
]
Seed = Annotated[
    int,
    option("--seed", "Seed of the random draws.", whole_from(0)),
]
StorePlace = Annotated[
    str | None,
    option(
        "--store",
        "Where the result is kept for headwise serve: a path, or postgresql://HOST/DATABASE.",
        store_place,
        metavar="PLACE",
        default=".headwise/results.db",
    ),
]


def reduce(
    model: Model,
    text: Text,
    out: Out = None,
    kv_bytes: KvBytes = None,
    params: Params = None,
    keep: Keep = None,
    rank: Rank = None,
    keys: KeysCut = None,
    only: Only = None,
    step: Step = 8,
    tokens: Tokens = None,
    held_out: HeldOut = 4096,
    length: Length = None,
    heal: Heal = 0,
    curve: WithCurve = False,
    context: Context = 2048,
    device: Device = "cpu",
    seed: Seed = 0,
    store: StorePlace = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Cut the attention of a trained model to the rank that it uses, and measure the cost.

    MODEL is a Llama, Mistral, Qwen2 or BERT; a BERT keeps its task head. Pass one budget:
    --kv-bytes, --params, --keep or --rank. A decoder is judged by its perplexity, an encoder by the
    similarities of its embeddings. Run the same command again after it was stopped: the calibration
    is kept.

    \b
    headwise reduce model_folder --text text.txt --kv-bytes 50% --out smaller
    headwise reduce bert_folder --text text.txt --rank 8 --only keys --out smaller
    """
    asked = dict(locals())  # every option; headwise.reduce has parameters of the same names
    del asked["html"], asked["as_json"]
    _one_budget({"--kv-bytes": kv_bytes, "--params": params, "--keep": keep, "--rank": rank})
    refuse_unwritable(html)
    if out is not None:
        new_folder(out)
    asked["text"] = text_in_file(text)
    from headwise.hugging_face import refuse_irreducible

    refuse_irreducible(model)
    import headwise
    from headwise.cli.progress_bar import progress_bar
    from headwise.runs import DEFAULT_STORE

    quieten_transformers()
    asked["store"] = DEFAULT_STORE if store is None else store
    _show(headwise.reduce(**asked, progress=progress_bar()), html, as_json=as_json)


def _one_budget(budgets: dict[str, object]) -> None:
    given = [name for name, value in budgets.items() if value is not None]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise UsageError(f"expected one budget of {', '.join(budgets)}, got {got}; pass one")


def _show(found: Reduction, html: Path | None, *, as_json: bool) -> None:
    from headwise.cli.console import note, print_json

    if as_json:
        print_json(found.as_json())
    else:
        _print(found)
    if html is not None:
        note(f"report: {found.report(html)}")


def _print(found: Reduction) -> None:
    from rich.table import Table

    from headwise.cli.console import screen
    from headwise.reduction import rank_table, reduction_rows, reduction_words

    out = screen()
    answer, *legend = reduction_words(found)
    out.print(f"{answer}\n", markup=False, highlight=False)
    ranks = rank_table(found)
    for columns, rows in ((ranks.columns, ranks.rows), (ROWS, reduction_rows(found))):
        table = Table(*columns, box=None)
        for row in rows:
            table.add_row(*map(str, row))
        out.print(table)
    for line in legend:
        out.print(line, markup=False, highlight=False)
    size = "KV cache" if found.cached else "keys and values"
    for point in found.curve:
        score = f"{point.score.name} {point.score.value:.4g} ± {point.score.error:.2g}"
        out.print(f"{point.kv_bytes / found.kv_bytes[0]:.0%} of the {size}: {score}")
    if found.folder is not None:
        out.print(
            f"written: {found.folder}; load it with headwise.load({found.folder!r}) or "
            f"{found.loaded_by}.from_pretrained({found.folder!r}, trust_remote_code=True)",
            soft_wrap=True,
            markup=False,
        )
