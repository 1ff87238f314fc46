"""Encoder stacks, and models made of one, for all members at once, without vmap.

Tokens of all sequences are rows of one matrix per member, so every linear map is one batched
product with its bias: half the kernels of a vectorised call. Outputs and gradients are those of the
models themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu

from headwise.attention import (
    EVERYTHING,
    Attention,
    Causal,
    LearnedAdditive,
    LearnedConcatenated,
    Mask,
    NoPosition,
    Padding,
)
from headwise.attention.projections import GroupedProjection
from headwise.attention.weighting import Heads
from headwise.models import (
    Decoder,
    EncoderStack,
    InContextRegressor,
    NeighbourEncoder,
    TextClassifier,
    VectorClassifier,
    ViTClassifier,
)
from headwise.models.incontext import interleaved
from headwise.models.norms import UnitNorm
from headwise.models.transformer import Block
from headwise.training.linear_maps import Maps
from headwise.training.stacking import Parameters, Stacked, of_variants

#: First and one past the last member of each variant.
Groups = Sequence[tuple[int, int]]


def written_out(
    models: Sequence[nn.Module], groups: Groups, compiled: bool = False
) -> Stacked | None:
    """Return one call for all members, or None for models that have no such form.

    Variants may differ in the number of heads if heads times rank is the same. A compiled block is
    compiled once and used by every layer.
    """
    kinds = [models[first] for first, _ in groups]
    make = _KINDS.get(type(kinds[0]))
    stacks = [model if isinstance(model, EncoderStack) else _stack_of(model) for model in kinds]
    if make is None or not all(stack is not None and _serves(stack) for stack in stacks):
        return None
    known = [stack for stack in stacks if stack is not None]
    if len({type(model) for model in kinds}) > 1 or len({_frame(stack) for stack in known}) > 1:
        return None
    return make(kinds[0], StackedStack(known, groups, compiled))


def _stack_of(model: nn.Module) -> EncoderStack | None:
    stack = getattr(model, "stack", None)
    return stack if isinstance(stack, EncoderStack) else None


def _frame(stack: EncoderStack) -> tuple[object, ...]:
    """Return what variants must share besides the shapes of their parameters."""
    first = _blocks(stack)[0]
    parts = (first.mlp.activation, first.mlp_norm, first.attention.weighting, stack.position)
    return (first.placement, len(stack.blocks), first.attention.factor, *map(type, parts))


def _serves(stack: EncoderStack) -> bool:
    """Whether the model has only the parts that this module implements."""
    return isinstance(stack.position, NoPosition | LearnedAdditive | LearnedConcatenated) and all(
        _plain(block.attention)
        and block.mlp.expand.bias is not None
        and isinstance(block.mlp_norm, nn.LayerNorm | UnitNorm)
        for block in _blocks(stack)
    )


def _blocks(stack: EncoderStack) -> list[Block]:
    return [block for block in stack.blocks if isinstance(block, Block)]


def _plain(attention: Attention) -> bool:
    projection, geometry = attention.projection, attention.geometry
    return (
        isinstance(projection, GroupedProjection)
        and projection.biases == "all"
        and geometry.kv_heads == geometry.heads
        and isinstance(attention.position, NoPosition)
        and not list(attention.weighting.parameters())
        and not attention.dropout
    )


#: Sequences, length and mask.
_Grid = tuple[torch.Size, Mask]


class _Variant(NamedTuple):
    """Members that have the same heads."""

    first: int
    end: int
    heads: int
    temperature: float


class StackedStack:
    """An ``EncoderStack``: rows (M, b·n, d) in and out."""

    def __init__(
        self, stacks: Sequence[EncoderStack], groups: Groups, compiled: bool = False
    ) -> None:
        first = _blocks(stacks[0])[0]
        self.run_block = torch.compile(self._block, dynamic=False) if compiled else self._block
        self.depth, self.pre = len(stacks[0].blocks), first.placement == "pre"
        self.weighting, self.factor = first.attention.weighting, first.attention.factor
        self.activation = gelu if isinstance(first.mlp.activation, nn.GELU) else torch.relu
        self.position = type(stacks[0].position)
        self.variants = [
            _Variant(*group, stack.geometry.heads, _blocks(stack)[0].attention.temperature)
            for stack, group in zip(stacks, groups, strict=True)
        ]

    def __call__(self, maps: Maps, tokens: Tensor, mask: Mask = EVERYTHING) -> Tensor:
        """Pass tokens (M, b, n, d) with positions through all blocks; the mask is (M·b, …)."""
        sizes = tokens.shape[1:3]
        if self.position is not NoPosition:
            table = maps["position.table"][:, None, : sizes[1]].expand(-1, sizes[0], -1, -1)
            appended = self.position is LearnedConcatenated
            tokens = torch.cat([tokens, table], dim=-1) if appended else tokens + table
        rows = tokens.flatten(1, 2)
        for layer in range(self.depth):
            rows = self.run_block(maps.below(f"blocks.{layer}").own(), rows, (sizes, mask))
        rows = maps.norm("last_norm", rows) if self.pre else rows
        return rows.unflatten(1, sizes)

    def _block(self, parameters: Parameters, rows: Tensor, grid: _Grid) -> Tensor:
        maps = Maps(parameters)
        if self.pre:
            rows = rows + self._attended(maps, maps.norm("attention_norm", rows), grid)
            return rows + self._mlp(maps, maps.norm("mlp_norm", rows))
        rows = maps.norm("attention_norm", rows + self._attended(maps, rows, grid))
        return maps.norm("mlp_norm", rows + self._mlp(maps, rows))

    def _mlp(self, maps: Maps, rows: Tensor) -> Tensor:
        return maps.linear("mlp.contract", self.activation(maps.linear("mlp.expand", rows)))

    def _attended(self, maps: Maps, rows: Tensor, grid: _Grid) -> Tensor:
        part = maps.below("attention.projection")
        triple = [part.linear(name, rows) for name in ("query", "key", "value")]
        triples = of_variants(triple, [(v.first, v.end) for v in self.variants])
        pairs = zip(self.variants, triples, strict=True)
        mixed = [self._mixed(variant, own, grid) for variant, own in pairs]
        joined = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
        return part.linear("output", joined, self.factor)

    def _mixed(self, variant: _Variant, triple: tuple[Tensor, ...], grid: _Grid) -> Tensor:
        """Compute the attention of the members of one variant, (m, b·n, H·r) in and out."""
        (sequences, length), mask = grid
        first, end = variant.first, variant.end
        cut = ((end - first) * sequences, length, variant.heads, -1)
        q, k, v = (t.reshape(cut).transpose(1, 2) for t in triple)
        if isinstance(mask, Padding):
            mask = Padding(mask.real[first * sequences : end * sequences])
        mixed = self.weighting.mix(Heads(q, k, v, mask, variant.temperature))
        return mixed.transpose(1, 2).reshape(end - first, sequences * length, -1)


def _points(model: EncoderStack, stack: StackedStack) -> Stacked:
    return lambda parameters, inputs: stack(Maps(parameters), inputs[0])


def _neighbours(model: NeighbourEncoder, stack: StackedStack) -> Stacked:
    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        return stack(Maps(parameters).below("stack"), inputs[0])[..., : model.shape.width]

    return forward


def _image_classifier(model: ViTClassifier, stack: StackedStack) -> Stacked:
    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (images,) = Maps(parameters), inputs
        members, count = images.shape[:2]
        cut = model.images.cut(images.flatten(0, 1))
        rows = cut.reshape(members, -1, cut.shape[-1])
        tokens = maps.linear("embedding", rows).unflatten(1, (count, -1))
        first = maps["class_token"][:, None, None].expand(-1, count, 1, -1)
        encoded = stack(maps.below("stack"), torch.cat([first, tokens], dim=2))
        return maps.linear("readout", encoded[:, :, 0])

    return forward


def _text_classifier(model: TextClassifier, stack: StackedStack) -> Stacked:
    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (numbers, *lengths) = Maps(parameters), inputs
        tokens = _embedded(maps, numbers)
        return maps.linear("readout", _mean_of_real(maps, tokens, lengths))

    def _mean_of_real(maps: Maps, tokens: Tensor, lengths: list[Tensor]) -> Tensor:
        if not lengths:
            return stack(maps.below("stack"), tokens).mean(2)
        padding = Padding.of_lengths(lengths[0].flatten(), tokens.shape[2])
        encoded = stack(maps.below("stack"), tokens, padding)
        real = padding.real.view(*tokens.shape[:3], 1)
        return (encoded * real).sum(2) / lengths[0].unsqueeze(-1)

    return forward


def _vector_classifier(model: VectorClassifier, stack: StackedStack) -> Stacked:
    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (vectors,) = Maps(parameters), inputs
        rows = maps.linear("embedding", vectors.flatten(1, 2))
        encoded = stack(maps.below("stack"), rows.unflatten(1, vectors.shape[1:3]))
        return maps.linear("readout", encoded.mean(2))

    return forward


def _decoder(model: Decoder, stack: StackedStack) -> Stacked:
    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (numbers,) = Maps(parameters), inputs
        encoded = stack(maps.below("stack"), _embedded(maps, numbers), Causal())
        rows = maps.linear("readout", encoded.flatten(1, 2))
        return rows.unflatten(1, encoded.shape[1:3])

    return forward


def _embedded(maps: Maps, numbers: Tensor) -> Tensor:
    """Every member's own embedding of its token numbers (M, b, n)."""
    tables = maps["embedding.weight"]
    members, words = tables.shape[:2]
    shift = words * torch.arange(members, device=numbers.device)
    return embedding(numbers + shift.view(-1, 1, 1), tables.flatten(0, 1))


def _regressor(model: InContextRegressor, stack: StackedStack) -> Stacked:
    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (x, y) = Maps(parameters), inputs
        members, count, points = y.shape
        pairs = interleaved(x.flatten(0, 1), y.flatten(0, 1))
        tokens = maps.linear("embedding", pairs.reshape(members, -1, x.shape[-1]))
        tokens = tokens.unflatten(1, (count, 2 * points))
        encoded = stack(maps.below("stack"), tokens, Causal())
        asked = encoded[:, :, 0::2].reshape(members, count * points, -1)
        return maps.linear("readout", asked).reshape(members, count, points)

    return forward


_KINDS: dict[type[nn.Module], Callable[..., Stacked]] = {
    ViTClassifier: _image_classifier,
    TextClassifier: _text_classifier,
    VectorClassifier: _vector_classifier,
    Decoder: _decoder,
    InContextRegressor: _regressor,
    EncoderStack: _points,
    NeighbourEncoder: _neighbours,
}
