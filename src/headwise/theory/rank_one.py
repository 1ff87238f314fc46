"""Rank-1 heads on nearest neighbours: what random ones reach, by vote and by best weights.

A head with query and key weights w picks the x that lies on y's side of w's hyperplane. With
x = (x₁−x₂)/√2 its answer is sgn(wᵀx)·sgn(wᵀy), to be weighed against sgn(xᵀy).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import special
from torch import Tensor

from headwise.errors import BadInputError
from headwise.shapes import Float
from headwise.theory.harmonics import log_coefficient, log_dimension
from headwise.theory.quadrature import rule_between
from headwise.theory.sizes import Whole, whole

# Odd degrees summed in Σ N λ³ P: the terms fall off like ℓ^(−2−d/2).
_DEGREES = 512

# Half the width of the window of t = cos(angle), in standard deviations 1/√d.
_DEVIATIONS = 9.0


def best_weights_error(keys: Float[Tensor, "heads d"], queries: Float[Tensor, "heads d"]) -> float:
    """The exact error of rank-1 hardmax heads of these directions, under the best weights a_h.

    A head answers sgn(kᵀx)·sgn(qᵀy). The error counted is the one along x₁−x₂, as in the
    lower bound: ½(1 − bᵀG⁻¹b), with G_gh = (2/π)² asin(k_gᵀk_h)·asin(q_gᵀq_h) and
    b_h = Σ_{ℓ odd} N λ_ℓ³ P_ℓ(k_hᵀq_h).

    >>> w = torch.tensor([[1.0, 0.0]]).double()
    >>> round(best_weights_error(w, w), 6)
    0.375
    """
    keys = torch.nn.functional.normalize(keys.double(), dim=-1)
    queries = torch.nn.functional.normalize(queries.double(), dim=-1)
    gram = _sign_agreement(keys) * _sign_agreement(queries)
    overlap = _overlap_with_target((keys * queries).sum(-1), keys.shape[1])
    # Equal heads make the Gram matrix singular; the pseudo-inverse shares the weight.
    weights = torch.linalg.pinv(gram, hermitian=True) @ overlap
    return (1 - float(weights @ overlap)) / 2


def majority_vote_error(width: Whole, heads: Whole) -> float:
    """The mean squared error of the majority vote of an odd number of random rank-1 heads.

    >>> round(majority_vote_error(64, 1001), 3), round(majority_vote_error(4, 101), 3)
    (0.238, 0.155)
    """
    d, h = whole("the width", width, 2), whole("the number of heads", heads)
    if h % 2 == 0:
        raise BadInputError(f"{h} heads can tie", hint="pass an odd number of heads")
    angle, weight = rule_between(0.0, min(math.pi / 2, _DEVIATIONS / math.sqrt(d)), 400)
    # The angle out of the hyperplane: t = sin(angle) has density ∝ cos^(d−2).
    density = weight * np.cos(angle) ** (d - 2)
    wrong = special.betainc((h + 1) / 2, (h + 1) / 2, 0.5 - angle / math.pi)
    return 2 * float((density * wrong).sum() / density.sum())


def majority_vote_limit(width: Whole, heads: Whole) -> float:
    """What the majority vote's error tends to for large width and many heads.

    >>> round(majority_vote_limit(64, 1001), 3)
    0.241
    """
    d, h = whole("the width", width), whole("the number of heads", heads)
    return 2 / math.pi * math.atan(math.pi / 2 * math.sqrt(d / h))


def _sign_agreement(unit: Tensor) -> Tensor:
    """E[sgn(wᵀx) sgn(vᵀx)] for every pair of directions: Sheppard's (2/π) asin(wᵀv)."""
    return torch.asin((unit @ unit.mT).clamp(-1, 1)) * 2 / math.pi


def _overlap_with_target(cosine: Tensor, d: int) -> Tensor:
    """E[sgn(xᵀy) sgn(kᵀx) sgn(qᵀy)] = Σ_{ℓ odd} N λ_ℓ³ P_ℓ(kᵀq), λ alternating in sign."""
    degree = 2.0 * np.arange(_DEGREES) + 1
    weight = np.exp(log_dimension(d, degree) + 3 * log_coefficient(d, degree))
    weight[1::2] *= -1
    total, before, polynomial = torch.zeros_like(cosine), torch.ones_like(cosine), cosine
    for ell in range(1, 2 * _DEGREES):
        if ell % 2:
            total = total + weight[ell // 2] * polynomial
        # Three-term recurrence of the Legendre polynomials of the sphere in R^d, P_ℓ(1) = 1.
        after = ((2 * ell + d - 2) * cosine * polynomial - ell * before) / (ell + d - 2)
        before, polynomial = polynomial, after
    return total
