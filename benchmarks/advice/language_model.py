"""Small Transformers over ids, many at once: members differ in seed, rate and head geometry.

Everything but attention has the same shape for all members, so it runs as batched products over
them. Members of one geometry stand together and share the calls of their attention. Blocks are
pre-norm with a GELU MLP of four times the width; norms have no gain because the next linear map
absorbs it; there are no biases; positions are learned and added.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm, pad, scaled_dot_product_attention

#: Fused attention kernels want head dimensions that are multiples of this; zeros fill the rest.
LANES = 8

Parameters = Mapping[str, Tensor]


class Geometry(NamedTuple):
    """The number of heads, and the rank of their query-key and value maps."""

    heads: int
    qk_rank: int
    v_rank: int


class Member(NamedTuple):
    """One model of an ensemble."""

    geometry: Geometry
    seed: int
    rate: float


@dataclass(frozen=True)
class Shape:
    """What all members share: ids in, ``outputs`` logits for each asked position."""

    width: int
    layers: int
    length: int
    vocabulary: int
    outputs: int
    causal: bool

    def attention_parameters(self, geometry: Geometry) -> int:
        """Weights of all attention layers."""
        ranks = geometry.qk_rank + geometry.v_rank
        return 2 * self.layers * self.width * geometry.heads * ranks

    def parameters(self, geometry: Geometry) -> int:
        """Weights of the whole model."""
        tables = self.vocabulary + self.length + self.outputs + 8 * self.layers * self.width
        return self.width * tables + self.attention_parameters(geometry)

    def operations(self, geometry: Geometry) -> int:
        """Floating-point operations of a training step per token, attention without padding."""
        linear = self.parameters(geometry) - self.width * (self.vocabulary + self.length)
        ranks = geometry.qk_rank + geometry.v_rank
        mixing = self.layers * geometry.heads * ranks * self.length // (2 if self.causal else 1)
        return 6 * (linear + mixing)


class Group(NamedTuple):
    """Members ``first`` to ``end`` (exclusive), which have one geometry."""

    first: int
    end: int
    geometry: Geometry


def groups_of(members: Sequence[Member]) -> tuple[Group, ...]:
    """The runs of members that have one geometry."""
    found: list[Group] = []
    for number, member in enumerate(members):
        if found and found[-1].geometry == member.geometry:
            found[-1] = found[-1]._replace(end=number + 1)
        else:
            found.append(Group(number, number + 1, member.geometry))
    return tuple(found)


def initial_parameters(shape: Shape, members: Sequence[Member]) -> dict[str, Tensor]:
    """Draw all parameters, members first; equal seeds have equal numbers where shapes agree."""
    found = {name: _drawn(name, sizes, members) for name, sizes in _shared(shape).items()}
    for number, group in enumerate(groups_of(members)):
        own = members[group.first : group.end]
        for name, sizes in _attention(shape, group.geometry).items():
            found[f"{name}.{number}"] = _drawn(name, sizes, own)
    return found


def _shared(shape: Shape) -> dict[str, tuple[int, int]]:
    width = shape.width
    sizes = {
        "embedding": (shape.vocabulary, width),
        "positions": (shape.length, width),
        "head": (width, shape.outputs),
    }
    for layer in range(shape.layers):
        sizes[f"up.{layer}"] = (width, 4 * width)
        sizes[f"down.{layer}"] = (4 * width, width)
    return sizes


def _attention(shape: Shape, geometry: Geometry) -> dict[str, tuple[int, int]]:
    inner = {
        "query": geometry.heads * geometry.qk_rank,
        "key": geometry.heads * geometry.qk_rank,
        "value": geometry.heads * geometry.v_rank,
    }
    sizes = {}
    for layer in range(shape.layers):
        for name, columns in inner.items():
            sizes[f"{name}.{layer}"] = (shape.width, columns)
        sizes[f"out.{layer}"] = (inner["value"], shape.width)
    return sizes


def _drawn(name: str, sizes: tuple[int, int], members: Sequence[Member]) -> Tensor:
    by_seed = {seed: _draw(name, sizes, seed) for seed in {member.seed for member in members}}
    return torch.stack([by_seed[member.seed] for member in members])


def _draw(name: str, sizes: tuple[int, int], seed: int) -> Tensor:
    """Normal numbers with the spread of ``torch.nn.Linear``; residual maps begin small."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {name}".encode()))
    kind = name.split(".")[0]
    spread = 0.05 if kind in ("embedding", "positions") else (3 * sizes[0]) ** -0.5
    if kind in ("out", "down"):
        spread /= 4
    return torch.randn(sizes, generator=generator) * spread


class StackedModel:
    """The forward pass of all members; ``block`` may be replaced by a compiled one."""

    def __init__(self, shape: Shape, members: Sequence[Member]) -> None:
        self.shape, self.groups = shape, groups_of(members)
        self.block: Callable[..., Tensor] = block

    def __call__(self, weights: Parameters, ids: Tensor, asked: Tensor | None) -> Tensor:
        """Logits (members, asked tokens, outputs) for ids (members, sequences, length).

        ``asked`` holds the positions to answer, counted through all sequences of a member.
        """
        rows = self._embedded(weights, ids)
        for layer in range(self.shape.layers):
            rows = self.block(rows, self._layer(weights, layer), self.groups, self.shape)
        rows = layer_norm(rows, rows.shape[-1:])
        if asked is not None:
            rows = rows.gather(1, asked.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))
        return rows @ weights["head"]

    def _embedded(self, weights: Parameters, ids: Tensor) -> Tensor:
        table = weights["embedding"]
        first = torch.arange(len(ids), device=ids.device).view(-1, 1, 1) * self.shape.vocabulary
        tokens = embedding(ids + first, table.flatten(0, 1))
        tokens = tokens + weights["positions"][:, None, : ids.shape[2]]
        return tokens.flatten(1, 2)

    def _layer(self, weights: Parameters, layer: int) -> list[Tensor]:
        own = [weights[f"up.{layer}"], weights[f"down.{layer}"]]
        for number in range(len(self.groups)):
            own += [weights[f"{part}.{layer}.{number}"] for part in _PARTS]
        return own


_PARTS = ("query", "key", "value", "out")


def block(rows: Tensor, weights: Sequence[Tensor], groups: Sequence[Group], shape: Shape) -> Tensor:
    """One layer: attention by groups, then the MLP; rows are (members, tokens, width)."""
    normed = layer_norm(rows, rows.shape[-1:])
    mixed = [
        attended(normed[group.first : group.end], weights[2 + 4 * k : 6 + 4 * k], group, shape)
        for k, group in enumerate(groups)
    ]
    rows = rows + (mixed[0] if len(mixed) == 1 else torch.cat(mixed))
    hidden = gelu(layer_norm(rows, rows.shape[-1:]) @ weights[0], approximate="tanh")
    return rows + hidden @ weights[1]


def attended(rows: Tensor, weights: Sequence[Tensor], group: Group, shape: Shape) -> Tensor:
    """Multi-head attention of members of one geometry.

    Weights, not activations, are padded to one head dimension, so that nothing large is copied.
    """
    heads, qk_rank, v_rank = group.geometry
    size = -(-max(qk_rank, v_rank) // LANES) * LANES
    query, key, value, out = weights
    columns = [
        padded(query, qk_rank, size),
        padded(key, qk_rank, size),
        padded(value, v_rank, size),
    ]
    triple = rows @ torch.cat(columns, dim=-1)
    triple = triple.view(len(rows), -1, shape.length, 3, heads, size).flatten(0, 1)
    queries, keys, values = triple.permute(2, 0, 3, 1, 4)
    mixed = scaled_dot_product_attention(
        queries, keys, values, is_causal=shape.causal, scale=1 / math.sqrt(qk_rank)
    )
    mixed = mixed.transpose(1, 2).reshape(len(rows), -1, heads * size)
    return mixed @ padded(out.mT, v_rank, size).mT


def padded(weight: Tensor, rank: int, size: int) -> Tensor:
    """Fill the last axis, heads of ``rank`` columns, with zeros up to ``size`` columns a head."""
    if rank == size:
        return weight
    return pad(weight.unflatten(-1, (-1, rank)), (0, size - rank)).flatten(-2)
