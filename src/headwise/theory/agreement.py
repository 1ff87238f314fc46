"""Do two queries at a given angle pick the same key?

Along two directions at angle δ the scores of Gaussian keys are pairs of standard normals with
correlation cos δ, in any dimension. The queries agree when one key is the largest in both: n times
the integral of the pair's density against the chance that n−1 others lie below it twice.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from headwise.theory.picking import score_at
from headwise.theory.quadrature import rule_between, unit_rule

# Nodes of the size and of the direction of the pair of scores that wins at both ends.
_NORMS, _DIRECTIONS = 64, 64


def agreement(n: int, angle: np.ndarray) -> np.ndarray:
    """The probability that two queries at each ``angle`` pick the same of n Gaussian keys.

    >>> float(agreement(5, np.array([0.0]))[0].round(9))
    1.0
    """
    angle = np.minimum(angle, 2 * math.pi - angle)
    half = angle[:, None, None] / 2
    norm, weight, direction = _winners(n, half)
    first, second = norm * np.cos(direction - half), norm * np.cos(direction + half)
    others_lower = _both_below(first, second, angle[:, None, None]) ** (n - 1)
    density = norm * np.exp(-(norm**2) / 2) / (2 * math.pi)
    return n * (weight * density * others_lower).sum((1, 2))


def _winners(n: int, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sizes and directions (from the bisector) that a pair winning at both ends may have."""
    lowest = float(score_at(45.0, n))
    norm, norm_weight = rule_between(max(lowest, 0.0), max(lowest, 0.0) + 8.0, _NORMS)
    norm = norm[None, :, None]
    reach = np.clip(np.arccos(np.clip(lowest / norm, -1, 1)) - half, 0, None)
    reach = np.where(lowest < 0, math.pi, reach)
    nodes, node_weight = unit_rule(_DIRECTIONS)
    # The two halves of the arc mirror each other, so one half is integrated and doubled.
    weight = 2 * norm_weight[None, :, None] * reach * node_weight
    return norm, weight, reach * nodes


def _both_below(first: np.ndarray, second: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """P(A ≤ first, B ≤ second) for standard normals with correlation cos(angle), by Owen's T."""
    cosine, sine = np.cos(angle), np.sin(angle)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope_first = (second - cosine * first) / (first * sine)
        slope_second = (first - cosine * second) / (second * sine)
    apart = np.where(first * second < 0, 0.5, 0.0)
    value = (special.ndtr(first) + special.ndtr(second)) / 2 - apart
    value -= special.owens_t(first, slope_first) + special.owens_t(second, slope_second)
    same = np.abs(sine) < 1e-300
    return np.where(same & (cosine > 0), special.ndtr(np.minimum(first, second)), value)
