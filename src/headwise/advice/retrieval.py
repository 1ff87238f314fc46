"""The heads paper's price of low rank: the least error of looking up the nearer of two tokens."""

from __future__ import annotations

import math

from headwise.theory.harmonics import error_lower_bound


def retrieval_floor(effective_dimension: float, rank: int, heads: int) -> float:
    """The least mean squared error of ``heads`` rank-r heads on isotropic tokens (0 … 0.5).

    Their dimension is taken to be the effective one. At that rank one head is exact.

    >>> retrieval_floor(63.7, 64, heads=1), round(retrieval_floor(64.0, 8, heads=8), 4)
    (0.0, 0.1768)
    """
    dimension = max(1, math.ceil(effective_dimension - 0.05))
    if rank >= dimension:
        return 0.0
    return error_lower_bound(max(2, dimension), rank, heads)
