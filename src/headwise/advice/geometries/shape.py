"""Build a geometry of a given rank and number of heads: full, grouped or latent."""

from __future__ import annotations

from headwise.advice.question import Constraints
from headwise.geometry import HeadGeometry, LatentGeometry, divisors

#: The latent as a multiple of the content rank, as in DeepSeek-V3 (512 and 128). The rotary part
#: is half the content rank (64 and 128).
LATENT_RANKS = 4


def shaped(
    width: int, heads: int, rank: int, values: int, constraints: Constraints
) -> HeadGeometry:
    """A geometry of the kind asked for: full, grouped, or latent as in DeepSeek-V3.

    >>> shaped(64, 8, 4, 4, Constraints(kind="gqa")).kv_heads
    2
    >>> shaped(64, 8, 4, 4, Constraints(kind="mla")).kv_latent
    16
    """
    if constraints.kind == "mla":
        return _latent(width, heads, rank, values, constraints.latent)
    plain = HeadGeometry(width, heads, heads, rank, values)
    if constraints.kind != "gqa" or heads == 1:
        return plain
    most = max(1, heads // constraints.group)
    return plain.grouped(max(k for k in divisors(heads) if k <= most))


def _latent(
    width: int, heads: int, rank: int, values: int, like: LatentGeometry | None
) -> LatentGeometry:
    """The latents and the rotary part of ``like``, widened only where the rank needs it."""
    if like is None:
        rope = 2 * max(1, rank // 4)
        latent = min(width, LATENT_RANKS * rank)
        return LatentGeometry(width, heads, heads, rank + rope, values, latent, None, rope)
    asking = None if like.q_latent is None else max(like.q_latent, rank)
    latent, rope = max(like.kv_latent, rank), like.rope_rank
    return LatentGeometry(width, heads, heads, rank + rope, values, latent, asking, rope)
