"""reduce: calibrate, plan, cut, judge, heal and save a Hugging Face model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from headwise.devices import refuse_absent
from headwise.errors import ParameterError
from headwise.hugging_face.loading import (
    from_pretrained,
    load_tokenizer,
    transformers,
)
from headwise.hugging_face.places import find_source
from headwise.hugging_face.reducible import class_named
from headwise.progress import SILENT, Progress
from headwise.reduction.budgets import (
    Budget,
)
from headwise.reduction.calibration import LayerMoments, calibrate
from headwise.reduction.evaluation import (
    Judge,
    measure_speed,
)
from headwise.reduction.families import (
    Keys,
    attention_parts,
    class_of,
    count_of_attention,
    is_encoder,
)
from headwise.reduction.healing import heal_model
from headwise.reduction.planning import Cut, LayerCurves, plan, predicted_loss
from headwise.reduction.refusals import kind_of_keys, refuse_other_types, settled
from headwise.reduction.result import CurvePoint, Reduction
from headwise.reduction.resuming import MomentsFile
from headwise.reduction.saving import save_model
from headwise.reduction.settings import Settings, shares_of_curve
from headwise.reduction.sizes import Kind
from headwise.reduction.smaller_model import cut_model
from headwise.reduction.texts import Sample, sample_text
from headwise.whole_files import new_folder


def reduce(
    model: str | Path | torch.nn.Module,
    text: str,
    *,
    kv_bytes: int | str | None = None,
    params: int | str | None = None,
    keep: float | int | None = None,
    rank: int | None = None,
    keys: Keys | None = None,
    only: Kind | None = None,
    step: int = 8,
    tokens: int | None = None,
    held_out: int = 4096,
    length: int | None = None,
    heal: int = 0,
    curve: bool | Sequence[float | int] = False,
    context: int = 2048,
    device: str = "cpu",
    seed: int = 0,
    tokenizer: Any = None,
    out: str | Path | None = None,
    store: str | Path | None = None,
    progress: Progress = SILENT,
) -> Reduction:
    """Cut the attention of a trained model to the rank that it uses on a text.

    Keys and values are cut where that changes the predictions least: the loss of every rank is
    predicted from second moments of keys, values and gradients on the text, and the budget is
    divided over all layers exactly. The end of the text is kept apart to judge the result: by
    perplexity, or for an encoder by embedding similarities. The task head of a BERT is kept. Pass
    one budget: ``kv_bytes``, ``params``, ``keep`` or ``rank``.

    Args:
        model: A folder, a GGUF file, a hub id, or a model: a Llama, Mistral, Qwen2 or BERT.
        text: The text to calibrate and to judge on.
        kv_bytes: Bytes of keys and values for each token in all layers, or a share as "50%".
        params: Parameters of the attention layers, or a share as "50%".
        keep: The share of its weighted squared singular values that every cut matrix keeps.
        rank: One rank for every head, and for a vector that holds the keys of all heads.
        keys: How a decoder's keys are cut: "latent" (default) caches a vector of a lower rank and
            restores the keys from it; "rotated" caches it after the rotation and restores
            nothing, which loses more and decodes faster; "pairs" drops rotation pairs.
        only: Cut "keys" and their queries, or "values", alone; the budget counts these alone.
        step: Ranks are multiples of it.
        tokens: Tokens to calibrate on, at most; 8,192 for decoders and 16,384 for encoders by
            default.
        held_out: Tokens to judge on, at most.
        length: Tokens of a sequence; 512 for decoders and 64 for encoders by default.
        heal: Steps of training of the cut layers against the original's outputs.
        curve: Score the model at up to six other shares of the KV bytes too, or at these shares.
        context: Tokens in the cache when speed is measured; 0 measures none.
        device: Where to compute, such as "cuda".
        seed: Seed of everything that is drawn.
        tokenizer: Needed if ``model`` is a model.
        out: Folder to write; must not exist. A run that was stopped goes on.
        store: Where the result is kept for the page: a path or a URL. Nowhere by default.
        progress: Where to report.

    Returns:
        The cut model with its scores, sizes and times.

    Raises:
        BadInputError: The device is not on this machine, or nothing meets the budget.
        ParameterError: Not exactly one budget is given, or a parameter is of the wrong type or does
            not fit the model.
        StoreError: The store cannot be used.

    Example:
        >>> reduce("models/mine", "a text", kv_bytes="50%", rank=8)
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected one of kv_bytes, params, keep, rank, got ...
    """
    budget = Budget(kv_bytes, params, keep, rank)
    shares = shares_of_curve(curve)
    asked = Settings(
        keys, only, step, tokens, held_out, length, heal, shares, context, device, seed
    )
    refuse_other_types(model, text, tokenizer=tokenizer, out=out, store=store, progress=progress)
    found = _reduced(model, text, budget, asked, tokenizer=tokenizer, out=out, progress=progress)
    if store is not None:
        from headwise.reduction.stored import keep_reduction

        named = str(model) if isinstance(model, str | Path) else found.name
        described = {**vars(budget), **asked.described()}
        keep_reduction(
            store,
            found,
            model=named,
            text=text,
            asked=described,
            seed=seed,
            command="headwise reduce",
        )
    return found


def _reduced(
    model: str | Path | torch.nn.Module,
    text: str,
    budget: Budget,
    asked: Settings,
    *,
    tokenizer: Any,
    out: str | Path | None,
    progress: Progress,
) -> Reduction:
    """Calibrate, plan, cut and save."""
    refuse_absent(asked.device)
    folder = None if out is None else new_folder(out)
    original, tokenizer = _loaded(model, tokenizer)
    original.to(asked.device)
    sample = _sample(original, tokenizer, text, asked)
    kind = kind_of_keys(original.config, asked.keys, budget)
    asked = settled(original, kind, budget, asked)
    memory = None
    if folder is not None:
        memory = MomentsFile(folder, original, sample.calibration, asked.seed)
    named = {"seed": asked.seed, "between_tokens": is_encoder(original.config)}
    found = calibrate(original, sample.calibration, **named, memory=memory, progress=progress)
    curves = _curves(original, kind, found)
    reduction = _Work(original, sample, curves, asked).done(budget, folder, progress)
    if folder is not None:
        save_model(reduction.model, folder, tokenizer)
    if memory is not None:
        memory.forget()
    return replace(reduction, name=_name(model))


def _name(model: str | Path | torch.nn.Module) -> str:
    """Return the class of a model, or the last part of a path: no report names folders."""
    if isinstance(model, torch.nn.Module):
        return type(model).__name__
    return Path(model).name if Path(model).exists() else str(model)


@dataclass
class _Work:
    """One model with its curves: cut it, heal it, judge it."""

    original: Any
    sample: Sample
    curves: list[LayerCurves]
    asked: Settings

    def done(self, budget: Budget, folder: Path | None, progress: Progress) -> Reduction:
        """Return the reduction for a budget."""
        original, asked, curves = self.original, self.asked, self.curves
        cuts = self.plan(budget)
        made = cut_model(original, curves, cuts)
        if asked.heal:
            text = self.sample.healing
            heal_model(original, made, text, steps=asked.heal, seed=asked.seed, progress=progress)
        judge = Judge(original, self.sample)
        timed = asked.context and not is_encoder(original.config)
        return Reduction(
            model=made,
            cuts=tuple(cuts),
            whole=self.whole,
            predicted=predicted_loss(curves, cuts),
            before=judge.before,
            after=judge.score(made),
            kv_bytes=(self.bytes([self.whole] * len(cuts)), self.bytes(cuts)),
            parameters=(_count(original), _count(made)),
            attention_parameters=(count_of_attention(original), count_of_attention(made)),
            speed=(measure_speed(original, asked.context), measure_speed(made, asked.context))
            if timed
            else None,
            curve=tuple(self.point(judge, share) for share in asked.curve),
            healed=asked.heal,
            folder=None if folder is None else str(folder),
            architecture=class_of(original),
        )

    @property
    def itemsize(self) -> int:
        """Bytes of one number in the cache."""
        return next(self.original.parameters()).element_size()

    def plan(self, budget: Budget) -> list[Cut]:
        """Return the ranks for a budget."""
        asked = self.asked
        return plan(self.curves, budget, itemsize=self.itemsize, step=asked.step, only=asked.only)

    def point(self, judge: Judge, share: float) -> CurvePoint:
        """Return the score at another budget, without healing."""
        cuts = self.plan(Budget(kv_bytes=f"{100 * share}%"))
        made = cut_model(self.original, self.curves, cuts)
        lost = predicted_loss(self.curves, cuts)
        return CurvePoint(share, self.bytes(cuts), lost, judge.score(made))

    @property
    def whole(self) -> Cut:
        """The ranks of a layer that is not cut."""
        first = self.curves[0].sizes
        return Cut(first.keys, first.whole("keys"), first.whole("values"))

    def bytes(self, cuts: Sequence[Cut]) -> int:
        """Return the bytes of KV cache for each token."""
        return sum(
            each.sizes.cost("keys", cut.rank, "kv_bytes", self.itemsize)
            + each.sizes.cost("values", cut.value_rank, "kv_bytes", self.itemsize)
            for each, cut in zip(self.curves, cuts, strict=True)
        )


def _curves(model: Any, kind: Keys, moments: list[LayerMoments]) -> list[LayerCurves]:
    # Weights lower the loss of encoders; decoders were not compared.
    weighted = is_encoder(model.config)
    return [
        LayerCurves(parts, own, kind, weighted)
        for parts, own in zip(attention_parts(model), moments, strict=True)
    ]


def _sample(original: Any, tokenizer: Any, text: str, asked: Settings) -> Sample:
    encoder = is_encoder(original.config)
    length = asked.length or (64 if encoder else 512)
    most = original.config.max_position_embeddings
    if encoder and length > most:
        raise ParameterError(
            f"expected a `length` of at most {most}, the positions of the model, got {length}",
            hint="pass a smaller one",
        )
    return sample_text(
        tokenizer,
        text,
        tokens=asked.tokens,
        usual=16384 if encoder else 8192,
        held_out=asked.held_out,
        length=length,
        needed=4 * attention_parts(original)[0].key.out_features,
        wrap=encoder,
    )


def _loaded(model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """Return the model in float32 and evaluation mode, and its tokenizer."""
    if isinstance(model, torch.nn.Module):
        if tokenizer is None:
            raise ParameterError(
                "expected a `tokenizer` for a model, got none", hint="pass the model's own"
            )
        class_of(model)
        return model.eval(), tokenizer
    source, library = find_source(model), transformers()
    config = from_pretrained(source, library.AutoConfig)
    kind = getattr(library, class_named(config.to_dict()))
    found = from_pretrained(source, kind, dtype=torch.float32)
    return found.eval(), tokenizer or load_tokenizer(source)


def _count(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
