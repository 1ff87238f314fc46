"""Tokens on their way through attention layers at initialisation, with every head's logits.

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

#: How weights begin: N(0, 1), or Xavier's uniform law for each whole matrix.
WeightLaw = Literal["normal(0,1)", "xavier"]

#: Numbers in the logits that are held at once: 2²² are 32 MiB.
LOGITS_AT_ONCE = 2**22

#: The same where a processor counts: 8 MiB stay near it until they are counted.
LOGITS_NEAR = 2**20

#: Numbers in queries, and as many in keys, that are held at once: a few columns by themselves
#: would be multiplied at a fraction of the speed.
PROJECTED_AT_ONCE = 2**21


#: The streams of their weights.
QUERIES_KEYS = ("queries", "keys")


@dataclass(frozen=True)
class StackShape:
    """One layer after another, all of the same shape.

    A layer is attention and, if ``mlp_width`` is not 0, a ReLU MLP. ``skip`` adds each part's
    input to its output; ``norm`` is a layer norm after each part ("post"), before each
    ("pre"), or nowhere ("none").

    >>> StackShape(width=8, head_dim=4, heads=2).mlp_width
    512
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
    """Queries and keys of all heads beside one another, (batch, n, heads · d_h)."""

    queries: Tensor
    keys: Tensor


class InitialLayer:
    """One layer at initialisation, its weights drawn from streams of their own.

    ``projections`` of the tokens it will be given, if known already, are not computed again.

    >>> layer = InitialLayer(StackShape(width=8, head_dim=4, heads=2), seed=0, number=1)
    >>> tokens = torch.ones(3, 5, 8, dtype=torch.float64)
    >>> [found.values.shape for found in layer.logits(tokens)]
    [torch.Size([2, 3, 5, 5])]
    >>> layer(tokens).shape
    torch.Size([3, 5, 8])
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
        """The weights of queries and keys."""
        queries, keys = (self._weights(n, self._shape.width, self._inner) for n in QUERIES_KEYS)
        return queries, keys

    def projections(self, tokens: Float[Tensor, "b n d"]) -> Projections:
        """Queries and keys of all heads."""
        tokens = self._read(tokens)
        return Projections(*(tokens @ weights for weights in self._reading))

    def logits(self, tokens: Float[Tensor, "b n d"]) -> Iterator[LogWeights]:
        """q·k/T of every head, (heads, batch, n, n), a few heads at a time."""
        near = tokens.device.type == "cpu"
        limit = LOGITS_NEAR if near else LOGITS_AT_ONCE
        for queries, keys, _ in self._heads(self._read(tokens), limit):
            yield logits(queries, keys, temperature=self._shape.temperature)

    def __call__(self, tokens: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
        """What the layer makes of its tokens."""
        tokens = self._joined(tokens, self._attend(self._read(tokens)))
        if self._shape.mlp_width == 0:
            return tokens
        return self._joined(tokens, self._mlp(self._read(tokens)))

    @property
    def temperature(self) -> float:
        """What logits are divided by."""
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
        """Queries and keys, (heads, batch, n, d_h), of as many heads as ``limit`` logits allow."""
        batch, n, _ = tokens.shape
        together = max(1, limit // (batch * n * n))
        for queries, keys, first in self._projected(tokens, together):
            for start in range(0, len(queries), together):
                own = slice(start, start + together)
                yield queries[own], keys[own], self._columns(first + start, len(queries[own]))

    def _projected(self, tokens: Tensor, together: int) -> Iterator[tuple[Tensor, Tensor, int]]:
        """Queries and keys of many heads, in multiples of ``together``, and the first's number."""
        batch, n, _ = tokens.shape
        fitting = PROJECTED_AT_ONCE // (batch * n * self._shape.head_dim)
        many = together * max(1, fitting // together)
        for first in range(0, self._shape.heads, many):
            part = self._columns(first, min(many, self._shape.heads - first))
            # Copied once here: strided, they would be copied by every step that reads them.
            queries, keys = (
                _by_head(flat, self._shape.head_dim).contiguous()
                for flat in self._flat(tokens, part)
            )
            yield queries, keys, first

    def _flat(self, tokens: Tensor, part: slice) -> Iterator[Tensor]:
        """Queries, then keys, of the heads that lie there."""
        if self._projections is not None:
            return (whole[..., part] for whole in self._projections)
        return (tokens @ weights[:, part] for weights in self._reading)

    def _columns(self, first: int, heads: int) -> slice:
        """Where heads lie in the weights."""
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
    """How far tokens are from all being equal: ‖X − 1·x̄ᵀ‖_F / ‖X‖_F, averaged over the batch.

    >>> collapse(torch.ones(1, 3, 2, dtype=torch.float64))
    0.0
    """
    apart = tokens - tokens.mean(dim=-2, keepdim=True)
    share = apart.flatten(1).norm(dim=1) / tokens.flatten(1).norm(dim=1)
    return float(share.mean())


def _by_head(flat: Tensor, head_dim: int) -> Tensor:
    return flat.unflatten(-1, (-1, head_dim)).permute(2, 0, 1, 3)


def _layer_norm(tokens: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(tokens, tokens.shape[-1:])
