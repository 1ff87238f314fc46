"""Do two queries at a given angle pick the same key?

Along two directions at angle δ the scores of Gaussian keys are pairs of standard normals with
correlation cos δ, in any dimension. The queries agree when one key is the largest in both: n times
the integral of the pair's density against the chance that n−1 others lie below it twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from headwise.theory.numerics import rule_between, unit_rule
from headwise.theory.picking import score_at

# Nodes of the size and of the direction of the pair of scores that wins at both ends.
_NORMS, _DIRECTIONS = 64, 64

# Points below this share of the whole are left out of a mean over angles.
_NOTHING = 1e-13


@dataclass(frozen=True)
class _Arcs:
    """Pairs of scores that may win at both ends: by their size, over an arc of directions.

    ``half`` is half the angle between the queries, ``reach`` how far from the bisector the arc
    goes on either side, ``density`` the weighted density of the whole arc.
    """

    half: np.ndarray
    norm: np.ndarray
    reach: np.ndarray
    density: np.ndarray

    def chosen(self, kept: np.ndarray) -> _Arcs:
        """Some of the arcs, in a row."""
        parts = (self.half, self.norm, self.reach, self.density)
        return _Arcs(*(np.broadcast_to(part, kept.shape)[kept] for part in parts))

    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Both scores along each arc, and the weighted density there."""
        nodes, node_weight = unit_rule(_DIRECTIONS)
        half, direction = self.half[..., None], self.reach[..., None] * nodes
        norm = self.norm[..., None]
        first, second = norm * np.cos(direction - half), norm * np.cos(direction + half)
        return first, second, self.density[..., None] * node_weight


def agreement(n: int, angle: np.ndarray) -> np.ndarray:
    """The probability that two queries at each ``angle`` pick the same of n Gaussian keys."""
    angle = np.minimum(angle, 2 * math.pi - angle)
    first, second, density = _arcs(n, angle).points()
    below = _both_below(first, second, angle[:, None, None])
    return n * (density * below ** (n - 1)).sum((1, 2))


def mean_agreement(n: int, angle: np.ndarray, weight: np.ndarray) -> float:
    """The weighted sum of the agreement over angles, without the points that add nothing to it.

    Being below twice is no likelier than being below the lower score, and that is highest on
    the bisector. Where even this leaves nothing, the costly part is spared.

    >>> right = np.array([math.pi / 2])
    >>> round(mean_agreement(2, right, np.ones(1)), 9)
    0.5
    """
    arcs = _arcs(n, np.minimum(angle, 2 * math.pi - angle))
    density = arcs.density * weight[:, None]
    most = density * special.ndtr(arcs.norm * np.cos(arcs.half)) ** (n - 1)
    # The sum of these is far above the whole, hence the smaller share.
    arcs = replace(arcs, density=density).chosen(most > 1e-3 * _NOTHING * most.sum())
    first, second, density = arcs.points()
    most = density * special.ndtr(np.minimum(first, second)) ** (n - 1)
    kept = most > _NOTHING * most.sum()
    angles = np.broadcast_to(2 * arcs.half[:, None], kept.shape)[kept]
    below = _both_below(first[kept], second[kept], angles)
    return n * float((density[kept] * below ** (n - 1)).sum())


def _arcs(n: int, angle: np.ndarray) -> _Arcs:
    """Sizes and directions (from the bisector) that a pair winning at both ends may have."""
    half, lowest = angle[:, None] / 2, float(score_at(45.0, n))
    norm, norm_weight = rule_between(max(lowest, 0.0), max(lowest, 0.0) + 8.0, _NORMS)
    reach = np.clip(np.arccos(np.clip(lowest / norm, -1, 1)) - half, 0, None)
    reach = np.where(lowest < 0, math.pi, reach)
    # The two halves of the arc mirror each other, so one half is integrated and doubled.
    density = 2 * norm_weight * reach * norm * np.exp(-(norm**2) / 2) / (2 * math.pi)
    return _Arcs(half, norm, reach, density)


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
