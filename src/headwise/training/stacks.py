"""Encoder stacks, and models made of one, for all members at once, written out.

Tokens of all sequences are rows of one matrix per member, so every linear map is one batched
product with its bias: half the kernels of a vectorised call. What comes out, and its gradient,
is what the models themselves give.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, unfold

from headwise.attention import (
    EVERYTHING,
    Attention,
    Causal,
    HeadSum,
    LearnedAdditive,
    Mask,
    NoPosition,
    Padding,
)
from headwise.attention.projections import GroupedProjection
from headwise.attention.weighting import Heads
from headwise.models import EncoderStack, InContextRegressor, TextClassifier, ViTClassifier
from headwise.models.incontext import interleaved
from headwise.models.norms import UnitNorm
from headwise.models.transformer import Block
from headwise.training.linear_maps import Maps
from headwise.training.stacking import Parameters, Stacked


def written_out(model: nn.Module) -> Stacked | None:
    """One call for all members of a model of this kind; None for kinds that have no such form.

    >>> written_out(nn.Linear(2, 2)) is None
    True
    """
    stack = model if isinstance(model, EncoderStack) else getattr(model, "stack", None)
    make = _KINDS.get(type(model))
    return make(model) if make and isinstance(stack, EncoderStack) and _serves(stack) else None


def _serves(stack: EncoderStack) -> bool:
    """Whether it is made of what is written out below: plain heads, positions added if any."""
    return isinstance(stack.position, NoPosition | LearnedAdditive) and all(
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
        and isinstance(attention.combination, HeadSum)
        and not list(attention.weighting.parameters())
    )


#: Sequences and length, and who attends to whom.
_Grid = tuple[torch.Size, Mask]


class StackedStack:
    """An ``EncoderStack``: rows (M, b·n, d) in and out."""

    def __init__(self, stack: EncoderStack) -> None:
        first = _blocks(stack)[0]
        attention = first.attention
        self.depth, self.pre = len(stack.blocks), first.placement == "pre"
        self.geometry, self.temperature = stack.geometry, attention.temperature
        self.weighting = attention.weighting
        self.activation = gelu if isinstance(first.mlp.activation, nn.GELU) else torch.relu
        self.positioned = "position.table" in dict(stack.named_parameters())

    def __call__(self, maps: Maps, tokens: Tensor, mask: Mask = EVERYTHING) -> Tensor:
        """Tokens (M, b, n, d) with their positions, through all blocks; a mask of (M·b, …)."""
        sizes = tokens.shape[1:3]
        if self.positioned:
            tokens = tokens + maps["position.table"][:, None, : sizes[1]]
        rows = tokens.flatten(1, 2)
        for layer in range(self.depth):
            rows = self._block(maps.below(f"blocks.{layer}"), rows, (sizes, mask))
        rows = maps.norm("last_norm", rows) if self.pre else rows
        return rows.unflatten(1, sizes)

    def _block(self, maps: Maps, rows: Tensor, grid: _Grid) -> Tensor:
        if self.pre:
            rows = rows + self._attended(maps, maps.norm("attention_norm", rows), grid)
            return rows + self._mlp(maps, maps.norm("mlp_norm", rows))
        rows = maps.norm("attention_norm", rows + self._attended(maps, rows, grid))
        return maps.norm("mlp_norm", rows + self._mlp(maps, rows))

    def _mlp(self, maps: Maps, rows: Tensor) -> Tensor:
        return maps.linear("mlp.contract", self.activation(maps.linear("mlp.expand", rows)))

    def _attended(self, maps: Maps, rows: Tensor, grid: _Grid) -> Tensor:
        part = maps.below("attention.projection")
        members, ((sequences, length), mask) = len(rows), grid
        cut = (members * sequences, length, self.geometry.heads, -1)
        q, k, v = (
            part.linear(name, rows).view(cut).transpose(1, 2) for name in ("query", "key", "value")
        )
        mixed = self.weighting.mix(Heads(q, k, v, mask, self.temperature))
        joined = mixed.transpose(1, 2).reshape(members, sequences * length, -1)
        return part.linear("output", joined)


def _points(model: EncoderStack) -> Stacked:
    stack = StackedStack(model)
    return lambda parameters, inputs: stack(Maps(parameters), inputs[0])


def _image_classifier(model: ViTClassifier) -> Stacked:
    stack, side = StackedStack(model.stack), model.images.patch

    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (images,) = Maps(parameters), inputs
        members, count = images.shape[:2]
        cut = unfold(images.flatten(0, 1), kernel_size=side, stride=side).mT
        rows = cut.reshape(members, -1, cut.shape[-1])
        tokens = maps.linear("embedding", rows).unflatten(1, (count, -1))
        first = maps["class_token"][:, None, None].expand(-1, count, 1, -1)
        encoded = stack(maps.below("stack"), torch.cat([first, tokens], dim=2))
        return maps.linear("readout", encoded[:, :, 0])

    return forward


def _text_classifier(model: TextClassifier) -> Stacked:
    stack = StackedStack(model.stack)

    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (numbers, *lengths) = Maps(parameters), inputs
        tables = maps["embedding.weight"]
        members, words = tables.shape[:2]
        shift = words * torch.arange(members, device=numbers.device)
        tokens = embedding(numbers + shift.view(-1, 1, 1), tables.flatten(0, 1))
        return maps.linear("readout", _mean_of_real(maps, tokens, lengths))

    def _mean_of_real(maps: Maps, tokens: Tensor, lengths: list[Tensor]) -> Tensor:
        if not lengths:
            return stack(maps.below("stack"), tokens).mean(2)
        padding = Padding.of_lengths(lengths[0].flatten(), tokens.shape[2])
        encoded = stack(maps.below("stack"), tokens, padding)
        real = padding.real.view(*tokens.shape[:3], 1)
        return (encoded * real).sum(2) / lengths[0].unsqueeze(-1)

    return forward


def _regressor(model: InContextRegressor) -> Stacked:
    stack = StackedStack(model.stack)

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
    InContextRegressor: _regressor,
    EncoderStack: _points,
}
