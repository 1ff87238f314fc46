"""Head dimensions 1 and 2, where the expected hardmax rank is known exactly.

On a line only the largest and the smallest key are ever picked. In the plane each key is picked
by an interval of directions, so going round the circle of sorted queries the picked key changes
once for every distinct key: E[rank] = n · P(neighbouring queries differ) + P(all agree). Two
queries at angle δ agree when one key is the largest of n bivariate normal scores in both
coordinates: a two-dimensional integral.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import special

from headwise.theory.picking import score_at
from headwise.theory.quadrature import rule_between, unit_rule
from headwise.theory.sizes import Whole, whole

#: Above this length neighbouring queries are so close that 1 − P(agree) drowns in rounding;
#: there every corner of the hull is hit but for a share of about (corners / n).
HULL_FROM = 2**16

# Nodes of the gap, of the norm and of the direction of the key that wins at both ends.
_GAPS, _NORMS, _DIRECTIONS = 32, 64, 64

# Gaps beyond this many mean gaps, and agreement of all queries beyond this length: below 1e-16.
_LONGEST_GAP, _NEVER_ALL_AGREE = 40.0, 64


def line_ratio(length: Whole) -> float:
    """E[rank]/n for d_h = 1: 2(1 − 2⁻ⁿ)/n.

    >>> line_ratio(2)
    0.75
    """
    n = whole("the length", length)
    return 2 * -math.expm1(-n * math.log(2)) / n


def plane_ratio(length: Whole) -> float:
    """E[rank]/n for d_h = 2.

    >>> round(plane_ratio(2), 12)
    0.75
    """
    n = whole("the length", length, 2)
    if n > HULL_FROM:
        return hull_corners(n) / n
    changes = sum(_mean_changes(n, *panel) for panel in _gap_panels(n))
    return (changes + _all_agree(n)) / n


def hull_corners(length: Whole) -> float:
    """The expected number of corners of the convex hull of n Gaussian points in the plane.

    Two points span an edge when all others lie on one side of their line, whose distance
    from the origin is N(0, ½): n(n−1) ∫ e^(−s²)/√π · Φ(s)^(n−2) ds.

    >>> round(hull_corners(3), 10)
    3.0
    """
    n = whole("the number of points", length, 2)
    low = float(score_at(60.0, torch.tensor(float(max(n - 2, 1)))))
    s, weight = rule_between(min(low, -7.0) if n < 100 else low, max(low, 0.0) + 9.0, 400)
    one_side = np.exp((n - 2) * special.log_ndtr(s) - s**2) / math.sqrt(math.pi)
    return n * (n - 1) * float((weight * one_side).sum())


def _gap_panels(n: int) -> list[tuple[float, float]]:
    """Where the gap between neighbouring queries can lie: (start, end) in [0, 2π]."""
    longest = _LONGEST_GAP * 2 * math.pi / n
    if longest < math.pi:
        return [(0.0, longest)]
    return [(0.0, math.pi), (math.pi, 2 * math.pi)]


def _mean_changes(n: int, low: float, high: float) -> float:
    """n · P(the gap lies here and its two ends pick different keys)."""
    gap, weight = rule_between(low, high, _GAPS)
    density = (n - 1) / (2 * math.pi) * (1 - gap / (2 * math.pi)) ** (n - 2)
    return n * float((weight * density * (1 - agreement(n, gap))).sum())


def _all_agree(n: int) -> float:
    """P(all queries pick one key): the arc that holds them all is its two ends' agreement."""
    if n > _NEVER_ALL_AGREE:
        return 0.0
    arc, weight = rule_between(0.0, math.pi, _GAPS)
    density = n * (n - 1) / (2 * math.pi) * (arc / (2 * math.pi)) ** (n - 2)
    return float((weight * density * agreement(n, arc)).sum())


def agreement(n: int, angle: np.ndarray) -> np.ndarray:
    """The probability that two queries at each ``angle`` pick the same of n planar keys.

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
    """Norms and directions (from the bisector) that a key winning at both ends may have."""
    lowest = float(score_at(45.0, torch.tensor(float(n))))
    norm, norm_weight = rule_between(max(lowest, 0.0), max(lowest, 0.0) + 8.0, _NORMS)
    norm = norm[None, :, None]
    reach = np.clip(np.arccos(np.clip(lowest / norm, -1, 1)) - half, 0, None)
    reach = np.where(lowest < 0, math.pi, reach)
    nodes, node_weight = (part.numpy() for part in unit_rule(_DIRECTIONS))
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
