"""How often is a key of norm ρ the arg-max of a random query, among n Gaussian keys?

A query at angle θ to the key sees it score ρ cos θ, and every other key score an independent
N(0, 1); so the key is picked with probability p(ρ) = E_θ Φ(ρ cos θ)^(n−1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from headwise.errors import InaccurateError
from headwise.shapes import Float
from headwise.theory.numerics import refinement, unit_rule

#: Nodes of the angle, of the norm where p is computed, and of the norm where it is used. The
#: last is finer: 1 − (1−p)^n has a knee at n·p = 1 that p itself has not.
ANGLES, COARSE_NORMS, NORMS = 48, 48, 512

#: n·E[p] must be 1, since some key is always picked; a rule that misses by more is refused.
CHECK = 1e-6

# Where integrands are cut, as −log of what is neglected there. The lower score cut is deep
# (doubly exponential decay makes it cheap) because tiny p still counts when n is 10^12.
_LOW_SCORE, _LOWEST_SCORE, _SMALL_ANGLE = 60.0, 80.0, 28.0
_TOP_SCORE, _TOP_NORM, _BOTTOM_NORM = 1e-12, 1e-13, 1e-16


@dataclass(frozen=True, eq=False)
class KeyNorms:
    """A rule for averages over a key's norm: E[f(ρ)] is the sum of weight · f(norm).

    ``odds`` is p at each norm: the probability that one query picks that key.
    """

    norm: Float[np.ndarray, "cells k"]
    weight: Float[np.ndarray, "cells k"]
    odds: Float[np.ndarray, "cells k"]

    def mean(self, values: Float[np.ndarray, "cells k"]) -> Float[np.ndarray, " cells"]:
        """The average over the key's norm of ``values`` given at the nodes."""
        return (self.weight * values).sum(-1)


def key_norms(n: Float[np.ndarray, " cells"], d: Float[np.ndarray, " cells"]) -> KeyNorms:
    """The rule for n keys in d dimensions, checked by n·E[p] = 1."""
    n, d = n[:, None], d[:, None]
    # Outside the windows, and on a line, infinities and 0/0 arise that are never used.
    with np.errstate(all="ignore"):
        low, high = _norm_window(n, d)
        coarse = low + (high - low) * unit_rule(COARSE_NORMS)[0]
        log_odds = np.log(odds(coarse, n, d)) @ refinement(COARSE_NORMS, NORMS)
        nodes, weights = unit_rule(NORMS)
        norm = low + (high - low) * nodes
        rule = KeyNorms(norm, norm_density(norm, d) * (high - low) * weights, np.exp(log_odds))
        _refuse_if_wrong(n[:, 0] * rule.mean(rule.odds), n[:, 0], d[:, 0])
    return rule


def odds(
    norm: Float[np.ndarray, "cells k"],
    n: Float[np.ndarray, "cells 1"],
    d: Float[np.ndarray, "cells 1"],
) -> Float[np.ndarray, "cells k"]:
    """p(ρ): the chance that one query picks a key of this norm among n keys in d dimensions."""
    on_a_line = (d == 1)[:, 0]
    if not on_a_line.any():
        return _odds_over_angles(norm, n, d)
    found = np.empty_like(norm)
    found[on_a_line] = _odds_on_a_line(norm[on_a_line], n[on_a_line])
    rest = ~on_a_line
    if rest.any():
        found[rest] = _odds_over_angles(norm[rest], n[rest], d[rest])
    return found


def score_at(minus_log: float, n: int | float | np.ndarray) -> np.ndarray:
    """The score s that the largest of n scores stays below with probability e^(−minus_log).

    >>> round(float(score_at(0.6931471805599453, 1.0)), 6)  # the median of one
    0.0
    """
    return np.asarray(special.ndtri_exp(-minus_log / np.asarray(n, dtype=float)))


def log_ndtr(score: np.ndarray) -> np.ndarray:
    """log Φ by erfc: fast, and exact enough above −6, where all the weight is."""
    return np.log1p(-0.5 * special.erfc(score * math.sqrt(0.5)))


def _odds_on_a_line(norm: np.ndarray, n: np.ndarray) -> np.ndarray:
    """d = 1: the query points along the key or against it."""
    along, against = np.exp((n - 1) * log_ndtr(norm)), np.exp((n - 1) * log_ndtr(-norm))
    return (along + against) / 2


def _odds_over_angles(norm: np.ndarray, n: np.ndarray, d: np.ndarray) -> np.ndarray:
    low, high = _angle_window(norm, n, d)
    nodes, weights = unit_rule(ANGLES)
    cosine = np.cos(low[..., None] + (high - low)[..., None] * nodes)
    others_lower = (n - 1)[..., None] * log_ndtr(norm[..., None] * cosine)
    angle_density = (d / 2 - 1)[..., None] * np.log1p(-np.square(cosine))
    total = (np.exp(others_lower + angle_density) * weights).sum(-1) * (high - low)
    log_constant = special.gammaln(d / 2) - special.gammaln((d - 1) / 2) - math.log(math.pi) / 2
    return total * np.exp(log_constant)


def _angle_window(norm: np.ndarray, n: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles outside which the integrand is negligible beside its largest value."""
    others = n - 1
    high = np.arccos((score_at(_LOWEST_SCORE, others) / norm).clip(-1, 1))
    typical = np.arccos((score_at(1.0, others) / norm).clip(-1, 1))
    # In the plane (d = 2) no angle is rare: the exponent becomes −∞ and the window opens to 0.
    rare = np.exp(-_SMALL_ANGLE / (d - 2).clip(min=1e-300))
    return np.arcsin(np.sin(typical) * rare), high


def _norm_window(n: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Norms outside which picked keys are negligible: ρ² is score² plus χ² of d−1 others."""
    others, with_others = d - 1, d > 1
    most = np.where(with_others, special.chdtri(others, _TOP_NORM), 0.0)
    least = np.where(with_others, 2 * special.gammaincinv(others / 2, _BOTTOM_NORM), 0.0)
    low = np.sqrt(score_at(_LOW_SCORE, n).clip(min=0) ** 2 + least)
    return low, np.sqrt(score_at(_TOP_SCORE, n) ** 2 + most)


def norm_density(norm: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The density of the χ law with d degrees of freedom."""
    log_constant = special.gammaln(d / 2) + (d / 2 - 1) * math.log(2)
    return np.exp((d - 1) * np.log(norm) - norm**2 / 2 - log_constant)


def _refuse_if_wrong(total: np.ndarray, n: np.ndarray, d: np.ndarray) -> None:
    off = np.nan_to_num(np.abs(total - 1), nan=math.inf)
    worst = int(off.argmax())
    if not off[worst] <= CHECK:
        raise InaccurateError(
            f"the quadrature at length {n[worst]:.0f}, head dimension {d[worst]:.0f} gives "
            f"n·E[p] = {total[worst]:.8f} instead of 1",
            hint="simulate this point with headwise.theory.montecarlo, and report it",
        )
