"""The rank paper's remarks, and its heuristics for large head dimensions (A.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.spectra import PAPER_TOLERANCE, Estimate, LogWeights, count
from headwise.theory import barrier
from headwise.theory.ensembles import PlateauHead, WideHead
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    equal,
    gaussian,
    gaussian_weights,
    off_identity,
)

_N = 40


def _temperatures(seed: int, scale: float) -> Evidence:
    """ε-rank at T = √d_h against T = 1e-5, inputs and weights N(0, 1) of width 384, rescaled."""
    n, width, head_dim = 60, 384, 64
    inputs = gaussian(seed, "remark1", 30, n, width)
    query, key = gaussian_weights(seed, 30, width, head_dim)
    scores = scale * (inputs @ query) @ (inputs @ key).mT
    warm, cold = (
        Estimate.of(count(LogWeights(scores / heat), PAPER_TOLERANCE).low.double() / n)
        for heat in (head_dim**0.5, 1e-5 * scale)
    )
    logits = float(scores.std()) / head_dim**0.5
    return Evidence(
        (at_least("standard deviation of the logits", logits, 100.0),),
        (at_most("rank/n at T = √d_h less T = 1e-5", abs(warm.mean - cold.mean), 0.05),),
    )


def _normal_temperature(seed: int) -> Evidence:
    return _temperatures(seed, 1.0)


def _usual_initialisation(seed: int) -> Evidence:
    return _temperatures(seed, 1 / 384)


def _coherence(seed: int, width: int) -> Evidence:
    """The largest inner product of 100 independent isotropic unit vectors."""
    unit = torch.nn.functional.normalize(gaussian(seed, "remark2", 20, 100, width), dim=-1)
    gram = (unit @ unit.mT - torch.eye(100, dtype=torch.float64)).abs().amax((-1, -2))
    return Evidence(
        (at_least("width over log n", width / 4.605, 50.0),),
        (at_most("max |x_iᵀx_j|", Estimate.of(gram), 0.3),),
    )


def _wide_tokens(seed: int) -> Evidence:
    return _coherence(seed, 384)


def _narrow_tokens(seed: int) -> Evidence:
    return _coherence(seed, 16)


def _changed_choices(seed: int, shift: float) -> Evidence:
    scores = gaussian(seed, "remark3", _N, _N)
    moved = 1e3 * scores + shift * torch.arange(_N)
    changed = int((scores.argmax(-1) != moved.argmax(-1)).sum())
    return Evidence(
        (at_most("moved apart from the factor", float((moved - 1e3 * scores).abs().max()), 0.0),),
        (at_most("rows that change their choice", changed, 0.0),),
    )


def _scaled(seed: int) -> Evidence:
    return _changed_choices(seed, 0.0)


def _shifted(seed: int) -> Evidence:
    return _changed_choices(seed, 1e3)


def _projected(seed: int, shared: float) -> Evidence:
    """How often projected orthonormal inputs exceed coherence 0.15."""
    n, head_dim, epsilon = 10, 1200, 0.15
    weights = gaussian(seed, "keys", 300, n, head_dim)
    weights = weights + shared * gaussian(seed, "shared", 300, 1, head_dim)
    mean = float(weights.mean(1).square().mean()) * n
    gram = weights @ weights.mT / head_dim - torch.eye(n, dtype=torch.float64)
    exceeded = Estimate.of((gram.abs().amax((-1, -2)) > epsilon).double())
    bound = barrier.coherence_probability(n, head_dim, epsilon)
    return Evidence(
        (equal("variance of a shared part of the weights", Estimate(mean, 0.005, 300), 1.0),),
        (at_most("P(coherence > ε)", exceeded, bound),),
    )


def _gaussian_projection(seed: int) -> Evidence:
    return _projected(seed, 0.0)


def _shared_projection(seed: int) -> Evidence:
    return _projected(seed, 0.8)


def _plateaus(seed: int, inputs: Tensor) -> Evidence:
    """The rank of a very wide head less that of independent rows N(0, XXᵀ)."""
    head = simulate_ratio(WideHead(inputs), 1500, seed)
    rows = simulate_ratio(PlateauHead(inputs), 1500, seed + 1)
    stderr = (head.stderr**2 + rows.stderr**2) ** 0.5
    off = off_identity(inputs @ inputs.mT)
    return Evidence(
        (at_most("max |XXᵀ − I|", off, 0.0),),
        (equal("rank/n: head less rows", Estimate(head.mean - rows.mean, stderr, 3000), 0.0),),
    )


def _plateau_of_orthonormal(seed: int) -> Evidence:
    return _plateaus(seed, torch.eye(_N, dtype=torch.float64))


def _plateau_of_similar(seed: int) -> Evidence:
    groups = gaussian(seed, "groups", 8, 16).repeat_interleave(5, 0)
    return _plateaus(seed, groups + 0.5 * gaussian(seed, "own", _N, 16))


def _constant(seed: int, shared: float) -> Evidence:
    """By what factor coherence falls when the head dimension is four times as large."""
    found = []
    for head_dim in (400, 1600):
        keys = gaussian(seed, f"remark5 {head_dim}", 300, 10, head_dim)
        keys = keys + shared * gaussian(seed, f"shared {head_dim}", 300, 1, head_dim)
        gram = keys @ keys.mT / head_dim - torch.eye(10, dtype=torch.float64)
        found.append(Estimate.of(gram.abs().amax((-1, -2))))
    small, large = found
    ratio = small.mean / large.mean
    stderr = ratio * ((small.stderr / small.mean) ** 2 + (large.stderr / large.mean) ** 2) ** 0.5
    return Evidence(
        (at_most("shared part of the keys", shared, 0.0),),
        (equal("coherence at d_h over coherence at 4 d_h", Estimate(ratio, stderr, 600), 2.0),),
    )


def _gaussian_keys(seed: int) -> Evidence:
    return _constant(seed, 0.0)


def _shared_keys(seed: int) -> Evidence:
    return _constant(seed, 0.8)


RANK_REMARKS = (
    Statement(
        "Remark 1",
        Source.RANK_PAPER,
        "3.1",
        "Weights and inputs N(0, 1) of width 384, so that logits are of size 100 and more.",
        "The ε-rank at normal temperature, T = √d_h, is near that of hardmax: within 0.05 n.",
        _normal_temperature,
        _usual_initialisation,
        finding="With logits of the usual initialisation, of size 1, the ε-rank is full.",
    ),
    Statement(
        "Remark 2",
        Source.RANK_PAPER,
        "3.1",
        "Tokens are independent isotropic Gaussian vectors of a width far above log n.",
        "They are nearly orthogonal: 100 unit tokens of width 384 have |x_iᵀx_j| ≤ 0.3.",
        _wide_tokens,
        _narrow_tokens,
        finding="Nearly orthogonal here means 0.2; Theorem 1 needs far less than 10⁻⁶.",
    ),
    Statement(
        "Remark 3",
        Source.RANK_PAPER,
        "3.1",
        "Scores are multiplied by one factor c > 0.",
        "hardmax(cA) = hardmax(A): no row changes its choice.",
        _scaled,
        _shifted,
    ),
    Statement(
        "Equations 66–69",
        Source.RANK_PAPER,
        "A.3",
        "W_k has independent N(0, 1) entries; d_h ≥ C·log n. Printed without constants; the "
        "probability here is Chernoff's.",
        "k_iᵀk_j ≈ d_h·x_iᵀx_j: P(max |k_iᵀk_j/d_h − x_iᵀx_j| > ε) ≤ 2n²e^(−d_h(ε²/2−ε³/3)/2).",
        _gaussian_projection,
        _shared_projection,
    ),
    Statement(
        "Equations 70–72",
        Source.RANK_PAPER,
        "A.3",
        "XXᵀ = I (printed: any X) and d_h → ∞.",
        "The rank has the law of the rank of hardmax of independent rows N(0, XXᵀ).",
        _plateau_of_orthonormal,
        _plateau_of_similar,
        finding="Rows are independent only for orthonormal X. Rows of similar tokens share W_q and "
        "pick alike, so for other X the formula is too high; X·G·Xᵀ with one Gaussian G is right.",
    ),
    Statement(
        "Remark 5",
        Source.RANK_PAPER,
        "A.3",
        "Linear Gaussian projections.",
        "The constant in d_h = Ω(log n) is of order 1/ε²: four times the head dimension halves the "
        "coherence.",
        _gaussian_keys,
        _shared_keys,
    ),
)
