"""Pass tokens through attention layers at initialisation, with the logits of every head.

Heads are taken a few at a time: all logits of a wide layer together would be gigabytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from headwise.attention.scores import default_temperature, logits
from headwise.randomness import stream
from headwise.shapes import Float
from headwise.spectra import LogWeights

#: Initial weights: N(0, 1), or Xavier's uniform rule for each whole matrix.
WeightLaw = Literal["normal(0,1)", "xavier"]

#: The most logits in memory at once: 2²² are 32 MiB.
LOGITS_AT_ONCE = 2**22

#: The same if ranks are counted on a CPU: 8 MiB stay in its cache.
LOGITS_NEAR = 2**20

#: Numbers in queries (and as many in keys) that are multiplied at once: a product of few columns
#: would run at a fraction of the speed.
PROJECTED_AT_ONCE = 2**21


@dataclass(frozen=True)
class StackShape:
    """A stack of layers of the same shape.

    A layer is attention and, if ``mlp_width`` is not 0, a ReLU MLP. ``skip`` adds each part's
    input to its output; ``norm`` is a layer norm after each part ("post"), before each
    ("pre"), or nowhere ("none").
    """

    width: int
    head_dim: int
    heads: int
    mlp_width: int = 512
    weights: WeightLaw = "normal(0,1)"
    temperature: float | None = None
    skip: bool = True
    norm: Literal["post", "pre", "none"] = "post"


class Projections(NamedTuple):
    """Queries and keys of all heads side by side, (batch, n, heads · d_h)."""

    queries: Tensor
    keys: Tensor


class InitialLayer:
    """One layer at initialisation; each of its weights has its own random stream.

    Pass ``projections`` if they are already known, to save computing them again.
    """

    def __init__(
        self,
        shape: StackShape,
        seed: int,
        number: int,
        device: str | torch.device = "cpu",
        projections: Projections | None = None,
    ) -> None:
        self._shape = shape
        self._place = (seed, "layer", number)
        self._device = device
        self._projections = projections
        self._inner = shape.heads * shape.head_dim

    @cached_property
    def _reading(self) -> tuple[Tensor, Tensor]:
        """Return the weights of queries and keys."""
        queries, keys = (
            self._weights(name, self._shape.width, self._inner) for name in ("queries", "keys")
        )
        return queries, keys

    def projections(self, tokens: Float[Tensor, "b n d"]) -> Projections:
        """Return queries and keys of all heads."""
        tokens = self._read(tokens)
        return Projections(*(tokens @ weights for weights in self._reading))

    def logits(self, tokens: Float[Tensor, "b n d"]) -> Iterator[LogWeights]:
        """Yield q·k/T, (heads, batch, n, n), a few heads at a time."""
        near = tokens.device.type == "cpu"
        limit = LOGITS_NEAR if near else LOGITS_AT_ONCE
        for queries, keys, _ in self._heads(self._read(tokens), limit):
            yield logits(queries, keys, temperature=self._shape.temperature)

    def __call__(self, tokens: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """Return the output of the layer."""
        tokens = self._joined(tokens, self._attend(self._read(tokens)))
        if self._shape.mlp_width == 0:
            return tokens
        return self._joined(tokens, self._mlp(self._read(tokens)))

    @property
    def temperature(self) -> float:
        """The divisor of the logits."""
        given = self._shape.temperature
        return default_temperature(self._shape.head_dim) if given is None else given

    def _weights(self, name: str, inputs: int, outputs: int) -> Tensor:
        generator = stream(*self._place, name)
        weight = torch.empty(inputs, outputs, dtype=torch.float64)
        if self._shape.weights == "xavier":
            bound = math.sqrt(6 / (inputs + outputs))
            weight.uniform_(-bound, bound, generator=generator)
        else:
            weight.normal_(generator=generator)
        return weight.to(self._device)

    def _heads(self, tokens: Tensor, limit: int) -> Iterator[tuple[Tensor, Tensor, slice]]:
        """Yield queries and keys (heads, batch, n, d_h), a few heads at a time."""
        batch, n, _ = tokens.shape
        together = max(1, limit // (batch * n * n))
        for queries, keys, first in self._projected(tokens, together):
            for start in range(0, len(queries), together):
                own = slice(start, start + together)
                yield queries[own], keys[own], self._columns(first + start, len(queries[own]))

    def _projected(self, tokens: Tensor, together: int) -> Iterator[tuple[Tensor, Tensor, int]]:
        """Yield queries and keys of multiples of ``together`` heads, and the first index."""
        batch, n, _ = tokens.shape
        fitting = PROJECTED_AT_ONCE // (batch * n * self._shape.head_dim)
        many = together * max(1, fitting // together)
        for first in range(0, self._shape.heads, many):
            part = self._columns(first, min(many, self._shape.heads - first))
            # Copy once here: every later step would copy the strided tensor.
            queries, keys = (
                _by_head(flat, self._shape.head_dim).contiguous()
                for flat in self._flat(tokens, part)
            )
            yield queries, keys, first

    def _flat(self, tokens: Tensor, part: slice) -> Iterator[Tensor]:
        """Return queries, then keys, of these heads."""
        if self._projections is not None:
            return (whole[..., part] for whole in self._projections)
        return (tokens @ weights[:, part] for weights in self._reading)

    def _columns(self, first: int, heads: int) -> slice:
        """Return the columns of these heads in the weights."""
        return slice(first * self._shape.head_dim, (first + heads) * self._shape.head_dim)

    def _attend(self, tokens: Tensor) -> Tensor:
        values = self._weights("values", self._shape.width, self._inner)
        output = self._weights("output", self._inner, self._shape.width)
        found = torch.zeros_like(tokens)
        for queries, keys, part in self._heads(tokens, LOGITS_AT_ONCE):
            weights = torch.softmax(queries @ keys.mT / self.temperature, dim=-1)
            mixed = weights @ _by_head(tokens @ values[:, part], self._shape.head_dim)
            found += mixed.permute(1, 2, 0, 3).flatten(2) @ output[part]
        return found

    def _mlp(self, tokens: Tensor) -> Tensor:
        hidden = tokens @ self._weights("expand", self._shape.width, self._shape.mlp_width)
        return hidden.relu() @ self._weights("contract", self._shape.mlp_width, self._shape.width)

    def _read(self, tokens: Tensor) -> Tensor:
        return _layer_norm(tokens) if self._shape.norm == "pre" else tokens

    def _joined(self, tokens: Tensor, part: Tensor) -> Tensor:
        found = tokens + part if self._shape.skip else part
        return _layer_norm(found) if self._shape.norm == "post" else found


def collapse(tokens: Float[Tensor, "b n d"]) -> float:
    """Return ‖X − 1·x̄ᵀ‖_F / ‖X‖_F, averaged over the batch: 0 if all tokens are equal."""
    apart = tokens - tokens.mean(dim=-2, keepdim=True)
    share = apart.flatten(1).norm(dim=1) / tokens.flatten(1).norm(dim=1)
    return float(share.mean())


def _by_head(flat: Tensor, head_dim: int) -> Tensor:
    return flat.unflatten(-1, (-1, head_dim)).permute(2, 0, 1, 3)


def _layer_norm(tokens: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(tokens, tokens.shape[-1:])
