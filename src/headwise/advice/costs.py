"""What a geometry costs: parameters, work and cache per token."""

from __future__ import annotations

from dataclasses import dataclass

from headwise.advice.question import CACHE_NUMBER
from headwise.geometry import HeadGeometry


@dataclass(frozen=True)
class Costs:
    """Parameters of one layer without biases, FLOPs per token, cache bytes per token.

    >>> Costs.of(HeadGeometry.standard(64, heads=4), length=16)
    Costs(parameters=16384, flops_per_token=36864, cache_bytes_per_token=256)
    """

    parameters: int
    flops_per_token: int
    cache_bytes_per_token: int

    @classmethod
    def of(cls, geometry: HeadGeometry, length: int) -> Costs:
        """The costs at a context of ``length`` tokens, cached in 16-bit numbers."""
        return cls(
            geometry.parameters,
            geometry.flops_per_token(length),
            geometry.cache_bytes_per_token(CACHE_NUMBER),
        )

    def against(self, other: Costs) -> dict[str, float]:
        """Each cost as a share of another's.

        >>> Costs(10, 20, 30).against(Costs(20, 20, 60))["parameters"]
        0.5
        """
        return {
            "parameters": self.parameters / other.parameters,
            "flops_per_token": self.flops_per_token / other.flops_per_token,
            "cache_bytes_per_token": self.cache_bytes_per_token / other.cache_bytes_per_token,
        }
