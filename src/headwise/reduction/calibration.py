"""What keys and values do in a model: second moments of them and of the loss's gradients.

A change δ of a key (or value) changes the predictions. To second order the mean divergence from
the original predictions is ½ E (γᵀδ)², where γ is the gradient of −log p(y) and y is drawn from the
original predictions (the Fisher information). So the moments of keys and of their gradients are all
that ``best_factors`` needs, and its losses are nats per token, comparable across layers. Terms
between different tokens and layers are left out. A model without predictions, such as an encoder,
is judged by the squared change of its mean-pooled, normalised output instead.

Keys that many tokens attend to have large gradients. ``moment(weighted=True)`` counts each key with
‖γ‖², so that E γγᵀ ⊗ kkᵀ is replaced by a product of two moments with the same trace. For the terms
between tokens ``by_sequence`` keeps Σ γ xᵀ of single sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from headwise.progress import SILENT, Progress, tracked
from headwise.reduction.families import AttentionParts, attention_parts, embedded, is_encoder

#: Sequences that are kept one by one: at most this many, and this many numbers for a layer.
SLOTS = 1024
SLOT_NUMBERS = 2**23


@dataclass
class Moments:
    """Sums over real tokens of one layer's keys or values x, and of the gradients γ at them.

    Attributes:
        states: Σ x xᵀ.
        weighted: The same with each head's part of x times ‖γ‖ of that head.
        gradients: Σ γ γᵀ.
        total: Σ x.
        total_weighted: Σ ‖γ‖² x, head by head.
        weights: Σ ‖γ‖² of each head.
        by_sequence: (slots, heads, d, d) Σ γ xᵀ of each head over the tokens of one sequence. If
            there are more sequences than slots, they share slots: their signs are random.
        slopes: (slots, heads, d) Σ γ, the same way.
        tokens: The number of tokens.
        sequences: The number of sequences in the slots.
    """

    states: Tensor
    weighted: Tensor
    gradients: Tensor
    total: Tensor
    total_weighted: Tensor
    weights: Tensor
    by_sequence: Tensor
    slopes: Tensor
    tokens: int = 0
    sequences: int = 0

    @classmethod
    def of_size(cls, size: int, heads: int, slots: int = 0) -> Moments:
        """Return empty sums for vectors of this size, on the CPU."""
        square = torch.zeros(size, size, dtype=torch.float64)
        line, weights = square[0].clone(), torch.zeros(heads, dtype=torch.float64)
        d = size // heads
        slopes = torch.zeros(slots, heads, d)
        by_sequence = torch.zeros(slots, heads, d, d)
        lines = (line, line.clone(), weights, by_sequence, slopes)
        return cls(square, square.clone(), square.clone(), *lines)

    def add(self, states: Tensor, gradient: Tensor, real: Tensor) -> None:
        """Add real tokens: their states and the gradients there."""
        rows, slopes = states.detach()[real], gradient.detach()[real]
        size = slopes.unflatten(-1, (len(self.weights), -1)).norm(dim=-1)
        by_dimension = size.repeat_interleave(rows.shape[-1] // size.shape[-1], dim=-1)
        scaled = rows * by_dimension
        self.states += (rows.mT @ rows).double()
        self.weighted += (scaled.mT @ scaled).double()
        self.gradients += (slopes.mT @ slopes).double()
        self.total += rows.sum(0, dtype=torch.float64)
        self.total_weighted += (scaled * by_dimension).sum(0, dtype=torch.float64)
        self.weights += size.square().sum(0, dtype=torch.float64)
        self.tokens += len(rows)
        if len(self.by_sequence):
            self._add_sequences(states.detach(), gradient.detach(), real)

    def _add_sequences(self, states: Tensor, gradient: Tensor, real: Tensor) -> None:
        """Add Σ γ xᵀ of every sequence to the next slots."""
        slots, heads = self.slopes.shape[:2]
        slopes = (gradient * real.unsqueeze(-1)).unflatten(-1, (heads, -1))
        found = torch.einsum("bnhd,bnhe->bhde", slopes, states.unflatten(-1, (heads, -1)))
        place = (self.sequences + torch.arange(len(states), device=states.device)) % slots
        self.by_sequence.index_add_(0, place, found.float())
        self.slopes.index_add_(0, place, slopes.sum(1).float())
        self.sequences += len(states)

    def to(self, device: torch.device | str) -> Moments:
        """Return the same sums on a device."""
        moved = {n: each.to(device) for n, each in vars(self).items() if isinstance(each, Tensor)}
        return Moments(**moved, tokens=self.tokens, sequences=self.sequences)

    def samples(self, *, centred: bool = False, weighted: bool = False) -> Tensor | None:
        """Return Σ γ xᵀ of each filled slot, (slots, heads, d, d), or None without slots.

        Args:
            centred: Take off the mean of x.
            weighted: Tokens count with ‖γ‖² in that mean.
        """
        filled = min(self.sequences, len(self.slopes))
        if not filled:
            return None
        found, slopes = self.by_sequence[:filled], self.slopes[:filled]
        if not centred:
            return found
        mean = self.mean(weighted).float().unflatten(0, (slopes.shape[1], -1))
        return found - slopes.unsqueeze(-1) * mean.unsqueeze(-2)

    @property
    def _shares(self) -> Tensor:
        """Σ ‖γ‖² of the head of each dimension."""
        each = self.weights.clamp_min(torch.finfo(torch.float64).tiny)
        return each.repeat_interleave(len(self.total) // len(each))

    def mean(self, weighted: bool = False) -> Tensor:
        """Return the mean vector; tokens count with ‖γ‖² if ``weighted``."""
        return self.total_weighted / self._shares if weighted else self.total / self.tokens

    def moment(self, *, centred: bool = False, weighted: bool = False) -> Tensor:
        """Return E x xᵀ, or the covariance; tokens count with ‖γ‖² if ``weighted``."""
        size = self._shares.sqrt()
        by_gradient = self.weighted / torch.outer(size, size)
        found = by_gradient if weighted else self.states / self.tokens
        mean = self.mean(weighted)
        return found - torch.outer(mean, mean) if centred else found

    def metric(self) -> Tensor:
        """Return ½ E γγᵀ."""
        return self.gradients / (2 * self.tokens)


@dataclass
class LayerMoments:
    """The moments of the keys and the values of one layer."""

    keys: Moments
    values: Moments

    def to(self, device: torch.device | str) -> LayerMoments:
        """Return the same moments on a device."""
        return LayerMoments(self.keys.to(device), self.values.to(device))


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
    between_tokens: bool = False,
    memory: Memory | None = None,
    progress: Progress = SILENT,
) -> list[LayerMoments]:
    """Return the moments of every layer over batches of tokens.

    Args:
        model: A supported model in evaluation mode; its parameters are left as they were.
        batches: Inputs of the model, each with ``input_ids`` and perhaps ``attention_mask``.
        seed: Of the drawn predictions.
        between_tokens: Keep sums of single sequences too, with two passes over each batch.
        memory: Where to keep what is done, so that a stopped run goes on.
        progress: Where to report.

    Returns:
        One entry for each layer, on the CPU.
    """
    device = next(model.parameters()).device
    repeats = 2 if between_tokens else 1

    def probe(index: int) -> Probe:
        batch = {name: each.to(device) for name, each in batches[index // repeats].items()}
        mask = batch.get("attention_mask")
        real = torch.ones_like(batch["input_ids"]).bool() if mask is None else mask.bool()
        # Its own seed: a run that goes on draws what it would have drawn.
        generator = torch.Generator(device).manual_seed(1_000_003 * seed + index)
        return Probe(real, lambda: _of_hugging_face(model, batch, real, generator))

    parts, passes = attention_parts(model), repeats * len(batches)
    empty = [empty_moments(each, between_tokens) for each in parts]
    return gather(model, parts, passes, probe, empty=empty, memory=memory, progress=progress)


@runtime_checkable
class Memory(Protocol):
    """Keeps the moments of the batches that are done."""

    def read(self) -> tuple[list[LayerMoments], int] | None:
        """Return what was kept and the number of batches in it."""

    def write(self, layers: list[LayerMoments], done: int) -> None:
        """Keep the moments of the first ``done`` batches."""


@dataclass(frozen=True)
class Probe:
    """One pass: which tokens are real, and the scalar whose gradients make the metric."""

    real: Tensor
    scalar: Callable[[], Tensor]


def gather(
    model: nn.Module,
    parts: Sequence[AttentionParts],
    passes: int,
    probe: Callable[[int], Probe],
    *,
    empty: list[LayerMoments] | None = None,
    memory: Memory | None = None,
    progress: Progress = SILENT,
) -> list[LayerMoments]:
    """Return the moments of the keys and values of some layers.

    Args:
        model: The model; its parameters are left as they were.
        parts: Its attention layers.
        passes: The number of passes.
        probe: Prepares a pass by its number; ``drawn_loss`` makes the scalar of a model that
            predicts.
        empty: What to add to; moments without slots by default.
        memory: Where to keep what is done after each tenth of the passes.
        progress: Where to report.

    Returns:
        One entry for each layer, on the CPU.
    """
    device = next(model.parameters()).device
    kept = None if memory is None else memory.read()
    layers, done = kept or (empty or [empty_moments(each) for each in parts], 0)
    watch = _Watch([each.to(device) for each in layers])
    with (
        _frozen(model),
        _watched(parts, watch),
        tracked(progress, "calibrating", passes - done) as bar,
    ):
        for index in range(done, passes):
            asked = probe(index)
            watch.real = asked.real
            asked.scalar().backward()
            bar.advance()
            if memory is not None and ((index + 1) % -(-passes // 10) == 0 or index + 1 == passes):
                memory.write([each.to("cpu") for each in watch.layers], index + 1)
    return [each.to("cpu") for each in watch.layers]


def empty_moments(part: AttentionParts, between_tokens: bool = False) -> LayerMoments:
    """Return the moments of no tokens, on the CPU."""

    def empty(size: int) -> Moments:
        slots = min(SLOTS, SLOT_NUMBERS // (size * part.head_dim)) if between_tokens else 0
        return Moments.of_size(size, part.kv_heads, slots)

    return LayerMoments(empty(part.key.out_features), empty(part.value.out_features))


def drawn_loss(logits: Tensor, generator: torch.Generator) -> Tensor:
    """Return the summed loss of answers that are drawn from these predictions (rows)."""
    logits = logits.float()
    with torch.no_grad():
        drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)
    return nn.functional.cross_entropy(logits, drawn, reduction="sum")


def _of_hugging_face(model: Any, batch: dict[str, Tensor], real: Tensor, generator: Any) -> Tensor:
    """Return a scalar whose gradients make the metric; see the head of this file."""
    if not is_encoder(model.config):
        return drawn_loss(model(**batch).logits[real], generator)
    pooled = mean_pooled(embedded(model, batch), real)
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
            real, states = watch.real, output.detach()
            if not output.requires_grad:  # in the first layer: no parameter has a gradient
                output.requires_grad_()
            output.register_hook(lambda gradient: moments.add(states, gradient, real))

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
