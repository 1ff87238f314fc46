"""Head dimensions 1 and 2, where the expected hardmax rank is known exactly.

On a line only the largest and the smallest key are ever picked. In the plane each key is picked
by an interval of directions, so going round the circle of sorted queries the picked key changes
once for every distinct key: E[rank] = n · P(neighbouring queries differ) + P(all agree).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from headwise.checks import whole
from headwise.theory.agreement import agreement
from headwise.theory.number_types import Whole
from headwise.theory.numerics import rule_between
from headwise.theory.picking import score_at

#: Above this length neighbouring queries are so close that 1 − P(agree) drowns in rounding;
#: there every corner of the hull is hit but for a share of about (corners / n).
HULL_FROM = 2**16

# Nodes of the gap between neighbouring queries.
_GAPS = 32

# Gaps beyond this many mean gaps, and agreement of all queries beyond this length: below 1e-16.
_LONGEST_GAP, _NEVER_ALL_AGREE = 40.0, 64


def line_ratio(length: Whole) -> float:
    """E[rank]/n for d_h = 1: 2(1 − 2⁻ⁿ)/n."""
    n = whole("the length", length)
    return 2 * -math.expm1(-n * math.log(2)) / n


def plane_ratio(length: Whole) -> float:
    """E[rank]/n for d_h = 2."""
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
    low = float(score_at(60.0, max(n - 2, 1)))
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
