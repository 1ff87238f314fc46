"""headwise advise: options in, ``headwise.advise``, one renderer out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headwise.cli.console import UsageError, note
from headwise.masks import MaskName

if TYPE_CHECKING:
    from headwise.advice import Advice

Task = Literal["classify", "regress", "next-token", "masked-token", "retrieve", "unknown"]
Form = Literal["torch", "qwen3", "mistral", "deepseek_v3", "bert", "vit", "timm"]


def _option(*names: str, help_: str, default: str | bool = False) -> typer.models.OptionInfo:
    return typer.Option(*names, help=help_, show_default=default)


SOURCE = (
    "digits, a file (.npy, .npz, .pt, .pth, .safetensors, .txt), a folder of images, or "
    "PACKAGE:FUNCTION that returns tokens."
)
MASK = "causal: tokens attend to themselves and earlier ones."
PARAMS = "Most parameters of a layer, for example 20k."
WIDTH = "Width of the model; by default that of the vectors, 128 for ids and text."


def advise(
    source: Annotated[str | None, typer.Argument(help=SOURCE, show_default="digits")] = None,
    data: Annotated[str | None, _option("--data", help_="The same as SOURCE.")] = None,
    config: Annotated[Path | None, _option("--config", help_="A config.json to judge.")] = None,
    length: Annotated[
        str | None, _option("--length", help_="Tokens per sequence, for example 512 or 20k.")
    ] = None,
    width: Annotated[str | None, _option("--width", help_=WIDTH)] = None,
    task: Annotated[
        Task | None,
        _option("--task", help_="What the model is trained to do.", default="inferred"),
    ] = None,
    params: Annotated[str | None, _option("--params", help_=PARAMS)] = None,
    kv_bytes: Annotated[
        str | None, _option("--kv-bytes", help_="Most KV cache bytes per token.")
    ] = None,
    heads: Annotated[int | None, _option("--heads", help_="Fix the number of heads.")] = None,
    rank: Annotated[int | None, _option("--rank", help_="Fix the head dimension.")] = None,
    multiple_of: Annotated[
        int, _option("--multiple-of", help_="Ranks must be multiples of this.", default=True)
    ] = 1,
    kind: Annotated[
        Literal["mha", "gqa", "mla"] | None,
        _option("--kind", help_="Form of the layer.", default="mha, or the config's own"),
    ] = None,
    need: Annotated[
        Literal["data", "mixing", "retrieval"],
        _option("--need", help_="What decides the rank.", default=True),
    ] = "data",
    mask: Annotated[
        MaskName | None, _option("--mask", help_=MASK, default="none, or the config's own")
    ] = None,
    any_shape: Annotated[
        bool, typer.Option("--any-shape", help="Allow heads × rank to differ from the width.")
    ] = False,
    patch: Annotated[int | None, _option("--patch", help_="Side of an image patch.")] = None,
    size: Annotated[
        int | None,
        _option("--size", help_="Side that images of a folder are scaled to.", default="32"),
    ] = None,
    tokenizer: Annotated[
        str | None,
        _option(
            "--tokenizer", help_="For text: character, word or a tokenizer.json.", default="word"
        ),
    ] = None,
    vocabulary: Annotated[int | None, _option("--vocabulary", help_="Number of token ids.")] = None,
    name: Annotated[
        str | None, _option("--name", help_="Which array of a file with several.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all random draws.")] = 0,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show curves and all findings too.")
    ] = False,
    out: Annotated[Path | None, _option("--out", help_="Write an HTML report here.")] = None,
    export: Annotated[
        Form | None, _option("--export", help_="Print only a config, or the layer call.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Advise how many attention heads, of what rank, before training.

    Without options it uses the embedded handwritten digits. With --length and --width the finite
    law answers; with --config a model is judged; with SOURCE its tokens are measured.
    """
    if export and as_json:
        raise UsageError("expected --export or --json, got both; leave one out")
    if source and data:
        raise UsageError("expected SOURCE or --data, got both; leave one out")
    _refuse_other_formats(out)
    from headwise.advice import advise as answer_of
    from headwise.cli.progress_bar import progress_bar

    answer = answer_of(
        source or data,
        config=config,
        length=length,
        width=width,
        task=task,
        params=params,
        kv_bytes=kv_bytes,
        heads=heads,
        rank=rank,
        multiple_of=multiple_of,
        kind=kind,
        need=need,
        mask=mask,
        any_shape=any_shape,
        patch=patch,
        size=size,
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        name=name,
        seed=seed,
        progress=progress_bar(),
    )
    if out is not None:
        answer.report(out)
        note(f"report: {out}")
    if export is not None:
        _export(answer, export)
    elif as_json:
        from headwise.cli.console import print_json

        print_json(answer.as_json())
    else:
        from headwise.cli.console import screen

        answer.show(screen(), explain=explain)


def _refuse_other_formats(out: Path | None) -> None:
    if out is not None and out.suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(
            f"--out: expected an HTML file, got {out}; pass --out {out.with_suffix('.html')}"
        )


def _export(answer: Advice, form: Form) -> None:
    """Print the export, and on the error stream what to check in it."""
    print(answer.export(form))
    for line in answer.remarks(form):
        note(line)
