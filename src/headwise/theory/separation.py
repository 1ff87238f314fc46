"""The heads paper's separation theorems, with their universal constants as arguments.

The theorems say how fast the number of heads must grow. Their constants are not published, so they
give no numbers by themselves; ``harmonic_bound`` does, and ``statements`` compares the two.

The second half of this file is the biased target f*. Head j of ``square_wave`` returns x₁ when
x₁ᵀy + b_j > x₂ᵀy and x₂ otherwise, and f* adds these answers with alternating signs. Along
x = (x₁ − x₂)/√2 it is a square wave of xᵀy, so its energy lies in high degrees, where a head of
low rank reaches little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from headwise.checks import positive, whole
from headwise.errors import BadInputError
from headwise.theory.harmonic_bound import Values, log_dimension, log_reach
from headwise.theory.number_types import Real, Whole
from headwise.theory.numerics import crossing

#: The error that the theorem on biased neighbours names.
BIASED_ERROR = 1 / 40

# Degrees summed for the square wave, nodes of |y|, and how far its biases reach in standard
# deviations of (x₁ − x₂)ᵀy.
_DEGREES, _NORMS, _REACH = 400, 24, 4.0


@dataclass(frozen=True)
class Separation:
    """Layers with at most exp(``log_heads``) heads have at least ``error``."""

    error: float
    log_heads: float


def high_accuracy_regime(
    width: Whole, rank: Whole, small: Real = 1.0, scale: Real = 1.0
) -> Separation:
    """Theorem 2, first regime: H ≤ C·2^(d − (r+1)·log₂(2d/r)) heads, r ≤ d−3, leave ε ≤ c/(d+1)."""
    d, r = whole("the width", width), whole("the rank", rank)
    if r > d - 3:
        raise BadInputError(
            f"expected rank ≤ width − 3, got rank {r} and width {d}",
            hint="take a smaller rank, or use bound, which holds for every rank",
        )
    bits = d - (r + 1) * math.log2(2 * d / r)
    error = positive("the constant c", small) / (d + 1)
    return Separation(error, bits * math.log(2) + math.log(positive("the constant C", scale)))


def high_dimensional_regime(
    width: Whole, rank: Whole, error: Real, exponent: Real = 1.0, floor: Real = 1.0
) -> Separation:
    """Theorem 2, second regime: H ≤ ½·(d / (2e(r + C'/ε)))^(C'/ε) heads leave error ε.

    It needs d ≥ 5 and ε ≥ c'/(d − 2e²r); ``exponent`` is C' and ``floor`` is c'.
    """
    d, r, epsilon = whole("the width", width, 5), whole("the rank", rank), float(error)
    room = d - 2 * math.e**2 * r
    if room <= 0 or epsilon < positive("the constant c'", floor) / room:
        raise BadInputError(
            f"expected an error of at least c'/(d − 2e²r), got {error} at width {d} and rank {r}",
            hint="take a larger error, a larger width or a smaller rank",
        )
    power = positive("the constant C'", exponent) / epsilon
    return Separation(epsilon, math.log(0.5) + power * math.log(d / (2 * math.e * (r + power))))


def square_wave(width: Whole) -> np.ndarray:
    """The biases b_j of f*: an odd number, evenly spaced, about 2.5·√d of them.

    The spacing is one half wave of frequency √d, measured in standard deviations of
    (x₁ − x₂)ᵀy with y ~ N(0, I/√d).
    """
    d = whole("the width", width, 2)
    deviation, half_waves = math.sqrt(2) * d**-0.25, math.ceil(_REACH * math.sqrt(d) / math.pi)
    return np.arange(-half_waves, half_waves + 1) * math.pi / math.sqrt(d) * deviation


def biased_error_lower_bound(
    width: Whole, rank: Whole, log_heads: float, values: Values = Values.ANY
) -> float:
    """The least error of exp(``log_heads``) rank-r heads on f*, whatever the size of V_h.

    ½ Σ_ℓ E[λ_ℓ²] max(0, N − H·M), the bound of ``harmonic_bound`` with the coefficients of the
    square wave, averaged over |y|. It is ours: the published theorem depends on max‖V_h‖.
    """
    d = whole("the width", width, 3)
    energy, degree = wave_energies(d), np.arange(1.0, _DEGREES + 1)
    log_share = log_heads + log_reach(rank, degree, values) - log_dimension(d, degree)
    share = np.exp(np.minimum(log_share, 0.0))
    # One head reaches the mean; degrees that were not summed are reached by the last share.
    unseen = max(0.0, 1 - energy.sum())
    return (1 - energy[0] - float((energy[1:] * share).sum()) - unseen * share[-1]) / 2


def log_heads_for_biased_error(
    width: Whole, rank: Whole, error: Real = BIASED_ERROR, values: Values = Values.ANY
) -> float:
    """The natural logarithm of the number of heads at which that bound equals ``error``."""

    def excess(log_heads: float) -> float:
        return biased_error_lower_bound(width, rank, log_heads, values) - float(error)

    high = 1.0
    while excess(high) > 0:
        high *= 2
    return crossing(excess, 0.0, high) if excess(0.0) > 0 else 0.0


@lru_cache(maxsize=16)
def wave_energies(width: int) -> np.ndarray:
    """N·E[λ_ℓ²] of f* along x for ℓ = 0, 1, 2, …: the share of its energy in each degree."""
    middle = (np.arange(_NORMS) + 0.5) / _NORMS
    norms = np.sqrt(special.chdtri(width, 1 - middle) / math.sqrt(width))
    biases = square_wave(width)
    signs = np.where(np.arange(len(biases)) % 2, -1.0, 1.0)
    found = [_energies_at(width, biases / (math.sqrt(2) * norm), signs) for norm in norms]
    return np.mean(found, axis=0)


def _energies_at(d: int, steps: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """N·λ_ℓ² of Σ a_j sgn(u + s_j) on the sphere in R^d, u the cosine between x and y.

    ∫_s^1 P_ℓ w = (1−s²)^((d−1)/2) P'_{ℓ−1}(s)/(d−1), w = (1−u²)^((d−3)/2), with P' the
    Legendre polynomial of the sphere in R^(d+2).
    """
    inside = np.abs(steps) < 1
    mean = float((signs[~inside] * np.sign(steps[~inside])).sum())
    s, a = -steps[inside], signs[inside]
    mean += float((a * -np.sign(s) * special.betainc(0.5, (d - 1) / 2, s**2)).sum())
    area = special.beta(0.5, (d - 1) / 2)
    scaled = 2 * a * (1 - s**2) ** ((d - 1) / 2) / ((d - 1) * area)
    found, before, polynomial = [mean**2], np.zeros_like(s), np.ones_like(s)
    for ell in range(1, _DEGREES + 1):
        coefficient = float((scaled * polynomial).sum())
        found.append(math.exp(float(log_dimension(d, ell))) * coefficient**2)
        k = ell - 1
        after = ((2 * k + d) * s * polynomial - k * before) / (k + d)
        before, polynomial = polynomial, after
    return np.array(found)
