"""Ways to fill in the one layer: mha, gqa, mqa, mla, generalized.

Each takes a geometry, the biases ("none", "qkv" or "all"), the initialisation (``FanIn()``
unless given), and by name what ``Attention`` takes: position, weighting, temperature,
combination.
"""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from headwise.attention.geometry import HeadGeometry, LatentGeometry
from headwise.attention.initialisation import Initialisation
from headwise.attention.layer import Attention
from headwise.attention.positions import Rotary
from headwise.attention.projections import (
    Biases,
    FullProjection,
    GroupedProjection,
    KeyProjection,
    LatentProjection,
)
from headwise.attention.weighting import AnyMap
from headwise.errors import BadInputError


def mha(
    geometry: HeadGeometry,
    biases: Biases = "none",
    initialisation: Initialisation | None = None,
    **layer: Any,
) -> Attention:
    """Multi-head attention with any number of heads of any rank.

    >>> mha(HeadGeometry.free(64, heads=4096, rank=1))(torch.zeros(1, 16, 64)).shape
    torch.Size([1, 16, 64])
    """
    return Attention(FullProjection(geometry, biases, initialisation), **layer)


def gqa(
    geometry: HeadGeometry,
    biases: Biases = "none",
    initialisation: Initialisation | None = None,
    **layer: Any,
) -> Attention:
    """Grouped-query attention: key-value heads shared by groups of query heads.

    >>> gqa(HeadGeometry.standard(64, heads=8).grouped(2)).projection.key.weight.shape
    torch.Size([16, 64])
    """
    return Attention(GroupedProjection(geometry, biases, initialisation), **layer)


def mqa(
    geometry: HeadGeometry,
    biases: Biases = "none",
    initialisation: Initialisation | None = None,
    **layer: Any,
) -> Attention:
    """Multi-query attention: one key-value head for all, whatever the geometry says.

    >>> mqa(HeadGeometry.standard(64, heads=8)).geometry.kv_heads
    1
    """
    return gqa(geometry.grouped(1), biases, initialisation, **layer)


def mla(
    geometry: LatentGeometry,
    biases: Biases = "none",
    initialisation: Initialisation | None = None,
    norm: Literal["none", "rms"] = "rms",
    **layer: Any,
) -> Attention:
    """Multi-head latent attention; the rotary part turns unless a position rule is given.

    >>> geometry = LatentGeometry(64, 4, 4, 24, 16, kv_latent=32, q_latent=None, rope_rank=8)
    >>> mla(geometry)(torch.zeros(1, 5, 64)).shape
    torch.Size([1, 5, 64])
    """
    if not isinstance(geometry, LatentGeometry):
        raise BadInputError(
            f"mla needs a LatentGeometry, got {type(geometry).__name__}",
            hint="LatentGeometry(..., kv_latent=..., q_latent=..., rope_rank=...)",
        )
    if geometry.rope_rank:
        layer.setdefault("position", Rotary(geometry.rope_rank, pairs="adjacent"))
    return Attention(LatentProjection(geometry, biases, initialisation, norm), **layer)


def fitting(
    geometry: HeadGeometry,
    biases: Biases = "none",
    initialisation: Initialisation | None = None,
    **layer: Any,
) -> Attention:
    """The preset the geometry asks for: latent, grouped or full.

    >>> type(fitting(HeadGeometry.standard(64, heads=8).grouped(2)).projection).__name__
    'GroupedProjection'
    """
    if isinstance(geometry, LatentGeometry):
        return mla(geometry, biases, initialisation, **layer)
    preset = mha if geometry.kv_heads == geometry.heads else gqa
    return preset(geometry, biases, initialisation, **layer)


def generalized(
    geometry: HeadGeometry,
    phi: nn.Module,
    biases: Biases = "none",
    initialisation: Initialisation | None = None,
    **layer: Any,
) -> Attention:
    """The generalized rank-r head V_h X φ(K_hᵀX, y), φ any module that returns weights.

    φ gets keys (b, H, m, r) and tokens (b, n, d) and returns (b, H, n, m), rows on the simplex.

    >>> class Uniform(nn.Module):
    ...     def forward(self, keys, tokens):
    ...         b, h, m, _ = keys.shape
    ...         return torch.full((b, h, tokens.shape[1], m), 1 / m)
    >>> generalized(HeadGeometry.free(8, heads=2, rank=3), Uniform())(torch.ones(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """
    projection = KeyProjection(geometry, biases, initialisation)
    return Attention(projection, weighting=AnyMap(phi), **layer)
