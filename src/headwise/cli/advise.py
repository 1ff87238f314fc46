"""headwise advise: how many heads, of what rank, for data, for numbers or for a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli.console import UsageError
from headwise.errors import HeadwiseError
from headwise.masks import MaskName

if TYPE_CHECKING:
    from headwise.advice import Advice, Evidence
    from headwise.advice.config import ModelConfig


class Kinds(StrEnum):
    """Forms of an attention layer, as written on the command line."""

    mha = "mha"
    gqa = "gqa"
    mla = "mla"


class Needs(StrEnum):
    """What the heads must do."""

    data = "data"
    mixing = "mixing"
    retrieval = "retrieval"


class Forms(StrEnum):
    """What the answer is written as."""

    qwen3 = "qwen3"
    mistral = "mistral"
    deepseek_v3 = "deepseek_v3"
    torch = "torch"


Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="digits, a file (.npy, .npz, .pt, .pth, .safetensors, .txt), a folder of images, "
        "or PACKAGE:FUNCTION that gives batches of tokens.",
        show_default="digits",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", help="A Hugging Face config.json to judge.", show_default=False),
]
Length = Annotated[
    float | None,
    typer.Option(
        "--length",
        help="Tokens in a sequence, a whole number such as 512 or 1e6; alone: the law.",
        show_default=False,
    ),
]
Width = Annotated[
    int | None,
    typer.Option(
        "--width",
        help="Width of the model; without it that of the vectors, 128 for ids and text.",
        show_default=False,
    ),
]
Params = Annotated[
    float | None,
    typer.Option(
        "--params",
        help="Most parameters of a layer, a whole number such as 20000 or 1e5.",
        show_default=False,
    ),
]
KvBytes = Annotated[
    float | None, typer.Option("--kv-bytes", help="Most cache bytes per token.", show_default=False)
]
Heads = Annotated[
    int | None, typer.Option("--heads", help="Fix the number of heads.", show_default=False)
]
Rank = Annotated[
    int | None, typer.Option("--rank", help="Fix the head dimension.", show_default=False)
]
MultipleOf = Annotated[int, typer.Option("--multiple-of", help="Ranks must be multiples of it.")]
Kind = Annotated[
    Kinds | None,
    typer.Option("--kind", help="Form of the layer.", show_default="mha, or the config's own"),
]
Need = Annotated[
    Needs, typer.Option("--need", help="What decides: mixing, retrieval, or what the data show.")
]
Mask = Annotated[
    MaskName | None,
    typer.Option(
        "--mask",
        help="causal: tokens attend to themselves and those before.",
        show_default="none, or the config's own",
    ),
]
Patch = Annotated[
    int | None, typer.Option("--patch", help="Side of an image patch.", show_default=False)
]
Size = Annotated[
    int | None,
    typer.Option("--size", help="Side that images of a folder are scaled to.", show_default="32"),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        help="For text: character, word, or a tokenizer.json.",
        show_default="word",
    ),
]
Vocabulary = Annotated[
    int | None, typer.Option("--vocabulary", help="Number of token ids.", show_default=False)
]
Name = Annotated[
    str | None, typer.Option("--name", help="Which array of a file of several.", show_default=False)
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same answer.")]
Out = Annotated[
    Path | None, typer.Option("--out", help="Write an HTML report here.", show_default=False)
]
Export = Annotated[
    Forms | None,
    typer.Option(
        "--export", help="Print only this: a config, or the layer call.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def advise(
    data: Data = None,
    config: Config = None,
    length: Length = None,
    width: Width = None,
    params: Params = None,
    kv_bytes: KvBytes = None,
    heads: Heads = None,
    rank: Rank = None,
    multiple_of: MultipleOf = 1,
    kind: Kind = None,
    need: Need = Needs.data,
    mask: Mask = None,
    patch: Patch = None,
    size: Size = None,
    tokenizer: Tokenizer = None,
    vocabulary: Vocabulary = None,
    name: Name = None,
    seed: Seed = 0,
    out: Out = None,
    export: Export = None,
    as_json: AsJson = False,
) -> None:
    """Advise heads and ranks before training, with costs and reasons.

    Without options it looks at the embedded digits. With --length and --width it asks the
    finite law; with --config it judges a model; with --data it measures.
    """
    from headwise.advice.config import read_config
    from headwise.advice.deciding import decide, decide_for
    from headwise.advice.question import Budget, Constraints

    budget = Budget(_limit("--params", params), _limit("--kv-bytes", kv_bytes))
    with _names_of_options():
        constraints = Constraints(heads, rank, multiple_of, kind.value if kind else None)
    if export and as_json:
        raise UsageError("pass either --export or --json, and not both")
    _refuse_other_formats(out)
    model = read_config(config) if config else None
    options: dict[str, int | str | None] = {"patch": patch, "size": size, "tokenizer": tokenizer}
    options |= {"vocabulary": vocabulary, "name": name}
    given = {option: value for option, value in options.items() if value is not None}
    chosen = mask if mask else (model.mask if model else "none")
    evidence = _evidence(data, model, (length, width), given, (seed, chosen))
    with _names_of_options():
        if model is None:
            answer = decide(evidence, budget, constraints, need.value)
        else:
            answer = decide_for(model, evidence, budget, constraints, need.value)
    _give(answer, export, as_json, out)


def _limit(option: str, value: float | None) -> int | None:
    """A limit as a whole number, however it was written."""
    from headwise.advice.question import checked_size

    return None if value is None else checked_size(option, value, 1, 10**18)


@contextmanager
def _names_of_options() -> Iterator[None]:
    """What is said of a parameter is said of the option that it came by."""
    try:
        yield
    except HeadwiseError as error:
        problem, hint = (
            words.replace("multiple_of", "--multiple-of") for words in (error.problem, error.hint)
        )
        raise type(error)(problem, hint=hint) from None


def _refuse_other_formats(out: Path | None) -> None:
    if out is not None and out.suffix.lower() not in ("", ".html", ".htm"):
        better = out.with_suffix(".html")
        raise UsageError(f"--out {out} is not HTML, and the report is: pass --out {better}")


def _evidence(
    data: str | None,
    model: ModelConfig | None,
    sizes: tuple[float | None, int | None],
    options: Mapping[str, int | str],
    drawing: tuple[int, MaskName],
) -> Evidence:
    """From numbers where no data are named and there are numbers, else measured."""
    length, width = sizes
    assumed = model is not None and not length and not model.context_told
    if model is not None:
        if width not in (None, model.geometry.width):
            raise UsageError(f"--config says width {model.geometry.width}, --width {width}")
        width = model.geometry.width
        length = length or (model.context if data is None else None)
    if data is None and length is not None:
        from headwise.advice.gathering import numbers_evidence

        if width is None:
            raise UsageError("--length needs --width: the law has no data to take it from")
        _refuse_without_data(options)
        return numbers_evidence(length, width, drawing[1], assumed=assumed)
    if data is None and width is not None:
        raise UsageError(f"--width {width} needs --length (for the law) or --data (to measure)")
    measured = _measured(data or "digits", (length, width), options, drawing)
    # A length that was named is the one in question; else the model's own is.
    if model is None or length or not model.context_told:
        return measured
    return replace(measured, full_length=model.context)


def _refuse_without_data(options: Mapping[str, int | str]) -> None:
    if options:
        names = ", ".join(f"--{name}" for name in options)
        raise UsageError(f"only data are read with {names}: pass --data too, or leave it out")


def _measured(
    data: str,
    sizes: tuple[float | None, int | None],
    options: Mapping[str, int | str],
    drawing: tuple[int, MaskName],
) -> Evidence:
    from headwise.advice.band import FIRST
    from headwise.advice.gathering import evidence_of
    from headwise.advice.measuring import Sampling
    from headwise.advice.question import checked_size
    from headwise.advice.sources import OPTIONS, Reading, kind_of, tokens_from
    from headwise.cli.progress_bar import progress_bar
    from headwise.progress import tracked

    idle = ", ".join(f"--{name}" for name in options if name not in OPTIONS[kind_of(data)])
    if idle:
        raise UsageError(f"--data {data} is not read with {idle}: leave it out")
    length = None if sizes[0] is None else checked_size("the length", sizes[0], 2, 10**6)
    if sizes[1] is not None:
        checked_size("the width", sizes[1], 2, 10**5)
    tokens = tokens_from(data, Reading(width=sizes[1], length=length, **options))  # type: ignore[arg-type]
    curves = 2 if drawing[1] == "none" else 3
    with tracked(progress_bar(), "measuring ranks", curves * 2 * FIRST) as progress:
        return evidence_of(tokens, None, Sampling(drawing[0], progress, drawing[1]))


def _give(answer: Advice, export: Forms | None, as_json: bool, out: Path | None) -> None:
    from headwise.cli.console import note, print_json

    if out is not None:
        from headwise.advice.page import report_page
        from headwise.report import write_page

        write_page(report_page(answer), out)
    if export is not None:
        from headwise.advice.export import assumed_sizes, exported, unasked_mask
        from headwise.advice.result import need_words

        print(exported(answer, export.value))
        if assumed := assumed_sizes(answer, export.value):
            note(f"assumed, change them to yours: {assumed}")
        if unmasked := unasked_mask(answer, export.value):
            note(unmasked)
        if not answer.best.meets:
            note(f"this does not meet the need: {need_words(answer.rank)}")
    elif as_json:
        print_json(answer.as_json())
    else:
        from headwise.cli.advise_report import show

        show(answer)
    if out is not None:
        (note if export is not None or as_json else print)(f"report: {out}")
