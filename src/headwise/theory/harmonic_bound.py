"""The price of low rank: least error of H rank-r heads on nearest neighbours in d dimensions.

The target is the nearer of two orthonormal x₁, x₂ to y. Along (x₁−x₂)/√2 it is sgn(xᵀy), whose
degree-ℓ part (ℓ odd) has N(d, ℓ) dimensions, each of weight λ_ℓ². A rank-r head reaches at most
M(r, ℓ) of them, so H heads leave

    error ≥ ½ Σ_{ℓ odd} λ_ℓ² max(0, N(d, ℓ) − H·M(r, ℓ)).

Degrees above a few thousand are integrated instead of summed, so nothing is cut off: a truncated
sum loses a slow tail and understates the heads that are needed.
"""

from __future__ import annotations

import bisect
import itertools
import math
from enum import Enum
from functools import lru_cache
from numbers import Real as RealNumber

import numpy as np

from headwise.checks import whole
from headwise.errors import ParameterError, TooLargeError
from headwise.theory.number_types import Real, Whole
from headwise.theory.numerics import Numbers, crossing, log_beta, log_binomial, rule_between

MAX_WIDTH = 10**6

#: Odd degrees that are summed one by one; the rest is integrated.
_SUMMED = 4096

# The integral over log ℓ beyond its start, in panels that shrink towards it: the integrand may
# turn on sharply there, and falls off like 1/ℓ.
_PANELS = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 4.0, 12.0, 40.0)

# log ℓ beyond which float64 cannot go; what is left over there is below 1e-250.
_LAST_LOG_DEGREE = 600.0


class Values(Enum):
    """Which value matrices a head may have.

    >>> Values("identity") is Values.IDENTITY
    True
    """

    ANY = "any"
    """V of any form and rank."""
    IDENTITY = "identity"
    """V = a·I, a multiple of the identity; here the bound is tight for generic heads."""


def log_dimension(width: Whole, degree: Numbers) -> np.ndarray:
    """log N(d, ℓ): the dimension of the harmonics of degree ℓ ≥ 1 on the sphere in R^d."""
    d, degree = whole("the width", width, 2), np.asarray(degree, dtype=float)
    return np.asarray(np.log(2 + (d - 2) / degree) + log_binomial(d - 2, degree - 1))


def log_coefficient(width: Whole, degree: Numbers) -> np.ndarray:
    """log |λ_ℓ| for odd ℓ: what sgn(xᵀy) multiplies a harmonic of degree ℓ by."""
    d = whole("the width", width, 2)
    return np.asarray(log_beta(d / 2, np.asarray(degree, dtype=float) / 2) - math.log(math.pi))


def energies(width: Whole, count: Whole) -> np.ndarray:
    """N(d, ℓ) λ_ℓ² for ℓ = 1, 3, 5, …: the share of sgn in each odd degree; they sum to one."""
    degree = 2.0 * np.arange(whole("the number of degrees", count)) + 1
    return np.exp(_log_energy(whole("the width", width, 2), degree))


def log_reach(rank: Whole, degree: Numbers, values: Values = Values.ANY) -> np.ndarray:
    """log M(r, ℓ), before the cap at N(d, ℓ): how many harmonics of degree ℓ one head reaches."""
    r, degree = whole("the rank", rank), np.asarray(degree, dtype=float)
    plain = log_binomial(r - 1, degree)
    if values is Values.IDENTITY:
        return plain
    lower = np.where(degree >= 2, log_binomial(r - 1, np.maximum(degree - 2, 0)), -np.inf)
    return np.asarray(np.logaddexp(math.log(2) + plain, lower))


def error_lower_bound(
    width: Whole, rank: Whole, heads: Whole, values: Values = Values.ANY
) -> float:
    """The least mean squared error that ``heads`` heads of ``rank`` can have."""
    d, r = _width_and_rank(width, rank)
    return _left_over(d, r, values, math.log(whole("`heads`", heads))) / 2


def error_at(width: Whole, rank: Whole, log_heads: float, values: Values = Values.ANY) -> float:
    """The same bound at exp(``log_heads``) heads, which need not be whole nor fit in a float."""
    d, r = _width_and_rank(width, rank)
    return _left_over(d, r, values, log_heads) / 2


def heads_needed(
    width: Whole, rank: Whole, error: Real, values: Values = Values.ANY
) -> int | float:
    """Return the least number of heads whose lower bound does not exceed ``error``.

    Returns:
        An exact whole number up to 2⁵³, a float above.

    Raises:
        TooLargeError: If it is above 10³⁰⁰ (see ``log_heads_needed``).
    """
    d, r = _width_and_rank(width, rank)
    log_heads = log_heads_needed(width, rank, error, values)
    if log_heads > 300 * math.log(10):
        raise TooLargeError(
            f"error {error} at width {d} and rank {r} needs about "
            f"10^{log_heads / math.log(10):.0f} heads",
            hint="ask for a larger error or a larger rank",
        )
    if log_heads > 52 * math.log(2):
        return math.exp(log_heads)
    # The root is known to a relative 1e-12; settle the whole number by the bound itself.
    root = math.exp(log_heads)
    near = range(max(1, math.floor(root * (1 - 1e-9))), math.ceil(root * (1 + 1e-9)) + 1)
    enough = bisect.bisect_left(
        near, True, key=lambda heads: error_lower_bound(d, r, heads, values) <= error
    )
    return near[min(enough, len(near) - 1)]


def log_heads_needed(width: Whole, rank: Whole, error: Real, values: Values = Values.ANY) -> float:
    """The natural logarithm of the (real) number of heads at which the bound equals ``error``."""
    d, r = _width_and_rank(width, rank)
    if not isinstance(error, RealNumber) or not 0 < error <= 0.5:
        raise ParameterError(
            f"expected `error` above 0 and at most 0.5 (the error without heads), got {error!r}",
            hint="pass 0.1 for example",
        )

    def excess(log_heads: float) -> float:
        return _left_over(d, r, values, log_heads) / 2 - float(error)

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    while excess(high) > 0:
        high *= 2
    return crossing(excess, 0.0, high)


def _width_and_rank(width: Whole, rank: Whole) -> tuple[int, int]:
    d, r = whole("`width`", width, 2), whole("`rank`", rank)
    if d > MAX_WIDTH:
        raise ParameterError(
            f"expected `width` of at most {MAX_WIDTH:,}, got {d:,}", hint="pass a smaller one"
        )
    if r >= d:
        raise ParameterError(
            f"expected `rank` below the width {d}, got {r}",
            hint="pass a smaller one: a single head of full rank is exact",
        )
    return d, r


def _log_energy(d: int, degree: np.ndarray) -> np.ndarray:
    return log_dimension(d, degree) + 2 * log_coefficient(d, degree)


def _log_share(d: int, r: int, values: Values, degree: np.ndarray) -> np.ndarray:
    """log M/N: the share of a degree that one head reaches."""
    return np.minimum(log_reach(r, degree, values) - log_dimension(d, degree), 0.0)


@lru_cache(maxsize=64)
def _summed_degrees(d: int, r: int, values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Energies and log M/N of the degrees that are summed one by one."""
    degree = 2.0 * np.arange(_SUMMED) + 1
    return np.exp(_log_energy(d, degree)), _log_share(d, r, values, degree)


def _left_over(d: int, r: int, values: Values, log_heads: float) -> float:
    """The share of sgn that the heads cannot reach: Σ N λ² max(0, 1 − H·M/N)."""
    energy, log_share = _summed_degrees(d, r, values)
    summed = float((energy * _missed(log_share + log_heads)).sum())
    return summed + _tail_left_over(d, r, values, log_heads)


def _missed(log_reached: np.ndarray) -> np.ndarray:
    return -np.expm1(np.minimum(log_reached, 0.0))


def _tail_left_over(d: int, r: int, values: Values, log_heads: float) -> float:
    """The same over the odd degrees that were not summed: half an integral, by midpoints."""
    start = _first_missed(d, r, values, log_heads)
    total = 0.0
    if start >= _LAST_LOG_DEGREE:
        return total
    for low, high in itertools.pairwise(_PANELS):
        step, weight = rule_between(low, high, 16)
        degree = np.exp(start + step)
        missed = _missed(_log_share(d, r, values, degree) + log_heads)
        total += float((weight * degree * np.exp(_log_energy(d, degree)) * missed).sum()) / 2
    return total


def _first_missed(d: int, r: int, values: Values, log_heads: float) -> float:
    """log ℓ from which the heads no longer reach everything, or where the summing stopped."""

    def spare(log_degree: float) -> float:
        return float(_log_share(d, r, values, np.exp([log_degree]))[0]) + log_heads

    start = math.log(2 * _SUMMED)
    if spare(start) <= 0:
        return start
    if spare(_LAST_LOG_DEGREE) >= 0:
        return _LAST_LOG_DEGREE
    return crossing(spare, start, _LAST_LOG_DEGREE)
