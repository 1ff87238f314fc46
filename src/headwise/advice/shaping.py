"""A geometry of a given rank and number of heads, in the kind of layer that is asked for."""

from __future__ import annotations

from headwise.advice.question import Constraints
from headwise.geometry import HeadGeometry, LatentGeometry, divisors

#: The latent as a multiple of a head's content rank, as in DeepSeek-V3 (512 and 128). Its rotary
#: part is half the content rank (64 and 128).
LATENT_RANKS = 4


def content_rank(geometry: HeadGeometry) -> int:
    """The rank of the query-key form that reads content: what is shown and what is judged.

    Without a rotary part, which reads positions, and no more than the latents let through.

    >>> content_rank(HeadGeometry.standard(64, heads=4))
    16
    >>> content_rank(LatentGeometry(64, 4, 4, 48, 32, kv_latent=24, q_latent=None, rope_rank=16))
    24
    """
    if not isinstance(geometry, LatentGeometry):
        return geometry.qk_rank
    return min(geometry.content_rank, geometry.kv_latent, geometry.q_latent or geometry.width)


def shaped(
    width: int, heads: int, rank: int, values: int, constraints: Constraints
) -> HeadGeometry:
    """A geometry of the kind asked for: full, grouped, or latent as DeepSeek-V3 has it.

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
    """The latents and the rotary part of ``like``, widened only where the rank would not pass."""
    if like is None:
        rope = 2 * max(1, rank // 4)
        latent = min(width, LATENT_RANKS * rank)
        return LatentGeometry(width, heads, heads, rank + rope, values, latent, None, rope)
    asking = None if like.q_latent is None else max(like.q_latent, rank)
    latent, rope = max(like.kv_latent, rank), like.rope_rank
    return LatentGeometry(width, heads, heads, rank + rope, values, latent, asking, rope)
