"""The sweep's models for all seeds at once, written out: half the kernels of a vectorised call.

Tokens of all sequences are rows of one matrix per member, so every linear map is one batched
product with its bias. What comes out, and its gradient, is what the models themselves give.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, layer_norm, normalize, unfold

from headwise.attention import Attention, Causal, Everything
from headwise.attention.weighting import Heads
from headwise.models import EncoderStack, InContextRegressor, TextClassifier, ViTClassifier
from headwise.models.incontext import interleaved
from headwise.training.stacking import Parameters, Stacked


def stacked(model: nn.Module) -> Stacked:
    """One call for all members of a model of this kind."""
    for kind, make in _KINDS.items():
        if isinstance(model, kind):
            return make(model)
    raise TypeError(f"{type(model).__name__} has no stacked form")


class Maps:
    """The parameters of all members under a prefix, and the maps they make of rows (M, k, d)."""

    def __init__(self, parameters: Parameters, prefix: str = "") -> None:
        self.parameters, self.prefix = parameters, prefix

    def __getitem__(self, name: str) -> Tensor:
        return self.parameters[self.prefix + name]

    def below(self, name: str) -> Maps:
        """The parameters of a part."""
        return Maps(self.parameters, f"{self.prefix}{name}.")

    def linear(self, name: str, rows: Tensor) -> Tensor:
        """Rows times the transposed weight of their member, plus the bias."""
        bias = self[f"{name}.bias"].unsqueeze(1)
        return torch.baddbmm(bias, rows, self[f"{name}.weight"].mT)

    def norm(self, name: str, rows: Tensor) -> Tensor:
        """A layer norm with weight and bias, or a unit norm with one scalar."""
        scale = self.parameters.get(f"{self.prefix}{name}.scale")
        if scale is not None:
            return scale[:, None, None] * normalize(rows, dim=-1)
        weight, bias = (self[f"{name}.{part}"].unsqueeze(1) for part in ("weight", "bias"))
        return torch.addcmul(bias, layer_norm(rows, rows.shape[-1:]), weight)


class StackedStack:
    """An ``EncoderStack``: rows (M, b·n, d) in and out."""

    def __init__(self, stack: EncoderStack, mask: Causal | Everything) -> None:
        first = stack.blocks[0]
        attention = first.attention
        assert isinstance(attention, Attention)
        self.depth, self.pre, self.mask = len(stack.blocks), first.placement == "pre", mask
        self.geometry, self.temperature = stack.geometry, attention.temperature
        self.weighting = attention.weighting
        self.activation = gelu if isinstance(first.mlp.activation, nn.GELU) else torch.relu
        self.positioned = "position.table" in dict(stack.named_parameters())

    def __call__(self, maps: Maps, tokens: Tensor) -> Tensor:
        """Tokens (M, b, n, d) with their positions, through all blocks."""
        sizes = tokens.shape[1:3]
        if self.positioned:
            tokens = tokens + maps["position.table"][:, None, : sizes[1]]
        rows = tokens.flatten(1, 2)
        for layer in range(self.depth):
            rows = self._block(maps.below(f"blocks.{layer}"), rows, sizes)
        rows = maps.norm("last_norm", rows) if self.pre else rows
        return rows.unflatten(1, sizes)

    def _block(self, maps: Maps, rows: Tensor, sizes: torch.Size) -> Tensor:
        if self.pre:
            rows = rows + self._attended(maps, maps.norm("attention_norm", rows), sizes)
            return rows + self._mlp(maps, maps.norm("mlp_norm", rows))
        rows = maps.norm("attention_norm", rows + self._attended(maps, rows, sizes))
        return maps.norm("mlp_norm", rows + self._mlp(maps, rows))

    def _mlp(self, maps: Maps, rows: Tensor) -> Tensor:
        return maps.linear("mlp.contract", self.activation(maps.linear("mlp.expand", rows)))

    def _attended(self, maps: Maps, rows: Tensor, sizes: torch.Size) -> Tensor:
        part = maps.below("attention.projection")
        members, (sequences, length) = len(rows), sizes
        cut = (members * sequences, length, self.geometry.heads, -1)
        q, k, v = (
            part.linear(name, rows).view(cut).transpose(1, 2) for name in ("query", "key", "value")
        )
        mixed = self.weighting.mix(Heads(q, k, v, self.mask, self.temperature))
        joined = mixed.transpose(1, 2).reshape(members, sequences * length, -1)
        return part.linear("output", joined)


def _points(model: EncoderStack) -> Stacked:
    stack = StackedStack(model, Everything())
    return lambda parameters, inputs: stack(Maps(parameters), inputs[0])


def _image_classifier(model: ViTClassifier) -> Stacked:
    stack, side = StackedStack(model.stack, Everything()), model.images.patch

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
    stack = StackedStack(model.stack, Everything())

    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (numbers,) = Maps(parameters), inputs
        tables = maps["embedding.weight"]
        members, words = tables.shape[:2]
        shift = words * torch.arange(members, device=numbers.device)
        tokens = embedding(numbers + shift.view(-1, 1, 1), tables.flatten(0, 1))
        return maps.linear("readout", stack(maps.below("stack"), tokens).mean(2))

    return forward


def _regressor(model: InContextRegressor) -> Stacked:
    stack = StackedStack(model.stack, Causal())

    def forward(parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        maps, (x, y) = Maps(parameters), inputs
        members, count, points = y.shape
        pairs = interleaved(x.flatten(0, 1), y.flatten(0, 1))
        tokens = maps.linear("embedding", pairs.reshape(members, -1, x.shape[-1]))
        encoded = stack(maps.below("stack"), tokens.unflatten(1, (count, 2 * points)))
        asked = encoded[:, :, 0::2].reshape(members, count * points, -1)
        return maps.linear("readout", asked).reshape(members, count, points)

    return forward


_KINDS: dict[type[nn.Module], Callable[..., Stacked]] = {
    ViTClassifier: _image_classifier,
    TextClassifier: _text_classifier,
    InContextRegressor: _regressor,
    EncoderStack: _points,
}
