"""advise: the one function that answers how many heads, of what rank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from headwise.advice.advice import Advice
from headwise.advice.decide import decide
from headwise.advice.evidence import Evidence, Sampling, law_evidence, measured_evidence
from headwise.advice.question import (
    Budget,
    Constraints,
    Kind,
    Need,
    Question,
    Task,
    TaskFrom,
)
from headwise.advice.tokens.source import Reading
from headwise.checks import of_type, one_of, quantity
from headwise.errors import ParameterError
from headwise.hugging_face.config import ModelConfig, read_config
from headwise.mask_names import MaskName, checked_mask
from headwise.progress import SILENT, Progress

#: Largest values: with data, of the law, and of a budget.
MOST_MEASURED, MOST_LENGTH, MOST_WIDTH, MOST_COST = 10**6, 10**12, 10**6, 10**18

#: A whole number, or a text that holds one, such as "20k".
Number = int | float | str


def advise(
    source: Any = None,
    *,
    config: Path | str | Any = None,
    length: Number | None = None,
    width: Number | None = None,
    task: Task | None = None,
    params: Number | None = None,
    kv_bytes: Number | None = None,
    heads: Number | None = None,
    rank: Number | None = None,
    multiple_of: Number = 1,
    kind: Kind | None = None,
    need: Need = "data",
    mask: MaskName | None = None,
    any_shape: bool = False,
    patch: Number | None = None,
    size: Number | None = None,
    tokenizer: str | None = None,
    vocabulary: Number | None = None,
    name: str | None = None,
    seed: Number = 0,
    progress: Progress = SILENT,
) -> Advice:
    """Advise how many attention heads, of what rank, before training.

    With a source the tokens are measured. With only a length and a width the finite law answers.
    With a config its model is judged, with or without data. Without anything the embedded
    handwritten digits are used.

    Args:
        source: "digits", a file (.npy, .npz, .pt, .pth, .safetensors, .txt, .md, .py or an
            image), a folder of images or texts, PACKAGE:FUNCTION, an array or tensor (vectors, ids
            or images), a DataLoader, a Dataset, or text (a string with line breaks, or a list of
            strings).
        config: A Hugging Face config.json, its folder, its fields, or a transformers config.
        length: Tokens per sequence, such as 512, "20k" or "1.5M", as every number may be given;
            256 for text by default.
        width: Width of the model; by default that of the vectors, or 128 for ids.
        task: What the model is trained to do: "classify", "regress", "next-token",
            "masked-token", "retrieve" or "unknown". Inferred where possible.
        params: Most parameters of one attention layer.
        kv_bytes: Most KV cache bytes per token of one layer, in 16-bit numbers.
        heads: Fix the number of heads.
        rank: Fix the head dimension.
        multiple_of: Ranks must be multiples of this.
        kind: "mha", "gqa" or "mla"; by default "mha", or the config's own.
        need: What decides: "mixing", "retrieval", or "data" for what the data show.
        mask: "none" or "causal"; by default the config's own, else "causal" for next-token.
        any_shape: Allow heads × rank to differ from the width.
        patch: Side of an image patch.
        size: Side that images of a folder are scaled to.
        tokenizer: For text: "character", "word" (the default) or a tokenizer.json.
        vocabulary: Number of token ids.
        name: Which array of a file with several.
        seed: Seed of all random draws; the same seed gives the same answer.
        progress: Where to report progress.

    Returns:
        The advice: geometries with their costs, the advised one first, and the evidence.

    Raises:
        BadInputError: Nothing fits the limits, or the tokens are of no use.
        ParameterError: The parameters contradict each other.
        UnreadableFileError: A file is missing or damaged.

    Example:
        >>> import torch
        >>> tokens = torch.randn(8, 24, 16, generator=torch.Generator().manual_seed(0))
        >>> advise(tokens, width=32, params=4096).best.geometry.parameters <= 4096
        True
    """
    _refuse_unknown(task, need)
    one_of("`any_shape`", any_shape, (True, False))
    of_type("`name`", name, (str, type(None)), "the name of an array")
    model = None if config is None else read_config(config)
    budget = _budget(params, kv_bytes)
    constraints = _constraints(heads, rank, multiple_of, kind)
    reading = Reading(
        width=_optional("width", width, MOST_WIDTH, least=2),
        length=_optional("length", length, MOST_LENGTH, least=2),
        patch=_optional("patch", patch),
        size=_optional("size", size),
        tokenizer=tokenizer,
        vocabulary=_optional("vocabulary", vocabulary),
        name=name,
    )
    masked = checked_mask(mask or _usual_mask(model, task))
    sampling = Sampling(quantity("`seed`", seed, 0), progress, masked)
    evidence = _evidence(source, model, reading, sampling)
    named, known = _task(task, need, model, evidence)
    question = Question(budget, constraints, need, named, known, any_shape)
    return decide(evidence, question, model)


def again(
    advice: Advice,
    *,
    config: Path | str | Any = None,
    task: Task | None = None,
    params: Number | None = None,
    kv_bytes: Number | None = None,
    heads: Number | None = None,
    rank: Number | None = None,
    multiple_of: Number = 1,
    need: Need = "data",
    any_shape: bool = False,
) -> Advice:
    """Answer another question from the same measurements, in a few milliseconds.

    Args:
        advice: An earlier answer, whose measurements are used.
        config: The config that it was given, if any.
        task: As in ``advise``; by default the task of the earlier answer.
        params: As in ``advise``.
        kv_bytes: As in ``advise``.
        heads: As in ``advise``.
        rank: As in ``advise``.
        multiple_of: As in ``advise``.
        need: As in ``advise``.
        any_shape: As in ``advise``.

    Returns:
        What ``advise`` would have returned with these limits.

    Raises:
        BadInputError: Nothing fits the limits.
        ParameterError: The parameters contradict each other.

    Example:
        >>> first = advise(length=256, width=128)
        >>> again(first, params=16_384).best.geometry.parameters <= 16_384
        True
    """
    _refuse_unknown(task, need)
    before = advice.question
    asked = Question(
        _budget(params, kv_bytes),
        _constraints(heads, rank, multiple_of, before.constraints.kind),
        need,
        before.task if task is None else task,
        before.task_from if task is None else "given",
        any_shape,
    )
    return decide(advice.evidence, asked, None if config is None else read_config(config))


def _refuse_unknown(task: Task | None, need: Need) -> None:
    one_of("`task`", task, (*get_args(Task), None))
    one_of("`need`", need, get_args(Need))


def _budget(params: Number | None, kv_bytes: Number | None) -> Budget:
    if isinstance(kv_bytes, str) and kv_bytes.strip().endswith("%"):
        raise ParameterError(
            f"expected `kv_bytes` as bytes per token of one layer, in 16-bit numbers, got "
            f"{kv_bytes!r}",
            hint="pass a number such as 512; only headwise reduce takes shares",
        )
    limits = _optional("params", params, MOST_COST), _optional("kv_bytes", kv_bytes, MOST_COST)
    return Budget(*limits)


def _constraints(
    heads: Number | None, rank: Number | None, multiple_of: Number, kind: Kind | None
) -> Constraints:
    fixed = _optional("heads", heads), _optional("rank", rank)
    return Constraints(*fixed, quantity("`multiple_of`", multiple_of), kind)


def _optional(
    name: str, value: Number | None, most: int | None = None, least: int = 1
) -> int | None:
    return None if value is None else quantity(f"`{name}`", value, least, most)


def _evidence(
    source: Any, model: ModelConfig | None, reading: Reading, sampling: Sampling
) -> Evidence:
    """Measured where there is a source, else from the law at a length and a width."""
    length, known = reading.length, "config"
    if model is not None:
        width = model.geometry.width
        if reading.width not in (None, width):
            raise ParameterError(
                f"expected the width of the config, {width}, got `width={reading.width}`",
                hint="leave `width` out",
            )
        reading = replace(reading, width=width)
        if source is None and length is None:
            length, known = model.context, model.context_from
    if source is None and length is not None:
        found = _from_law(length, reading, sampling.mask)
        return found if known == "config" else replace(found, length_from=known)
    if source is None and reading.width is not None:
        raise ParameterError(
            f"expected a `source` or a `length` with `width={reading.width}`, got neither",
            hint="pass `source` to measure its tokens, or `length` to use the law",
        )
    if length is not None:
        quantity("`length`", length, 2, MOST_MEASURED)
    measured = measured_evidence("digits" if source is None else source, reading, sampling)
    # A given length is the one in question, else the model's own.
    if model is None or length or not model.context_told:
        return measured
    return replace(measured, full_length=model.context)


def _from_law(length: int, reading: Reading, mask: MaskName) -> Evidence:
    if reading.width is None:
        raise ParameterError(
            "expected `width` with `length`, got none: there is no `source` to take it from",
            hint="pass `width` too",
        )
    used = ("patch", "size", "tokenizer", "vocabulary", "name")
    given = [name for name in used if getattr(reading, name) is not None]
    if given:
        listed = ", ".join(f"`{name}`" for name in given)
        raise ParameterError(
            f"expected a `source` to read with {listed}, got none",
            hint=f"pass a `source` too, or leave {'it' if len(given) == 1 else 'them'} out",
        )
    return law_evidence(length, reading.width, mask)


def _usual_mask(model: ModelConfig | None, task: Task | None) -> MaskName:
    if model is not None:
        return model.mask
    return "causal" if task == "next-token" else "none"


def _task(
    given: Task | None, need: Need, model: ModelConfig | None, evidence: Evidence
) -> tuple[Task, TaskFrom]:
    """The task as given, or inferred from the need, the config or the data."""
    if given is not None:
        return given, "given"
    if need == "retrieval":
        return "retrieve", "need"
    if model is not None and model.task is not None:
        return model.task, "config"  # type: ignore[return-value]
    ids = evidence.statistics is not None and evidence.learned
    if ids and evidence.mask == "causal":
        return "next-token", "data"
    if evidence.source == "digits":
        return "classify", "data"
    return "unknown", "assumed"
