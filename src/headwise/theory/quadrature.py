"""Gauss–Legendre rules on the unit interval, and interpolation between two of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from scipy.interpolate import BarycentricInterpolator
from torch import Tensor

from headwise.shapes import Float


@cache
def unit_rule(points: int) -> tuple[Float[Tensor, " k"], Float[Tensor, " k"]]:
    """Nodes and weights on [0, 1], exact for polynomials of degree 2·points − 1.

    >>> x, w = unit_rule(3)
    >>> round(float((w * x**5).sum()), 12) == round(1 / 6, 12)
    True
    """
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return torch.as_tensor((nodes + 1) / 2), torch.as_tensor(weights / 2)


def rule_between(low: float, high: float, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [low, high].

    >>> x, w = rule_between(0.0, 2.0, 4)
    >>> round(float((w * x).sum()), 12)
    2.0
    """
    nodes, weights = unit_rule(points)
    return low + (high - low) * nodes.numpy(), (high - low) * weights.numpy()


@cache
def refinement(coarse: int, fine: int) -> Float[Tensor, "coarse fine"]:
    """The matrix that takes values on one rule's nodes to values on a finer rule's nodes.

    >>> x, y = unit_rule(4)[0], unit_rule(9)[0]
    >>> torch.allclose(x**3 @ refinement(4, 9), y**3)
    True
    """
    polynomials = BarycentricInterpolator(unit_rule(coarse)[0].numpy(), np.eye(coarse))
    return torch.as_tensor(polynomials(unit_rule(fine)[0].numpy())).T.contiguous()
