"""Logarithms of beta functions and binomials that stay exact when arguments are huge or far apart.

Differences of log-gammas lose all digits at a = 10^15, b = 3; here the large parts cancel on
paper (Stirling's form) and only the small remainders are computed.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

#: One real number or an array of them.
Numbers = int | float | np.floating | np.ndarray

# Above this the asymptotic series of the remainder, cut after four terms, is exact in float64.
_SERIES_FROM = 20.0


def log_beta(a: Numbers, b: Numbers) -> np.ndarray:
    """log B(a, b) = log Γ(a)Γ(b)/Γ(a+b) for positive arguments.

    >>> round(float(log_beta(2.0, 3.0)), 12) == round(math.log(1 / 12), 12)
    True
    """
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    powers = -a * np.log1p(b / a) - b * np.log1p(a / b)
    # √(2π(a+b)/(ab)), arranged so that a·b cannot overflow.
    scale = 0.5 * (math.log(2 * math.pi) + np.log1p(a / b) - np.log(a))
    return np.asarray(powers + scale + _remainder(a) + _remainder(b) - _remainder(a + b))


def log_binomial(more: Numbers, chosen: Numbers) -> np.ndarray:
    """log C(more + chosen, chosen).

    >>> round(float(np.exp(log_binomial(3, 2))), 9)
    10.0
    """
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
