"""Project tokens to per-head queries, keys and values: full, grouped, latent, or only keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from headwise.attention.initialisation import FanIn, Initialisation, empty_linear
from headwise.checks import of_type, one_of
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.report.results import short_repr
from headwise.shapes import Float

Biases = Literal["none", "qkv", "all"]


@dataclass(frozen=True, eq=False)
class HeadWeights:
    """The weights that make queries and keys from tokens.

    Args:
        query: W_Q, (H, r, d).
        key: W_K, (H_kv, r, d).

    Example:
        >>> FullProjection(HeadGeometry.free(8, heads=3, rank=5)).head_weights().query.shape
        torch.Size([3, 5, 8])
    """

    query: Float[Tensor, "h r d"]
    key: Float[Tensor, "k r d"]

    __repr__ = short_repr


class Projection(nn.Module, ABC):
    """Map tokens to queries (b, H, n, r), keys and values (b, H_kv, m, ·), and mixed values back.

    Args:
        geometry: Width, heads and ranks.
        biases: "none", "qkv" or "all".
        initialisation: The rule for the initial weights; ``FanIn()`` by default.

    Raises:
        BadInputError: If ``biases`` is unknown.

    Example:
        >>> isinstance(FullProjection(HeadGeometry.standard(8, heads=2)), Projection)
        True
    """

    def __init__(
        self,
        geometry: HeadGeometry,
        biases: Biases = "none",
        initialisation: Initialisation | None = None,
    ) -> None:
        super().__init__()
        one_of("`biases`", biases, ("none", "qkv", "all"))
        self.geometry = of_type("`geometry`", geometry, HeadGeometry, "a HeadGeometry")
        self.biases: Biases = biases
        self.output = empty_linear(
            geometry.heads * geometry.v_rank, geometry.width, biases == "all"
        )
        self._make_maps(geometry)
        self._draw(initialisation)

    @abstractmethod
    def _make_maps(self, geometry: HeadGeometry) -> None:
        """Make the maps that read tokens, without drawing their weights."""

    @abstractmethod
    def forward(self, tokens: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries of the tokens, keys and values of the context."""

    def combine(
        self, mixed: Float[Tensor, "b h n v"], factor: float = 1.0
    ) -> Float[Tensor, "b n d"]:
        """Return factor · Σ_h W_O,h · mixed_h, plus the bias."""
        joined = mixed.transpose(1, 2).flatten(2)
        if factor == 1:
            return self.output(joined)
        # Scale the weight instead of the heads: with thousands of heads it is far smaller.
        return linear(joined, factor * self.output.weight, self.output.bias)

    def head_weights(self) -> HeadWeights | None:
        """Return W_Q and W_K, or None if queries and keys do not come from two such matrices."""
        return None

    def _map(self, outputs: int) -> nn.Linear:
        return empty_linear(self.geometry.width, outputs, self.biases != "none")

    def _draw(self, rule: Initialisation | None) -> None:
        """Draw every map from its own named stream; all but the output read tokens."""
        given = rule or FanIn()
        of_type("`initialisation`", given, Initialisation, "a rule such as FanIn()")
        for name, child in self.named_children():
            if name != "output" and isinstance(child, nn.Linear):
                given.fill_input(child, name)
        given.fill_output(self.output, "output")


class GroupedProjection(Projection):
    """Share each key-value head among a group of query heads; one key-value head is multi-query.

    Example:
        >>> projection = GroupedProjection(HeadGeometry.standard(8, heads=4).grouped(2))
        >>> [t.shape[1] for t in projection(torch.zeros(1, 3, 8), torch.zeros(1, 3, 8))]
        [4, 2, 2]
    """

    def _make_maps(self, geometry: HeadGeometry) -> None:
        self.query = self._map(geometry.heads * geometry.qk_rank)
        self.key = self._map(geometry.kv_heads * geometry.qk_rank)
        self.value = self._map(geometry.kv_heads * geometry.v_rank)

    def forward(self, tokens: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Apply three linear maps and split the results into heads."""
        g = self.geometry
        return (
            split_heads(self.query(tokens), g.heads),
            split_heads(self.key(context), g.kv_heads),
            split_heads(self.value(context), g.kv_heads),
        )

    def head_weights(self) -> HeadWeights | None:
        """Return the weights, split into heads."""
        g = self.geometry
        return HeadWeights(
            self.query.weight.unflatten(0, (g.heads, g.qk_rank)),
            self.key.weight.unflatten(0, (g.kv_heads, g.qk_rank)),
        )


class FullProjection(GroupedProjection):
    """Give every head its own queries, keys and values.

    Example:
        >>> projection = FullProjection(HeadGeometry.free(8, heads=3, rank=5))
        >>> projection(torch.zeros(1, 2, 8), torch.zeros(1, 2, 8))[0].shape
        torch.Size([1, 3, 2, 5])
    """

    def _make_maps(self, geometry: HeadGeometry) -> None:
        refuse_shared_heads(geometry, "a full projection")
        super()._make_maps(geometry)


class LatentProjection(Projection):
    """Make keys and values, and optionally queries, from one compressed vector per token.

    The rotary part of the key comes straight from the token and is shared by all heads.

    Args:
        geometry: Width, heads, ranks and latents.
        biases: "none"; "qkv" and "all" add biases to the maps that read tokens, as in DeepSeek.
        initialisation: The rule for the initial weights; ``FanIn()`` by default.
        norm: "rms" normalises the compressed vectors, as in DeepSeek-V2 and V3.

    Example:
        >>> from headwise.attention import LatentGeometry
        >>> geometry = LatentGeometry(64, 4, 4, 24, 16, kv_latent=32, q_latent=None, rope_rank=8)
        >>> LatentProjection(geometry)(torch.zeros(1, 5, 64), torch.zeros(1, 5, 64))[0].shape
        torch.Size([1, 4, 5, 24])
    """

    def __init__(
        self,
        geometry: LatentGeometry,
        biases: Biases = "none",
        initialisation: Initialisation | None = None,
        norm: Literal["none", "rms"] = "rms",
    ) -> None:
        # Before the constructor of the base, which makes the maps from them.
        self.latent_geometry = geometry
        self.norm: Literal["none", "rms"] = norm
        super().__init__(geometry, biases, initialisation)

    def _make_maps(self, geometry: HeadGeometry) -> None:
        geometry, norm = self.latent_geometry, self.norm
        queries = geometry.heads * geometry.qk_rank
        expansion = geometry.heads * (geometry.content_rank + geometry.v_rank)
        self.key_value_down = self._map(geometry.kv_latent + geometry.rope_rank)
        self.key_value_norm = _norm(norm, geometry.kv_latent)
        self.key_value_up = empty_linear(geometry.kv_latent, expansion, biased=False)
        if geometry.q_latent is None:
            self.query = self._map(queries)
        else:
            self.query_down = self._map(geometry.q_latent)
            self.query_norm = _norm(norm, geometry.q_latent)
            self.query = empty_linear(geometry.q_latent, queries, biased=False)

    def forward(self, tokens: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compress, normalise and expand."""
        g = self.latent_geometry
        latent, rotary = self.key_value_down(context).split([g.kv_latent, g.rope_rank], dim=-1)
        expanded = self.key_value_up(self.key_value_norm(latent))
        content, values = split_heads(expanded, g.heads).split([g.content_rank, g.v_rank], dim=-1)
        shared = rotary.unsqueeze(1).expand(-1, g.heads, -1, -1)
        keys = torch.cat([content, shared], dim=-1)
        return split_heads(self._queries(tokens), g.heads), keys, values

    def _queries(self, tokens: Tensor) -> Tensor:
        if self.latent_geometry.q_latent is None:
            return self.query(tokens)
        return self.query(self.query_norm(self.query_down(tokens)))

    def head_weights(self) -> HeadWeights | None:
        """Return products of compressions and expansions, or None if a norm stands between them."""
        if not isinstance(self.key_value_norm, nn.Identity):
            return None
        g = self.latent_geometry
        down, rotary = self.key_value_down.weight.split([g.kv_latent, g.rope_rank])
        up = self.key_value_up.weight.unflatten(0, (g.heads, -1))[:, : g.content_rank]
        shared = rotary.expand(g.heads, -1, -1)
        query = self.query.weight if g.q_latent is None else self._whole_query()
        return HeadWeights(
            query.unflatten(0, (g.heads, g.qk_rank)), torch.cat([up @ down, shared], dim=1)
        )

    def _whole_query(self) -> Tensor:
        return self.query.weight @ self.query_down.weight


class KeyProjection(Projection):
    """Make keys and values per head; the query is the whole token, as generalized heads need it.

    Example:
        >>> projection = KeyProjection(HeadGeometry.free(8, heads=3, rank=2))
        >>> projection(torch.zeros(1, 5, 8), torch.zeros(1, 5, 8))[0].shape
        torch.Size([1, 1, 5, 8])
    """

    def _make_maps(self, geometry: HeadGeometry) -> None:
        refuse_shared_heads(geometry, "a map that reads the token")
        self.key = self._map(geometry.heads * geometry.qk_rank)
        self.value = self._map(geometry.heads * geometry.v_rank)

    def forward(self, tokens: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the tokens, and the context split into heads."""
        heads = self.geometry.heads
        keys, values = self.key(context), self.value(context)
        return tokens.unsqueeze(1), split_heads(keys, heads), split_heads(values, heads)


def refuse_shared_heads(geometry: HeadGeometry, what: str) -> None:
    """Raise if the geometry has fewer key-value heads than heads."""
    if geometry.kv_heads != geometry.heads:
        raise BadInputError(
            f"{what} needs keys and values for each of {geometry.heads} heads, "
            f"got kv_heads={geometry.kv_heads}",
            hint=f"use gqa (GroupedProjection), or geometry.grouped({geometry.heads})",
        )


def split_heads(flat: Float[Tensor, "b n hr"], heads: int) -> Float[Tensor, "b h n r"]:
    """Split the last axis into heads and move the heads forward, without a copy."""
    return flat.unflatten(-1, (heads, -1)).transpose(1, 2)


def _norm(kind: Literal["none", "rms"], width: int) -> nn.Module:
    if kind == "none":
        return nn.Identity()
    return nn.RMSNorm(width, eps=1e-6)
