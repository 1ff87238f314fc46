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
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return (nodes + 1) / 2, weights / 2


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
