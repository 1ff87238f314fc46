"""The heads paper's theorems as printed, their universal constants as arguments.

They say how fast the number of heads must grow, not how many: the constants are not known. For
numbers, use ``harmonics``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headwise.errors import BadInputError
from headwise.theory.sizes import Real, Whole, positive, whole


@dataclass(frozen=True)
class Separation:
    """Layers with fewer than exp(``log_heads``) heads have at least ``error``."""

    error: float
    log_heads: float


def theorem2_small_error(
    width: Whole, rank: Whole, small: Real = 1.0, scale: Real = 1.0
) -> Separation:
    """First regime: ε = c/(d+1) needs more than C·2^(d − (r+1)·log₂(2d/r)) heads, r ≤ d−3.

    >>> found = theorem2_small_error(64, 4)
    >>> round(found.error, 4), round(found.log_heads / math.log(2))
    (0.0154, 39)
    """
    d, r = whole("the width", width), whole("the rank", rank)
    if r > d - 3:
        raise BadInputError(
            f"the first regime needs rank ≤ width − 3, got rank {r} and width {d}",
            hint="take a smaller rank, or use error_lower_bound, which holds for every rank",
        )
    bits = d - (r + 1) * math.log2(2 * d / r)
    error = positive("the constant c", small) / (d + 1)
    return Separation(error, bits * math.log(2) + math.log(positive("the constant C", scale)))


def theorem2_large_error(
    width: Whole, rank: Whole, error: Real, exponent: Real = 1.0, floor: Real = 1.0
) -> Separation:
    """Second regime: error ε needs more than ½·(d / (2e(r + C'/ε)))^(C'/ε) heads.

    It holds for d ≥ 5 and ε ≥ c'/(d − 2e²r); ``exponent`` is C' and ``floor`` is c'.

    >>> theorem2_large_error(4096, 1, 0.1).log_heads > 0
    True
    """
    d, r, epsilon = whole("the width", width, 5), whole("the rank", rank), float(error)
    room = d - 2 * math.e**2 * r
    if room <= 0 or epsilon < positive("the constant c'", floor) / room:
        raise BadInputError(
            f"the second regime does not cover error {error} at width {d} and rank {r}",
            hint="take a larger error, a larger width or a smaller rank",
        )
    power = positive("the constant C'", exponent) / epsilon
    return Separation(epsilon, math.log(0.5) + power * math.log(d / (2 * math.e * (r + power))))


def theorem3_capacity(width: Whole, rank: Whole, base: Real = 2.0, scale: Real = 1.0) -> Separation:
    """Biased neighbours: error above 1/40 unless H·max‖V_h‖ reaches C·c^(d−r).

    ``log_heads`` is the logarithm of H·max‖V_h‖; ``base`` is c > 1 and ``scale`` is C.

    >>> round(theorem3_capacity(20, 10).log_heads / math.log(2))
    10
    """
    d, r = whole("the width", width), whole("the rank", rank)
    if not base > 1 or r >= d:
        raise BadInputError(
            f"base {base} and rank {r} at width {d} say nothing",
            hint="pass a base above 1 and a rank below the width",
        )
    return Separation(1 / 40, (d - r) * math.log(base) + math.log(positive("C", scale)))
