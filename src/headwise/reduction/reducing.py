"""Reduce a Hugging Face model: calibrate, plan, cut, judge, heal, save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from headwise.errors import BadInputError, ParameterError
from headwise.hugging_face.loading import find_source, load_tokenizer, transformers
from headwise.progress import SILENT, Progress
from headwise.reduction.calibration import calibrate
from headwise.reduction.cutting import cut_model
from headwise.reduction.evaluation import (
    Score,
    Speed,
    embeddings,
    measure_speed,
    perplexity,
    similarity_agreement,
    token_losses,
)
from headwise.reduction.families import (
    FAMILIES,
    Keys,
    attention_parts,
    is_encoder,
    refuse_unsupported,
)
from headwise.reduction.healing import heal_model
from headwise.reduction.planning import Budget, Cut, LayerCurves, plan, predicted_loss
from headwise.reduction.resuming import forget_moments, remembered_moments
from headwise.reduction.saving import forget_quantisation, refuse_existing, save_model
from headwise.reduction.texts import Sample, sample_text

#: Shares of the KV cache that ``curve`` tries.
CURVE = (0.9, 0.75, 0.6, 0.5, 0.4, 0.3)


@dataclass(frozen=True)
class CurvePoint:
    """One budget of the curve.

    Attributes:
        share: The share of the original's KV bytes.
        kv_bytes: Bytes of KV cache for each token.
        predicted: The predicted loss.
        score: The score on held-out text.
    """

    share: float
    kv_bytes: int
    predicted: float
    score: Score


@dataclass(frozen=True, eq=False)
class Reduction:
    """A cut model, and what the cut costs and saves.

    Attributes:
        model: The cut model.
        cuts: The ranks of every layer.
        predicted: Predicted loss: nats for each token (language models) or squared change of the
            normalised output (encoders).
        before: Score of the original on held-out text.
        after: Score of the cut model on the same text.
        kv_bytes: Bytes of KV cache for each token, before and after.
        parameters: Parameters of the whole model, before and after.
        speed: Times before and after; None for encoders.
        curve: Scores at other budgets, if asked for.
        healed: Steps of healing.
        folder: Where the model was saved, if anywhere.

    Example:
        >>> score = Score("perplexity", 20.0, 0.5)
        >>> cut = Cut("latent", rank=8, value_rank=8)
        >>> found = Reduction(None, (cut,), 0.1, score, score, (256, 128), (900, 700))
        >>> found.as_dict()["kv_bytes"]
        (256, 128)
    """

    model: Any
    cuts: tuple[Cut, ...]
    predicted: float
    before: Score
    after: Score
    kv_bytes: tuple[int, int]
    parameters: tuple[int, int]
    speed: tuple[Speed, Speed] | None = None
    curve: tuple[CurvePoint, ...] = ()
    healed: int = 0
    folder: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the model, for JSON."""
        fields = {name: value for name, value in vars(self).items() if name != "model"}
        return fields | {
            "cuts": [asdict(cut) for cut in self.cuts],
            "before": asdict(self.before),
            "after": asdict(self.after),
            "speed": None if self.speed is None else [asdict(each) for each in self.speed],
            "curve": [asdict(point) for point in self.curve],
        }


def reduce_model(
    model: str | Path | torch.nn.Module,
    text: str,
    *,
    tokenizer: Any = None,
    out: str | Path | None = None,
    kv_bytes: int | str | None = None,
    params: int | str | None = None,
    keep: float | None = None,
    rank: int | None = None,
    keys: Keys | None = None,
    step: int = 8,
    tokens: int = 8192,
    held_out: int = 4096,
    length: int | None = None,
    heal: int = 0,
    curve: Sequence[float] = (),
    context: int = 2048,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Reduction:
    """Cut the attention of a trained model to the rank that it uses on a text.

    Keys and values are cut where that changes the predictions least: the loss of every rank is
    predicted from second moments of keys, values and gradients on the text, and the budget is
    divided over all layers exactly. The end of the text is kept apart to judge the result.

    Args:
        model: A folder, a GGUF file, a hub id, or a model.
        text: The text.
        tokenizer: Needed if ``model`` is a model.
        out: Folder to write; must not exist.
        kv_bytes: Budget: bytes of KV cache for each token, or a share such as "50%".
        params: Budget: parameters of the attention layers, or a share such as "50%".
        keep: Budget: the share of weighted energy that every part keeps, such as 0.99.
        rank: Budget: one rank for all heads.
        keys: How a decoder's keys are cut: "latent" (default) caches a vector of a lower rank and
            restores the keys from it; "pairs" drops rotation pairs, which loses more and decodes
            faster.
        step: Ranks are multiples of it.
        tokens: Tokens to calibrate on, at most.
        held_out: Tokens to judge on, at most.
        length: Tokens of a sequence; 512 for decoders and 64 for encoders by default.
        heal: Steps of training of the cut layers against the original's outputs.
        curve: Shares of KV bytes at which to score the model too.
        context: Tokens in the cache when speed is measured; 0 measures none.
        seed: Of everything that is drawn.
        progress: Where to report.

    Returns:
        The cut model with its scores, sizes and times.

    Raises:
        ParameterError: The budget is missing or given twice, or ``keys`` does not fit the model.

    Example:
        >>> found = reduce_model("models/smollm2", text, kv_bytes="50%")  # doctest: +SKIP
        >>> found.after.value / found.before.value  # doctest: +SKIP
        1.16
    """
    budget = Budget(kv_bytes, params, keep, rank)
    folder = None if out is None else refuse_existing(out)
    original, tokenizer = _loaded(model, tokenizer)
    kind = _kind(original.config, keys)
    encoder = is_encoder(original.config)
    sample = sample_text(
        tokenizer,
        text,
        tokens=tokens,
        held_out=held_out,
        length=length or (64 if encoder else 512),
        needed=4 * attention_parts(original)[0].key.out_features,
        wrap=encoder,
    )
    curves = _curves(original, sample, kind, seed=seed, memory=folder, progress=progress)
    itemsize = next(original.parameters()).element_size()
    cuts = plan(curves, budget, itemsize=itemsize, step=step)
    judge = _Judge(original, sample)
    made = cut_model(original, curves, cuts)
    if heal:
        heal_model(original, made, sample.calibration, steps=heal, seed=seed, progress=progress)
    points = [judge.point(share, curves, itemsize=itemsize, step=step) for share in curve]
    found = Reduction(
        model=made,
        cuts=tuple(cuts),
        predicted=predicted_loss(curves, cuts),
        before=judge.before,
        after=judge.score(made),
        kv_bytes=(_bytes(curves, None, itemsize), _bytes(curves, cuts, itemsize)),
        parameters=(_count(original), _count(made)),
        speed=None
        if encoder or not context
        else (measure_speed(original, context), measure_speed(made, context)),
        curve=tuple(points),
        healed=heal,
        folder=None if folder is None else str(folder),
    )
    if folder is not None:
        save_model(made, folder, tokenizer)
        forget_moments(folder)
    return found


def _loaded(model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """Return the model in float32 and evaluation mode, and its tokenizer."""
    if isinstance(model, torch.nn.Module):
        if tokenizer is None:
            raise ParameterError("expected a tokenizer for a model, got none", hint="pass one")
        refuse_unsupported(model.config)
        return model.eval(), tokenizer
    source, library = find_source(model), transformers()
    config = library.AutoConfig.from_pretrained(source.place, **source.arguments())
    refuse_unsupported(config)
    kind = getattr(library, FAMILIES[config.model_type])
    try:
        found = kind.from_pretrained(source.place, **source.arguments(), dtype=torch.float32)
    except (OSError, ValueError, KeyError) as error:
        reason = next((line for line in str(error).splitlines() if line), type(error).__name__)
        raise BadInputError(
            f"expected a checkpoint in {source.place!r}: {reason}", hint="check the files"
        ) from None
    if getattr(found.config, "quantization_config", None) is not None:
        forget_quantisation(found)
    return found.eval(), tokenizer or load_tokenizer(source)


def _kind(config: Any, keys: Keys | None) -> Keys:
    allowed: tuple[Keys, ...] = ("factors",) if is_encoder(config) else ("latent", "pairs")
    if keys is None:
        return allowed[0]
    if keys not in allowed:
        raise ParameterError(
            f"expected keys={' or '.join(allowed)} for {config.model_type}, got {keys}",
            hint="leave keys out for the best choice",
        )
    return keys


def _curves(
    model: Any, sample: Sample, kind: Keys, *, seed: int, memory: Path | None, progress: Progress
) -> list[LayerCurves]:
    def measured() -> Any:
        return calibrate(model, sample.calibration, seed=seed, progress=progress)

    found = remembered_moments(memory, model, sample.calibration, seed, measured)
    return [
        LayerCurves(parts, moments, kind)
        for parts, moments in zip(attention_parts(model), found, strict=True)
    ]


class _Judge:
    """Scores models on the held-out text; the original is scored once."""

    def __init__(self, original: Any, sample: Sample) -> None:
        self.original, self.sample = original, sample
        self.encoder = is_encoder(original.config)
        if self.encoder:
            self.reference = embeddings(original, sample.held_out)
            self.before = Score("similarity", 1.0, 0.0)
        else:
            self.before = perplexity(token_losses(original, sample.held_out))

    def score(self, made: Any) -> Score:
        if self.encoder:
            return similarity_agreement(self.reference, embeddings(made, self.sample.held_out))
        return perplexity(token_losses(made, self.sample.held_out))

    def point(
        self,
        share: float,
        curves: list[LayerCurves],
        *,
        itemsize: int,
        step: int,
    ) -> CurvePoint:
        cuts = plan(curves, Budget(kv_bytes=f"{100 * share}%"), itemsize=itemsize, step=step)
        made = cut_model(self.original, curves, cuts)
        held = _bytes(curves, cuts, itemsize)
        return CurvePoint(share, held, predicted_loss(curves, cuts), self.score(made))


def _bytes(curves: list[LayerCurves], cuts: Sequence[Cut] | None, itemsize: int) -> int:
    """Return the bytes of KV cache for each token."""
    total = 0
    for index, each in enumerate(curves):
        rank = max(each.key_losses()) if cuts is None else cuts[index].rank
        value_rank = each.parts.head_dim if cuts is None else cuts[index].value_rank
        total += rank * each.unit("keys", "kv_bytes", itemsize)
        total += value_rank * each.unit("values", "kv_bytes", itemsize)
    return total


def _count(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
