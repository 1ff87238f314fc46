"""What parameters and FLOPs do not show of the time that a geometry takes."""

from __future__ import annotations

from headwise.advice.question import Constraints
from headwise.advice.shaping import content_rank
from headwise.geometry import HeadGeometry

#: Fused attention kernels take head dimensions in multiples of this.
STEP = 8

#: From more heads than this on, their maps are worth a word.
MANY_HEADS = 64


def speed_finding(geometry: HeadGeometry, constraints: Constraints) -> list[str]:
    """Said where kernels would pad the head dimension, or there are very many heads.

    >>> speed_finding(HeadGeometry.standard(512, heads=8), Constraints())
    []
    """
    padded = [f"{rank}" for rank in _head_dims(geometry) if rank % STEP]
    many = geometry.heads > MANY_HEADS
    if not padded and not many:
        return []
    words = "Speed: parameters and FLOPs do not tell the time it takes."
    if padded:
        words += (
            " Fused attention kernels such as FlashAttention take head dimensions in multiples of "
            f"{STEP} and pad others ({' and '.join(padded)} here)."
        )
    if many:
        words += f" Each of the {geometry.heads} heads has its own n × n map of the tokens."
    asked = " and ".join(_that_help(geometry, constraints))
    return [f"{words} Asking for {asked} would limit that." if asked else words]


def _head_dims(geometry: HeadGeometry) -> tuple[int, ...]:
    """Those of queries with keys and of values, once where they are equal."""
    return tuple(dict.fromkeys((geometry.qk_rank, geometry.v_rank)))


def _that_help(geometry: HeadGeometry, constraints: Constraints) -> list[str]:
    """The constraints that help here and were not already asked for."""
    rounds = content_rank(geometry) % STEP and constraints.rank is None and geometry.width >= STEP
    fixes = geometry.heads > MANY_HEADS and constraints.heads is None
    return [f"ranks in multiples of {STEP}"] * bool(rounds) + ["a set number of heads"] * fixes
