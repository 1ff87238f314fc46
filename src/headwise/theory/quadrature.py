"""Gauss–Legendre rules on the unit interval, and interpolation between two of them."""

from __future__ import annotations

from functools import cache

import numpy as np

from headwise.shapes import Float


@cache
def unit_rule(points: int) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Nodes and weights on [0, 1], exact for polynomials of degree 2·points − 1.

    >>> x, w = unit_rule(3)
    >>> round(float((w * x**5).sum()), 12) == round(1 / 6, 12)
    True
    """
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
    """Nodes and weights on [low, high].

    >>> x, w = rule_between(0.0, 2.0, 4)
    >>> round(float((w * x).sum()), 12)
    2.0
    """
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
