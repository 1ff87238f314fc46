"""What keys and values do in a model: second moments of them and of the loss's gradients.

A change δ of a key (or value) changes the predictions. To second order the mean divergence from
the original predictions is ½ E (γᵀδ)², where γ is the gradient of −log p(y) and y is drawn from the
original predictions (the Fisher information). So the moments of keys and of their gradients are all
that ``best_factors`` needs, and its losses are nats per token, comparable across layers. Terms
between different tokens and layers are left out. A model without predictions, such as an encoder,
is judged by the squared change of its mean-pooled, normalised output instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from headwise.progress import SILENT, Progress, tracked
from headwise.reduction.families import AttentionParts, attention_parts


@dataclass
class Moments:
    """Sums over real tokens of one layer's keys or values, and of the gradients at them."""

    states: Tensor
    gradients: Tensor
    total: Tensor
    tokens: int = 0

    @classmethod
    def of_size(cls, size: int, device: torch.device) -> Moments:
        """Return empty sums for vectors of this size."""
        wide = {"dtype": torch.float64, "device": device}
        square = torch.zeros(size, size, **wide)
        return cls(square, square.clone(), torch.zeros(size, **wide))

    def add(self, states: Tensor, real: Tensor) -> None:
        """Add the states of real tokens."""
        rows = states.detach()[real]
        self.states += (rows.mT @ rows).double()
        self.total += rows.sum(0, dtype=torch.float64)
        self.tokens += len(rows)

    def add_gradient(self, gradient: Tensor, real: Tensor) -> None:
        """Add the gradients at real tokens."""
        rows = gradient.detach()[real]
        self.gradients += (rows.mT @ rows).double()

    @property
    def mean(self) -> Tensor:
        """The mean vector."""
        return self.total / self.tokens

    def moment(self, centred: bool) -> Tensor:
        """Return E x xᵀ, or the covariance."""
        found = self.states / self.tokens
        return found - torch.outer(self.mean, self.mean) if centred else found

    def metric(self) -> Tensor:
        """Return ½ E γγᵀ."""
        return self.gradients / (2 * self.tokens)


@dataclass
class LayerMoments:
    """The moments of the keys and the values of one layer."""

    keys: Moments
    values: Moments


@dataclass
class _Watch:
    """The layers that report, and which tokens of the current batch are real."""

    layers: list[LayerMoments]
    real: Tensor = field(default_factory=lambda: torch.ones(0, dtype=torch.bool))


def calibrate(
    model: Any,
    batches: Sequence[dict[str, Tensor]],
    *,
    seed: int = 0,
    progress: Progress = SILENT,
) -> list[LayerMoments]:
    """Return the moments of every layer over batches of tokens.

    Args:
        model: A supported model in evaluation mode; its parameters are left as they were.
        batches: Inputs of the model, each with ``input_ids`` and perhaps ``attention_mask``.
        seed: Of the drawn predictions.
        progress: Where to report.

    Returns:
        One entry for each layer.
    """
    parts = attention_parts(model)
    device = next(model.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    watch = _Watch([_empty(each, device) for each in parts])
    with (
        _frozen(model),
        _watched(parts, watch),
        tracked(progress, "calibrating", len(batches)) as bar,
    ):
        for batch in batches:
            batch = {name: each.to(device) for name, each in batch.items()}
            mask = batch.get("attention_mask")
            watch.real = torch.ones_like(batch["input_ids"]).bool() if mask is None else mask.bool()
            _probe(model, batch, watch.real, generator).backward()
            bar.advance()
    return watch.layers


def _empty(part: AttentionParts, device: torch.device) -> LayerMoments:
    return LayerMoments(
        Moments.of_size(part.key.out_features, device),
        Moments.of_size(part.value.out_features, device),
    )


def _probe(model: Any, batch: dict[str, Tensor], real: Tensor, generator: Any) -> Tensor:
    """Return a scalar whose gradients make the metric; see the head of this file."""
    ids = batch["input_ids"]
    embedded = model.get_input_embeddings()(ids).requires_grad_()
    named = {name: each for name, each in batch.items() if name != "input_ids"}
    output = model(inputs_embeds=embedded, **named)
    if hasattr(output, "logits"):
        logits = output.logits[real].float()
        with torch.no_grad():
            drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)
        return nn.functional.cross_entropy(logits, drawn, reduction="sum")
    pooled = mean_pooled(output.last_hidden_state, real)
    # √2 undoes the ½ of the metric: the loss is then the squared change itself.
    direction = torch.randn(pooled.shape, generator=generator, device=pooled.device)
    return 2**0.5 * (pooled * direction).sum()


def mean_pooled(states: Tensor, real: Tensor) -> Tensor:
    """Return the normalised mean of the real tokens of each sequence."""
    weights = real.unsqueeze(-1).to(states.dtype)
    mean = (states * weights).sum(1) / weights.sum(1).clamp_min(1)
    return nn.functional.normalize(mean, dim=-1)


@contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """Keep parameters free of gradients while the block runs."""
    before = [(each, each.requires_grad) for each in model.parameters()]
    model.requires_grad_(False)
    try:
        yield
    finally:
        for each, wanted in before:
            each.requires_grad_(wanted)


@contextmanager
def _watched(parts: Sequence[AttentionParts], watch: _Watch) -> Iterator[None]:
    """Add what the key and value maps return, and the gradients there, to the moments."""

    def hook(moments: Moments) -> Any:
        def seen(module: nn.Module, given: Any, output: Tensor) -> None:
            real = watch.real
            moments.add(output, real)
            output.register_hook(lambda gradient: moments.add_gradient(gradient, real))

        return seen

    hooks = []
    for part, found in zip(parts, watch.layers, strict=True):
        hooks.append(part.key.register_forward_hook(hook(found.keys)))
        hooks.append(part.value.register_forward_hook(hook(found.values)))
    try:
        yield
    finally:
        for each in hooks:
            each.remove()
