"""Heads on nearest neighbours: random low-rank layers, and what rank-one heads reach by vote.

A rank-one head with query and key weights w picks the x that lies on y's side of w's hyperplane.
With x = (x₁−x₂)/√2 its answer is sgn(wᵀx)·sgn(wᵀy), to be weighed against sgn(xᵀy).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import special
from torch import Tensor

from headwise.checks import whole
from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.shapes import Float
from headwise.spectra import Estimate
from headwise.theory.harmonic_bound import Values, log_coefficient, log_dimension
from headwise.theory.number_types import Whole
from headwise.theory.numerics import rule_between

# Odd degrees summed in Σ N λ³ P: the terms fall off like ℓ^(−2−d/2).
_DEGREES = 512

# Half the width of the window of t = cos(angle), in standard deviations 1/√d.
_DEVIATIONS = 9.0


def random_heads_error(
    width: Whole, rank: Whole, heads: Whole, values: Values = Values.ANY, seed: int = 0
) -> Estimate:
    """The error of random rank-r hardmax heads on the nearer of two neighbours.

    Query-key forms KᵀK with random r×d matrices K, values by least squares.

    >>> random_heads_error(4, 1, 8).mean < 0.5
    True
    """
    d, r, h = whole("the width", width, 2), whole("the rank", rank), whole("heads", heads)
    forms = torch.randn(h, r, d, generator=stream(seed, "forms", d, r), dtype=torch.float64)
    return heads_error(forms, values, seed)


def heads_error(forms: Float[Tensor, "heads r d"], values: Values, seed: int = 0) -> Estimate:
    """The mean squared error of hardmax heads with query-key forms KᵀK on nearest neighbours.

    Value matrices are fitted by least squares to one sample and the error is measured on
    another, so it is the error of a layer that exists. One full-rank head is exact:

    >>> heads_error(torch.eye(4).double().unsqueeze(0), Values.IDENTITY).mean < 1e-20
    True
    """
    h, _, d = forms.shape
    generator = stream(seed, "nearest", d, values.value)
    samples = max(4000, 20 * h * (d if values is Values.ANY else 1))
    seen, target = _answers(forms, *neighbours(d, samples, generator))
    fitted = _fitted_values(seen, target, values)
    seen, target = _answers(forms, *neighbours(d, samples, generator))
    return Estimate.of((_combined(seen, fitted) - target).square().sum(-1))


def neighbours(
    width: int, samples: int, generator: torch.Generator
) -> tuple[Float[Tensor, "samples 2 d"], Float[Tensor, "samples d"]]:
    """Uniform orthonormal pairs (x₁, x₂) and uniform unit y."""
    first = torch.randn(samples, 2, width, generator=generator, dtype=torch.float64)
    pairs = torch.linalg.qr(first.mT)[0].mT
    # QR fixes signs by its own rule; random signs restore the uniform law.
    signs = torch.randint(0, 2, (samples, 2, 1), generator=generator) * 2 - 1
    y = torch.randn(samples, width, generator=generator, dtype=torch.float64)
    return pairs * signs, torch.nn.functional.normalize(y, dim=-1)


def _answers(forms: Tensor, pairs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """What each head attends to, (samples, heads, d), and the nearer neighbour."""
    keys = torch.einsum("hrd,sid->shir", forms, pairs)
    queries = torch.einsum("hrd,sd->shr", forms, y)
    picked = torch.einsum("shir,shr->shi", keys, queries).argmax(-1)
    nearer = torch.einsum("sid,sd->si", pairs, y).argmax(-1)
    rows = torch.arange(len(pairs))
    return pairs[rows.unsqueeze(-1), picked], pairs[rows, nearer]


def _fitted_values(seen: Tensor, target: Tensor, values: Values) -> Tensor:
    """Least-squares value matrices, (heads·d, d), or multiples of the identity, (heads,)."""
    if values is Values.ANY:
        return torch.linalg.lstsq(seen.flatten(1), target, driver="gelsd").solution
    design = seen.transpose(1, 2).flatten(0, 1)
    return torch.linalg.lstsq(design, target.reshape(-1, 1), driver="gelsd").solution[:, 0]


def _combined(seen: Tensor, fitted: Tensor) -> Tensor:
    if fitted.ndim == 2:
        return seen.flatten(1) @ fitted
    return torch.einsum("shd,h->sd", seen, fitted)


def mean_rank_one_success(width: Whole) -> float:
    """The chance that one random rank-one head is right: ½ + 0.254/√d for large d.

    It is ½ + asin|wᵀy|/π for w = (x₁−x₂)/√2, averaged over the sphere.
    """
    d = whole("the width", width, 2)
    angle, density = _angles(d)
    return 0.5 + float((density * angle).sum() / density.sum()) / math.pi


def _angles(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles of y out of w's hyperplane, t = sin(angle), with weights ∝ cos^(d−2)."""
    angle, weight = rule_between(0.0, min(math.pi / 2, _DEVIATIONS / math.sqrt(d)), 400)
    return angle, weight * np.cos(angle) ** (d - 2)


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
    """The mean squared error of the majority vote of an odd number of random rank-1 heads."""
    d, h = whole("the width", width, 2), whole("the number of heads", heads)
    if h % 2 == 0:
        raise BadInputError(f"{h} heads can tie", hint="pass an odd number of heads")
    angle, density = _angles(d)
    wrong = special.betainc((h + 1) / 2, (h + 1) / 2, 0.5 - angle / math.pi)
    return 2 * float((density * wrong).sum() / density.sum())


def majority_vote_limit(width: Whole, heads: Whole) -> float:
    """What the majority vote's error tends to for large width and many heads."""
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
