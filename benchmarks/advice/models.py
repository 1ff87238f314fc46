"""The models of the sweeps: small transformers whose heads and ranks are an argument.

All begin as PyTorch's own layers do (weights U(±1/√fan-in)), with zero biases. Queries, keys and
values of a head have exactly the rank the geometry says; nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from headwise.attention import (
    Attention,
    Causal,
    Everything,
    HeadGeometry,
    LearnedAdditive,
    NoPosition,
    mha,
)
from headwise.attention.weighting import Heads, short_mix
from headwise.models import (
    EncoderStack,
    Images,
    InContextRegressor,
    Style,
    TextClassifier,
    ViTClassifier,
)
from headwise.models.rank_paper import AsLinear, FusedSoftmax

#: Fused kernels on a GPU want heads of at least this many numbers; zeros fill the rest.
LANES = 8

AttentionPrecision = Literal["as linear maps", "bf16"]


class KernelSoftmax(FusedSoftmax):
    """Softmax weights by one fused call, whatever the rank.

    On a GPU the heads are filled up with zeros to the size that its kernels take, and with
    "bf16" attention alone is computed in bfloat16. On a CPU attention stays in float32: torch's
    backward pass in bfloat16 takes ten times as long there.
    """

    def __init__(self, precision: AttentionPrecision = "as linear maps") -> None:
        super().__init__()
        self.precision = precision

    def mix(self, heads: Heads) -> Tensor:
        """The weighted sums of values."""
        if not isinstance(heads.mask, Causal | Everything):
            raise TypeError(f"whole and causal masks are served, got {heads.mask!r}")
        short = None if self.precision == "bf16" else short_mix(heads)
        if short is not None:
            return short
        triple = (heads.queries, heads.keys, heads.values)
        if heads.queries.is_cuda:
            triple = tuple(self._for_kernel(part) for part in triple)
        else:
            triple = tuple(_widened(part) for part in triple)
        with torch.autocast("cpu", enabled=False):
            mixed = scaled_dot_product_attention(
                *triple, is_causal=isinstance(heads.mask, Causal), scale=1 / heads.temperature
            )
        mixed = mixed[..., : heads.values.shape[-1]]
        return mixed.to(heads.values.dtype) if mixed.is_cuda else mixed

    def _for_kernel(self, part: Tensor) -> Tensor:
        filled = pad(part, (0, -part.shape[-1] % LANES))
        return filled.bfloat16() if self.precision == "bf16" else filled


def _widened(part: Tensor) -> Tensor:
    return part.float() if part.dtype == torch.bfloat16 else part


@dataclass(frozen=True)
class Shape:
    """What all models of a task share; ``heads`` is the number that the first sweep fixes."""

    width: int
    depth: int
    mlp_width: int
    heads: int
    tokens: int
    attention: AttentionPrecision = "as linear maps"

    def preset(self) -> Callable[..., Attention]:
        """How a layer is made of a geometry."""
        return partial(mha, weighting=KernelSoftmax(self.attention))

    def stack(self, geometry: HeadGeometry, seed: int) -> EncoderStack:
        """Pre-norm blocks with learned positions."""
        position = LearnedAdditive(self.tokens, self.width, seed)
        style = Style(initialisation=AsLinear(seed), attention=self.preset())
        return EncoderStack(
            geometry, position, depth=self.depth, mlp_width=self.mlp_width, style=style
        )


Build = Callable[[HeadGeometry, int], nn.Module]


def image_classifier(shape: Shape, images: Images, classes: int = 10) -> Build:
    """Patches and a class token."""
    return lambda geometry, seed: ViTClassifier(shape.stack(geometry, seed), images, classes, seed)


def text_classifier(shape: Shape, vocabulary: int, classes: int = 2) -> Build:
    """Word numbers; classes from the mean over tokens, padding included as a word."""
    return lambda geometry, seed: TextClassifier(
        shape.stack(geometry, seed), vocabulary, classes, seed
    )


def regressor(shape: Shape, dimensions: int) -> Build:
    """Examples in a row, causal."""
    return lambda geometry, seed: InContextRegressor(shape.stack(geometry, seed), dimensions, seed)


def point_encoder(shape: Shape) -> Build:
    """The heads paper's encoder: post-norm, unit norms, ReLU, no positions."""

    def build(geometry: HeadGeometry, seed: int) -> nn.Module:
        style = Style(
            placement="post",
            activation="relu",
            initialisation=AsLinear(seed),
            attention=shape.preset(),
        )
        sizes = {"depth": shape.depth, "mlp_width": shape.mlp_width}
        return EncoderStack(geometry, NoPosition(), **sizes, norm="unit", style=style)

    return build
