"""Presets of the attention layer: mha, gqa, mqa, mla, generalized."""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

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
from headwise.geometry import HeadGeometry, LatentGeometry


def mha(
    geometry: HeadGeometry,
    biases: Biases = "none",
    initialisation: Initialisation | None = None,
    **layer: Any,
) -> Attention:
    """Make multi-head attention with any number of heads of any rank.

    Args:
        geometry: Width, heads and ranks.
        biases: "none", "qkv" or "all".
        initialisation: The rule for the initial weights; ``FanIn()`` by default.
        **layer: Other arguments of ``Attention``: position, weighting, temperature, ….

    Returns:
        An ``Attention`` module that maps tokens (b, n, width) to the same shape.

    Example:
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
    """Make grouped-query attention: groups of query heads share a key-value head.

    Args:
        geometry: Width, heads, key-value heads and ranks.
        biases: "none", "qkv" or "all".
        initialisation: The rule for the initial weights; ``FanIn()`` by default.
        **layer: Other arguments of ``Attention``: position, weighting, temperature, ….

    Returns:
        An ``Attention`` module that maps tokens (b, n, width) to the same shape.

    Example:
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
    """Make multi-query attention: all heads share one key-value head.

    Args:
        geometry: Width, heads and ranks; its ``kv_heads`` is replaced by 1.
        biases: "none", "qkv" or "all".
        initialisation: The rule for the initial weights; ``FanIn()`` by default.
        **layer: Other arguments of ``Attention``: position, weighting, temperature, ….

    Returns:
        An ``Attention`` module that maps tokens (b, n, width) to the same shape.

    Example:
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
    """Make multi-head latent attention.

    Args:
        geometry: Width, heads, ranks and latents.
        biases: "none", "qkv" or "all".
        initialisation: The rule for the initial weights; ``FanIn()`` by default.
        norm: "rms" normalises the latents, as in DeepSeek-V2 and V3; "none" does not.
        **layer: Other arguments of ``Attention``. Without ``position``, the rotary part rotates.

    Returns:
        An ``Attention`` module that maps tokens (b, n, width) to the same shape.

    Raises:
        BadInputError: If ``geometry`` is not a LatentGeometry.

    Example:
        >>> geometry = LatentGeometry(64, 4, 4, 24, 16, kv_latent=32, q_latent=None, rope_rank=8)
        >>> mla(geometry)(torch.zeros(1, 5, 64)).shape
        torch.Size([1, 5, 64])
    """
    if not isinstance(geometry, LatentGeometry):
        raise BadInputError(
            f"expected a LatentGeometry, got {type(geometry).__name__}",
            hint="pass LatentGeometry(..., kv_latent=..., q_latent=..., rope_rank=...)",
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
    """Make the layer that the geometry describes: latent, grouped or full.

    Args:
        geometry: Width, heads and ranks; for latent attention also the latents.
        biases: "none", "qkv" or "all".
        initialisation: The rule for the initial weights; ``FanIn()`` by default.
        **layer: Other arguments of ``Attention``: position, weighting, temperature, ….

    Returns:
        An ``Attention`` module that maps tokens (b, n, width) to the same shape.

    Example:
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
    """Make generalized rank-r heads V_h X φ(K_hᵀX, y), with any module as φ.

    Args:
        geometry: Width, heads and ranks.
        phi: The module: takes keys (b, H, m, r) and tokens (b, n, d), returns weights (b, H, n, m)
            whose rows are non-negative and sum to one.
        biases: "none", "qkv" or "all".
        initialisation: The rule for the initial weights; ``FanIn()`` by default.
        **layer: Other arguments of ``Attention``: position, temperature, combination, ….

    Returns:
        An ``Attention`` module that maps tokens (b, n, width) to the same shape.

    Example:
        >>> class Uniform(nn.Module):
        ...     def forward(self, keys, tokens):
        ...         b, h, m, _ = keys.shape
        ...         return torch.full((b, h, tokens.shape[1], m), 1 / m)
        >>> generalized(HeadGeometry.free(8, heads=2, rank=3), Uniform())(torch.ones(1, 5, 8)).shape
        torch.Size([1, 5, 8])
    """
    projection = KeyProjection(geometry, biases, initialisation)
    return Attention(projection, weighting=AnyMap(phi), **layer)
