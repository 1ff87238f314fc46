"""Quadrature, root finding and logarithms of beta functions that stay exact at any size.

Differences of log-gammas lose all digits at a = 10^15, b = 3. In ``log_beta`` the large parts
cancel on paper (Stirling's form) and only the small remainders are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import special

from headwise.shapes import Float

#: One real number or an array of them.
Numbers = int | float | np.floating | np.ndarray

# Above this the asymptotic series of the remainder, cut after four terms, is exact in float64.
_SERIES_FROM = 20.0


@cache
def unit_rule(points: int) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Nodes and weights on [0, 1], exact for polynomials of degree 2·points − 1."""
    # Newton's method from Tricomi's first guess. The eigenvalue problem that libraries solve
    # instead starts threads, which on a busy machine take seconds to get their turn.
    number = np.arange(1, points + 1)
    guess = np.cos(np.pi * (number - 0.25) / (points + 0.5))
    nodes = (1 - (1 - 1 / points) / (8 * points**2)) * guess
    for _ in range(6):
        values, slopes = _legendre(points, nodes)
        nodes = nodes - values / slopes
    nodes = (nodes - nodes[::-1]) / 2  # rounding must not break their symmetry
    slopes = _legendre(points, nodes)[1]
    weights = 2 / ((1 - nodes**2) * slopes**2)
    return (nodes[::-1] + 1) / 2, weights[::-1] / 2


def _legendre(degree: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The Legendre polynomial and its slope, by their recurrence."""
    before, value = np.ones_like(x), x
    for k in range(2, degree + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, degree * (before - x * value) / (1 - x**2)


def rule_between(low: float, high: float, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [low, high]."""
    nodes, weights = unit_rule(points)
    return low + (high - low) * nodes, (high - low) * weights


@cache
def refinement(coarse: int, fine: int) -> Float[np.ndarray, "coarse fine"]:
    """The matrix that takes values on one rule's nodes to values on a finer rule's nodes.

    >>> x, y = unit_rule(4)[0], unit_rule(9)[0]
    >>> np.allclose(x**3 @ refinement(4, 9), y**3)
    True
    """
    (x, weights), y = unit_rule(coarse), unit_rule(fine)[0]
    # The barycentric weights of Legendre nodes, up to a common factor.
    signs = (-1.0) ** np.arange(coarse)
    barycentric = signs * np.sqrt(x * (1 - x) * weights)
    distance = y[None, :] - x[:, None]
    met = distance == 0
    terms = barycentric[:, None] / np.where(met, 1.0, distance)
    terms = np.where(met.any(0), met, terms)
    return terms / terms.sum(0)


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero between ``low`` and ``high``, where the function has opposite signs."""
    from scipy import optimize  # a fifth of a second, needed by the inverse bounds alone

    found = optimize.root_scalar(function, bracket=(low, high), method="brentq", xtol=1e-15)
    return float(found.root)


def log_beta(a: Numbers, b: Numbers) -> np.ndarray:
    """log B(a, b) = log Γ(a)Γ(b)/Γ(a+b) for positive arguments."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    powers = -a * np.log1p(b / a) - b * np.log1p(a / b)
    # √(2π(a+b)/(ab)), arranged so that a·b cannot overflow.
    scale = 0.5 * (math.log(2 * math.pi) + np.log1p(a / b) - np.log(a))
    return np.asarray(powers + scale + _remainder(a) + _remainder(b) - _remainder(a + b))


def log_binomial(more: Numbers, chosen: Numbers) -> np.ndarray:
    """log C(more + chosen, chosen)."""
    more, chosen = np.asarray(more, dtype=float), np.asarray(chosen, dtype=float)
    return np.asarray(-log_beta(more + 1, chosen + 1) - np.log(more + chosen + 1))


def _remainder(x: Numbers) -> np.ndarray:
    """log Γ(x) − [(x − ½) log x − x + ½ log 2π]."""
    large = np.maximum(x, _SERIES_FROM)
    inverse = 1 / large
    square = inverse**2
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    small = np.minimum(x, _SERIES_FROM)
    stirling = (small - 0.5) * np.log(small) - small + 0.5 * math.log(2 * math.pi)
    return np.where(x >= _SERIES_FROM, series, special.gammaln(small) - stirling)
