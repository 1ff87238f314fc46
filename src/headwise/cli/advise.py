"""headwise advise: options in, ``headwise.advise``, one renderer out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headwise.cli.console import UsageError, note, print_json, screen
from headwise.cli.options import (
    AsJson,
    Html,
    option,
    refuse_missing,
    refuse_unwritable,
    tokenizer_name,
    whole,
    whole_from,
)
from headwise.mask_names import MaskName

if TYPE_CHECKING:
    from headwise.advice import Advice

#: Options of the command alone; all others are parameters of ``headwise.advise``.
OWN = ("data", "explain", "html", "export", "as_json")


Source = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE",
        help="digits, a file (.npy, .npz, .pt, .pth, .safetensors, .txt, .md, .py or an image), a "
        "folder of images or texts, or PACKAGE:FUNCTION that returns tokens.",
        show_default="digits",
    ),
]
Data = Annotated[str | None, option("--data", "The same as SOURCE.")]
Config = Annotated[Path | None, option("--config", "Judge the model of this config.json.")]
Length = Annotated[
    int | None,
    option("--length", "Tokens per sequence, such as 512 or 20k.", whole_from(2, 10**12)),
]
Width = Annotated[
    int | None,
    option(
        "--width",
        "Width of the model.",
        whole_from(2, 10**6),
        default="that of the vectors; 128 for text and ids",
    ),
]
Task = Annotated[
    Literal["classify", "regress", "next-token", "masked-token", "retrieve", "unknown"] | None,
    option("--task", "What the model is trained to do.", default="inferred"),
]
Params = Annotated[
    int | None,
    option("--params", "Limit the parameters of the attention layer, such as 20k.", whole_from(1)),
]


def cache_bytes(text: str | int) -> int | str:
    """Read bytes of a KV cache; ``headwise.advise`` refuses a share and names the unit.

    >>> cache_bytes("1k"), cache_bytes("50%")
    (1000, '50%')
    """
    return text if isinstance(text, str) and text.strip().endswith("%") else whole_from(1)(text)


KvBytes = Annotated[
    Any,
    option(
        "--kv-bytes",
        "Limit the KV cache: bytes per token of one layer, in 16-bit numbers.",
        cache_bytes,
    ),
]
Heads = Annotated[int | None, option("--heads", "Fix the number of heads.", whole_from(1, 65_536))]
Rank = Annotated[int | None, option("--rank", "Fix the head dimension.", whole_from(1))]
MultipleOf = Annotated[
    int,
    option("--multiple-of", "Make the head dimension a multiple of this.", whole_from(1)),
]
Kind = Annotated[
    Literal["mha", "gqa", "mla"] | None,
    option(
        "--kind",
        "mha: every head has keys and values; gqa: groups share them; mla: latent.",
        default="mha, or the config's",
    ),
]
Need = Annotated[
    Literal["data", "mixing", "retrieval"],
    option(
        "--need",
        "What decides the rank: mixing tokens, retrieval of single ones, or what the data show.",
    ),
]
Mask = Annotated[
    MaskName | None,
    option(
        "--mask",
        "causal: a token attends to itself and earlier ones.",
        default="the config's, or that of the task",
    ),
]
AnyShape = Annotated[
    bool, typer.Option("--any-shape", help="Allow heads × rank to differ from the width.")
]
Patch = Annotated[
    int | None, option("--patch", "For images: side of a patch in pixels.", whole_from(1))
]
Size = Annotated[
    int | None,
    option(
        "--size",
        "For a folder of images: scale them to this side.",
        whole_from(1),
        default="32 pixels",
    ),
]
Tokenizer = Annotated[
    str | None,
    option(
        "--tokenizer",
        "For text: character, word or a tokenizer.json.",
        tokenizer_name,
        metavar="TEXT",
        default="word",
    ),
]
VocabularySize = Annotated[
    int | None, option("--vocabulary", "For token ids: how many there are.", whole_from(1))
]
Name = Annotated[str | None, option("--name", "Which array, if SOURCE holds several.")]
Seed = Annotated[int, option("--seed", "Seed of the random draws.", whole)]
Explain = Annotated[bool, typer.Option("--explain", help="Show the curves and every finding.")]
Export = Annotated[
    Literal["torch", "qwen3", "mistral", "deepseek_v3", "bert", "vit", "timm"] | None,
    option("--export", "Print the layer as Python code (torch, timm) or a config (others)."),
]


def advise(
    source: Source = None,
    data: Data = None,
    config: Config = None,
    length: Length = None,
    width: Width = None,
    task: Task = None,
    params: Params = None,
    kv_bytes: KvBytes = None,
    heads: Heads = None,
    rank: Rank = None,
    multiple_of: MultipleOf = 1,
    kind: Kind = None,
    need: Need = "data",
    mask: Mask = None,
    any_shape: AnyShape = False,
    patch: Patch = None,
    size: Size = None,
    tokenizer: Tokenizer = None,
    vocabulary: VocabularySize = None,
    name: Name = None,
    seed: Seed = 0,
    explain: Explain = False,
    html: Html = None,
    export: Export = None,
    as_json: AsJson = False,
) -> None:
    """Advise how many attention heads, of what rank, before training.

    With SOURCE its tokens are measured. With --length and --width a formula answers. With --config
    a model is judged. Without any of them, SOURCE is a set of handwritten digits.

    \b
    headwise advise tokens.npy --width 256 --params 100k
    headwise advise --length 512 --width 768
    headwise advise --config config.json
    """
    asked = dict(locals())  # every option; headwise.advise has parameters of the same names
    own = {option: asked.pop(option) for option in OWN}
    _refuse_contradictions(source, **own)
    refuse_unwritable(html)
    refuse_missing(source or data, config)
    from headwise import advise as advised
    from headwise.cli.progress_bar import progress_bar

    asked["source"] = source or data
    answer = advised(**asked, progress=progress_bar())
    _write(answer, html)
    _show(answer, explain=explain, export=export, as_json=as_json)


def _refuse_contradictions(
    source: str | None, data: str | None, export: str | None, **others: Any
) -> None:
    if export and others["as_json"]:
        raise UsageError("expected --export or --json, got both; leave one out")
    if source and data:
        raise UsageError("expected SOURCE or --data, got both; leave one out")


def _write(answer: Advice, html: Path | None) -> None:
    if html is not None:
        note(f"report: {answer.report(html, face='command')}")


def _show(answer: Advice, *, explain: bool, export: Any, as_json: bool) -> None:
    if export is not None:
        print(answer.export(export))
        for line in answer.remarks(export):
            note(line)
    elif as_json:
        print_json(answer.as_json())
    else:
        answer.show(screen(), explain=explain)
