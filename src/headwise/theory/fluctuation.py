"""The law with its fluctuations: L(n, d_h) corrected for what Jensen's inequality throws away.

L puts the mean p(ρ) for the share P of queries that pick a key of norm ρ. P fluctuates with the
other keys. Its second moment is known: n·E[P²] is the chance that two random queries agree. If the
relative variance κ is the same at every norm and P given ρ is a beta variable, then
E(1−P)^n = B(a, b+n)/B(a, b), with a/(a+b) = p and variance κp². An estimate, not a bound: for
d_h ≥ 16 it is within 0.006 of simulation from n = 2 on, where L alone is up to 0.009 too high.
"""

from __future__ import annotations

import math

import numpy as np

from headwise.checks import whole
from headwise.theory.agreement import mean_agreement
from headwise.theory.law_formula import column_share
from headwise.theory.number_types import Whole
from headwise.theory.numerics import log_beta, rule_between
from headwise.theory.picking import key_norms

#: Above this length the correction is below 0.001 for d_h ≥ 16, and drowns in rounding.
NEGLIGIBLE_FROM = 2**16

# Half the window of the angle between two queries, in standard deviations 1/√d, and its nodes.
_DEVIATIONS, _ANGLES = 9.0, 24

# Relative variances below this change nothing that float64 could show.
_NO_FLUCTUATION = 1e-9


def corrected_law(length: Whole, head_dim: Whole) -> float:
    """E[rank]/n of a Gaussian head with d_h ≥ 2, to second order in the fluctuations."""
    n, d = whole("the length", length, 2), whole("the head dimension", head_dim, 2)
    if n > NEGLIGIBLE_FROM:
        return float(column_share(n, d))
    rule = key_norms(np.array([float(n)]), np.array([float(d)]))
    odds, weight = rule.odds[0], rule.weight[0]
    square = float((weight * odds**2).sum())
    spread = meeting_probability(n, d) / (n * square) - 1
    if spread < _NO_FLUCTUATION:
        return float(column_share(n, d))
    return float((weight * _used(odds, n, spread)).sum())


def meeting_probability(length: Whole, head_dim: Whole) -> float:
    """The chance that two independent queries pick the same of n Gaussian keys."""
    n, d = whole("the length", length, 2), whole("the head dimension", head_dim, 2)
    reach = min(math.pi / 2, _DEVIATIONS / math.sqrt(d))
    angle, weight = rule_between(math.pi / 2 - reach, math.pi / 2 + reach, _ANGLES)
    density = weight * np.sin(angle) ** (d - 2)
    return mean_agreement(n, angle, density / density.sum())


def _used(odds: np.ndarray, n: int, spread: float) -> np.ndarray:
    """1 − E(1−P)^n for P beta-distributed with mean ``odds`` and relative variance ``spread``."""
    # A beta variable of mean p cannot have a relative variance above (1−p)/p.
    total = np.maximum((1 - odds) / (spread * odds) - 1, 1e-9)
    a, b = odds * total, (1 - odds) * total
    return -np.expm1(log_beta(a, b + n) - log_beta(a, b))
