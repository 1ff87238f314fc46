"""What a geometry costs, and how well it can look up single tokens."""

from __future__ import annotations

from dataclasses import dataclass

from headwise.advice.question import CACHE_NUMBER
from headwise.advice.rule import whole_dimension
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.theory.harmonics import error_lower_bound

#: A lower bound on the lookup error below this says nothing.
NEGLIGIBLE = 0.0005


@dataclass(frozen=True)
class Costs:
    """Parameters of one layer without biases, FLOPs per token, KV cache bytes per token.

    >>> Costs.of(HeadGeometry.standard(64, heads=4), length=16)
    Costs(parameters=16384, flops_per_token=36864, cache_bytes_per_token=256)
    """

    parameters: int
    flops_per_token: int
    cache_bytes_per_token: int

    @classmethod
    def of(cls, geometry: HeadGeometry, length: int) -> Costs:
        """The costs at a context of ``length`` tokens, with a cache of 16-bit numbers."""
        return cls(
            geometry.parameters,
            geometry.flops_per_token(length),
            geometry.cache_bytes_per_token(CACHE_NUMBER),
        )

    def against(self, other: Costs) -> dict[str, float]:
        """Each cost as a share of another's."""
        return {name: own / getattr(other, name) for name, own in vars(self).items()}


def content_rank(geometry: HeadGeometry) -> int:
    """The rank with which queries and keys read content; this is what is shown and judged.

    It excludes a rotary part, which reads positions, and is at most what the latents pass on.

    >>> content_rank(LatentGeometry(64, 4, 4, 48, 32, kv_latent=24, q_latent=None, rope_rank=16))
    24
    """
    if not isinstance(geometry, LatentGeometry):
        return geometry.qk_rank
    return min(geometry.content_rank, geometry.kv_latent, geometry.q_latent or geometry.width)


def rotary_rank(geometry: HeadGeometry) -> int:
    """Query-key dimensions that carry rotary positions alone."""
    return geometry.rope_rank if isinstance(geometry, LatentGeometry) else 0


def lookup_error(effective_dimension: float, rank: int, heads: int) -> float:
    """The least mean squared error of looking up the nearer of two isotropic tokens (0 … 0.5).

    The heads paper's lower bound, at the effective dimension. One head of that rank is exact.

    >>> lookup_error(63.7, 64, heads=1), round(lookup_error(64.0, 8, heads=8), 4)
    (0.0, 0.1768)
    """
    if is_exact(effective_dimension, rank):
        return 0.0
    return error_lower_bound(max(2, whole_dimension(effective_dimension)), rank, heads)


def is_exact(effective_dimension: float, rank: int) -> bool:
    """Whether one head of this rank can look up isotropic tokens of that dimension exactly."""
    return rank >= whole_dimension(effective_dimension)
