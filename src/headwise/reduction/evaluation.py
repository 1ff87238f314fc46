"""Judge a model before and after a cut: perplexity or similarities, bytes and seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headwise.errors import BadInputError
from headwise.reduction.calibration import mean_pooled
from headwise.reduction.families import embedded, is_encoder
from headwise.reduction.texts import Sample

Batches = Sequence[dict[str, Tensor]]

#: Similarities that differ by less are equal up to the rounding of float32.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Score:
    """A mean over sequences with its standard error.

    Attributes:
        name: "perplexity" (lower is better) or "similarity" (Spearman, higher is better).
        value: The value.
        error: Standard error over sequences; for perplexity of its logarithm times the value.
    """

    name: str
    value: float
    error: float


@torch.no_grad()
def token_losses(model: Any, batches: Batches) -> Tensor:
    """Return the mean loss of each sequence in nats for each predicted token."""
    device = next(model.parameters()).device
    found = []
    for batch in batches:
        ids = batch["input_ids"].to(device)
        logits = model(input_ids=ids).logits[:, :-1].float()
        each = nn.functional.cross_entropy(logits.mT, ids[:, 1:], reduction="none")
        found.append(each.mean(1).double().cpu())
    return torch.cat(found)


def perplexity(losses: Tensor) -> Score:
    """Return exp of the mean loss, with its standard error."""
    value = float(losses.mean().exp())
    error = float(losses.std() / len(losses) ** 0.5) if len(losses) > 1 else float("nan")
    return Score("perplexity", value, value * error)


@torch.no_grad()
def embeddings(model: Any, batches: Batches) -> Tensor:
    """Return the mean-pooled, normalised output of every sequence."""
    device = next(model.parameters()).device
    found = []
    for batch in batches:
        batch = {name: each.to(device) for name, each in batch.items()}
        mask = batch.get("attention_mask")
        real = torch.ones_like(batch["input_ids"]).bool() if mask is None else mask.bool()
        found.append(mean_pooled(embedded(model, batch), real).double().cpu())
    return torch.cat(found)


def similarity_agreement(before: Tensor, after: Tensor) -> Score:
    """Return the Spearman correlation of all cosine similarities between sequences.

    The error is a jackknife over ten groups of sequences.

    Raises:
        BadInputError: There are fewer than six sequences, or all similarities are equal.
    """
    groups = min(10, len(before) // 3)
    if groups < 2:
        raise BadInputError(
            f"expected at least 6 sequences to compare, got {len(before)}", hint="pass more text"
        )
    place = torch.arange(len(before)) % groups
    left_out = torch.tensor(
        [_spearman(before[place != group], after[place != group]) for group in range(groups)]
    )
    error = float(((groups - 1) / groups * (left_out - left_out.mean()).square().sum()).sqrt())
    return Score("similarity", _spearman(before, after), error)


def _spearman(before: Tensor, after: Tensor) -> float:
    from scipy.stats import spearmanr

    rows, columns = torch.triu_indices(len(before), len(before), offset=1)
    first, second = ((each @ each.T)[rows, columns].numpy() for each in (before, after))
    if min(np.ptp(first), np.ptp(second)) < ROUNDING:
        raise BadInputError(
            "the model gives the same embedding for every held-out sequence, so agreement is "
            "undefined",
            hint="pass more varied text",
        )
    return float(spearmanr(first, second).statistic)  # pyright: ignore[reportAttributeAccessIssue]


class Judge:
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
        """Return the score of a cut model."""
        if self.encoder:
            return similarity_agreement(self.reference, embeddings(made, self.sample.held_out))
        return perplexity(token_losses(made, self.sample.held_out))


@dataclass(frozen=True)
class Speed:
    """How fast a decoder runs, and what its cache holds.

    Attributes:
        context: Tokens in the cache.
        prefill: Seconds to read the context.
        decode: Seconds for one more token, the median of several.
        cache_bytes: Bytes of the cache for each token, measured.
    """

    context: int
    prefill: float
    decode: float
    cache_bytes: float


@torch.no_grad()
def measure_speed(
    model: Any,
    context: int = 2048,
    steps: int = 8,
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Time a decoder on random tokens.

    Args:
        model: A causal language model.
        context: Tokens to read first.
        steps: Tokens to decode.
        clock: Returns seconds; ``time.process_time`` suits a CPU that others use too.

    Returns:
        Times and the measured size of the cache.
    """
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(0)
    size = (1, context)
    ids = torch.randint(0, model.config.vocab_size, size, generator=generator).to(device)
    _synchronised(device)
    start = clock()
    output = model(input_ids=ids, use_cache=True, logits_to_keep=1)
    _synchronised(device)
    prefill, cache = clock() - start, output.past_key_values
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    times = []
    for _ in range(steps + 1):
        start = clock()
        model(input_ids=ids[:, :1], past_key_values=cache, use_cache=True)
        _synchronised(device)
        times.append(clock() - start)
    decode = float(torch.tensor(times[1:], dtype=torch.float64).median())
    return Speed(context, prefill, decode, held / context)


def _synchronised(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
