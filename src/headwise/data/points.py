"""Where the points of a neighbour task lie on the unit sphere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from scipy.optimize import brentq
from torch import Tensor
from torch.nn.functional import normalize

from headwise.errors import BadInputError


@dataclass(frozen=True)
class Uniform:
    """Every direction alike.

    >>> Uniform().place(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """

    def place(self, noise: Tensor) -> Tensor:
        """Points on the sphere from N(0, I) noise."""
        return normalize(noise, dim=-1)


@dataclass(frozen=True)
class Planted:
    """Points with most of their variance in few directions: covariance diag(1, ρ, ρ², …).

    ρ is chosen for the given effective dimension: the exponential of the entropy of the normalised
    eigenvalues. Points are normalised afterwards.

    Args:
        effective_dimension: A number between 1 and the width.

    Example:
        >>> Planted(effective_dimension=4.0).decay(32) < Planted(effective_dimension=8.0).decay(32)
        True
    """

    effective_dimension: float | int

    def decay(self, width: int) -> float:
        """ρ for points of this width."""
        return _decay(self.effective_dimension, width)

    def place(self, noise: Tensor) -> Tensor:
        """Points on the sphere from N(0, I) noise."""
        width = noise.shape[-1]
        power = torch.arange(width, device=noise.device, dtype=noise.dtype)
        return normalize(noise * torch.exp(0.5 * math.log(self.decay(width)) * power), dim=-1)


Points = Uniform | Planted

#: The heads paper's points.
UNIFORM = Uniform()


def effective_dimension(eigenvalues: list[float]) -> float:
    """Return exp of the entropy of the eigenvalues, normalised to sum to one.

    Args:
        eigenvalues: Numbers of at least 0.

    Returns:
        A number between 1 and the number of eigenvalues.

    Example:
        >>> round(effective_dimension([1.0, 1.0, 1.0]), 6)
        3.0
    """
    total = sum(eigenvalues)
    shares = [value / total for value in eigenvalues if value > 0]
    return math.exp(-sum(share * math.log(share) for share in shares))


@lru_cache
def _decay(wanted: float, width: int) -> float:
    if not 1 < wanted < width:
        raise BadInputError(
            f"an effective dimension of {wanted:g} cannot be planted in width {width}",
            hint=f"pass a number between 1 and {width}, both excluded, or use Uniform()",
        )

    def excess(rho: float) -> float:
        return effective_dimension([rho**i for i in range(width)]) - wanted

    return brentq(excess, 1e-12, 1 - 1e-12, xtol=1e-14)  # pyright: ignore[reportReturnType]
