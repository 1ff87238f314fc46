"""The heads paper's encoder: post-norm, unit norms, wide MLP, averaged copies of attention."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from headwise.attention import (
    HeadGeometry,
    HeadMean,
    LearnedAdditive,
    LearnedConcatenated,
    NoPosition,
    PositionRule,
    Stock,
    mha,
)
from headwise.checks import one_of
from headwise.errors import BadInputError
from headwise.models.transformer import EncoderStack, Mlp, Style
from headwise.randomness import stream
from headwise.shapes import Float

Positions = Literal["none", "additive", "concatenated"]


@dataclass(frozen=True)
class NeighbourShape:
    """The sizes of one model, with H = copies · width / rank heads in each layer.

    Args:
        width: The dimension of the points, and the width of the model.
        tokens: The number of points.
        layers: The number of layers.
        rank: The rank of each head; it divides the width.
        copies: How many times d/r heads each layer has; their outputs are averaged.
        mlp_width: The width of the MLP's hidden layer.
        positions: "none", "additive" or "concatenated". Concatenated positions add learned
            dimensions to every token and widen all maps; the first ``width`` dimensions of the
            output are the prediction. The number of heads does not change.
        position_width: The number of dimensions of concatenated positions.

    Raises:
        BadInputError: If the rank does not divide the width, or ``positions`` is unknown.

    Example:
        >>> NeighbourShape(width=64, rank=1, copies=64).heads
        4096
    """

    width: int = 64
    tokens: int = 16
    layers: int = 1
    rank: int = 64
    copies: int = 1
    mlp_width: int = 2048
    positions: Positions = "none"
    position_width: int = 64

    def __post_init__(self) -> None:
        if self.rank < 1 or self.width % self.rank:
            fits = [r for r in range(1, self.width + 1) if self.width % r == 0]
            raise BadInputError(
                f"expected a rank that divides the width {self.width}, got {self.rank}",
                hint=f"choose a rank from {', '.join(map(str, fits))}",
            )
        one_of("positions", self.positions, get_args(Positions))

    @property
    def heads(self) -> int:
        """The number of heads in each layer."""
        return self.copies * (self.width // self.rank)

    @property
    def geometry(self) -> HeadGeometry:
        """The heads and ranks of each layer."""
        extra = self.position_width if self.positions == "concatenated" else 0
        return HeadGeometry.free(self.width + extra, self.heads, self.rank)

    def build(self, seed: int) -> NeighbourEncoder:
        """Build the model; its initial weights depend only on the seed."""
        return NeighbourEncoder(self, seed)


class NeighbourEncoder(nn.Module):
    """Points in, one vector for each out.

    Attention is initialised as ``torch.nn.MultiheadAttention`` (each copy), the MLP as
    ``torch.nn.Linear``, both from named streams of the seed.

    Args:
        shape: The sizes.
        seed: The seed of the weights.

    Example:
        >>> shape = NeighbourShape(width=8, rank=2, copies=3, mlp_width=16)
        >>> model = NeighbourEncoder(shape, seed=0)
        >>> model(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 8])
    """

    def __init__(self, shape: NeighbourShape, seed: int = 0) -> None:
        super().__init__()
        self.shape = shape
        style = Style(
            placement="post",
            activation="relu",
            initialisation=Stock(seed),
            attention=partial(mha, combination=HeadMean(shape.copies)),
        )
        self.stack = EncoderStack(
            shape.geometry,
            _position(shape, seed),
            depth=shape.layers,
            mlp_width=shape.mlp_width,
            norm="unit",
            style=style,
        )
        for layer, block in enumerate(self.stack.blocks):
            _draw_as_linear(block.mlp, seed, layer)  # pyright: ignore[reportArgumentType]

    def forward(self, points: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """Return the prediction for each token."""
        return self.stack(points)[..., : self.shape.width]


def _position(shape: NeighbourShape, seed: int) -> PositionRule:
    if shape.positions == "additive":
        return LearnedAdditive(shape.tokens, shape.width, seed)
    if shape.positions == "concatenated":
        # As long as the points on the sphere: longer ones would dominate them at the start.
        spread = shape.position_width**-0.5
        return LearnedConcatenated(shape.tokens, shape.position_width, seed, spread)
    return NoPosition()


@torch.no_grad()
def _draw_as_linear(mlp: Mlp, seed: int, layer: int) -> None:
    """Draw weights and biases from U(±1/√fan-in), as ``torch.nn.Linear`` does."""
    for name, linear in (("expand", mlp.expand), ("contract", mlp.contract)):
        bound = linear.in_features**-0.5
        generator = stream(seed, "mlp", layer, name)
        linear.weight.uniform_(-bound, bound, generator=generator)
        linear.bias.uniform_(-bound, bound, generator=generator)
