"""The rank paper's remarks, and its heuristics for large head dimensions (A.3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.spectra import PAPER_TOLERANCE, Estimate, LogWeights, count
from headwise.theory import barrier
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.simulated_heads import PlateauHead, WideHead
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
    """60 tokens, d_h = 64, 30 heads: T = √d_h against T = 1e-5.

    Violator: scores 384 times smaller.
    """
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


def _coherence(seed: int, width: int) -> Evidence:
    """The largest inner product of 100 unit vectors, 20 draws. Violator: width 16."""
    tokens = gaussian(seed, "remark2", 20, 100, width)
    unit = torch.nn.functional.normalize(tokens, dim=-1)
    gram = (unit @ unit.mT - torch.eye(100, dtype=torch.float64)).abs().amax((-1, -2))
    return Evidence(
        (at_least("width over log n", tokens.shape[-1] / math.log(tokens.shape[-2]), 50.0),),
        (at_most("max |x_iᵀx_j|", Estimate.of(gram), 0.3),),
    )


def _changed_choices(seed: int, shift: float) -> Evidence:
    """40 × 40 Gaussian scores times 1,000.

    Violator: plus a shift that grows from column to column.
    """
    scores = gaussian(seed, "remark3", _N, _N)
    moved = 1e3 * scores + shift * torch.arange(_N)
    changed = int((scores.argmax(-1) != moved.argmax(-1)).sum())
    factor = moved / scores
    return Evidence(
        (
            at_least("least factor", float(factor.min()), 1e-9),
            at_most("largest factor less least", float(factor.max() - factor.min()), 1e-9),
        ),
        (at_most("rows that change their choice", changed, 0.0),),
    )


def _overlap(keys: Tensor) -> Estimate:
    """The mean of k_iᵀk_j/d_h over pairs of different keys, by draw."""
    n, head_dim = keys.shape[-2:]
    gram = keys @ keys.mT / head_dim
    own = torch.diagonal(gram, dim1=-2, dim2=-1).sum(-1)
    return Estimate.of((gram.sum((-1, -2)) - own) / (n * (n - 1)))


def _keys(seed: int, head_dim: int, shared: float) -> Tensor:
    """Keys of ten orthonormal inputs: Gaussian, with a part that all of them share."""
    own = gaussian(seed, f"keys {head_dim}", 300, 10, head_dim)
    return own + shared * gaussian(seed, f"shared {head_dim}", 300, 1, head_dim)


def _coherences(keys: Tensor) -> Tensor:
    gram = keys @ keys.mT / keys.shape[-1] - torch.eye(keys.shape[-2], dtype=torch.float64)
    return gram.abs().amax((-1, -2))


def _projected(seed: int, shared: float) -> Evidence:
    """Keys of 10 orthonormal inputs, d_h = 1200, ε = 0.15, 300 draws.

    Violator: keys share a common part.
    """
    keys, epsilon = _keys(seed, 1200, shared), 0.15
    _, n, head_dim = keys.shape
    exceeded = Estimate.of((_coherences(keys) > epsilon).double())
    bound = barrier.coherence_probability(n, head_dim, epsilon)
    return Evidence(
        (
            equal("mean of k_iᵀk_j/d_h, i ≠ j", _overlap(keys), 0.0),
            at_least("d_h / log n", head_dim / math.log(n), barrier.log_constant(epsilon)),
        ),
        (at_most("P(coherence > ε)", exceeded, bound),),
    )


def _plateaus(seed: int, similar: bool) -> Evidence:
    """40 orthonormal inputs, d_h = ∞ against independent rows, 1,500 draws each.

    Violator: eight groups of five similar tokens.
    """
    groups = gaussian(seed, "groups", 8, 16).repeat_interleave(5, 0)
    inputs = groups + 0.5 * gaussian(seed, "own", _N, 16)
    inputs = inputs if similar else torch.eye(_N, dtype=torch.float64)
    head = simulate_ratio(WideHead(inputs), 1500, seed)
    rows = simulate_ratio(PlateauHead(inputs), 1500, seed + 1)
    stderr = (head.stderr**2 + rows.stderr**2) ** 0.5
    return Evidence(
        (at_most("max |XXᵀ − I|", off_identity(inputs @ inputs.mT), 0.0),),
        (equal("rank/n: head less rows", Estimate(head.mean - rows.mean, stderr, 3000), 0.0),),
    )


def _constant(seed: int, shared: float) -> Evidence:
    """Keys of 10 orthonormal inputs at d_h = 400 and 1600, 300 draws.

    Violator: keys share a common part.
    """
    few, many = _keys(seed, 400, shared), _keys(seed, 1600, shared)
    small, large = Estimate.of(_coherences(few)), Estimate.of(_coherences(many))
    ratio = small.mean / large.mean
    stderr = ratio * ((small.stderr / small.mean) ** 2 + (large.stderr / large.mean) ** 2) ** 0.5
    return Evidence(
        tuple(
            equal(f"mean of k_iᵀk_j/d_h, i ≠ j, d_h = {keys.shape[-1]}", _overlap(keys), 0.0)
            for keys in (few, many)
        ),
        (equal("coherence at d_h over coherence at 4 d_h", Estimate(ratio, stderr, 600), 2.0),),
    )


RANK_REMARKS = (
    Statement(
        "Remark 1",
        Source.RANK_PAPER,
        "3.1",
        "The setting of §2.1: weights and inputs N(0, 1), width 384. Ours: logits of size 100 and "
        "more.",
        "The ε-rank at normal temperature is near that of hardmax. Ours: T = √d_h for normal, and "
        "within 0.05 n for near.",
        _temperatures,
        {"scale": 1.0},
        {"scale": 1 / 384},
        finding="With logits of the usual initialisation, of size 1, the ε-rank is full. Figure "
        "5b, which the remark cites, ends at T = 1, below √d_h at every head dimension tested.",
    ),
    Statement(
        "Remark 2",
        Source.RANK_PAPER,
        "3.1",
        "Tokens are independent isotropic Gaussian vectors, d ≫ 1. Ours: d is at least 50·log n.",
        "They are nearly orthogonal. Ours: 100 of width 384, made unit vectors, have "
        "|x_iᵀx_j| ≤ 0.3.",
        _coherence,
        {"width": 384},
        {"width": 16},
        finding="Nearly orthogonal here means 0.2; Theorem 1 needs far less than 10⁻⁶. It also "
        "needs unit norms, where N(0, 1) tokens have |x|² ≈ d.",
    ),
    Statement(
        "Remark 3",
        Source.RANK_PAPER,
        "3.1",
        "Scores are multiplied by one factor c > 0.",
        "hardmax(cA) = hardmax(A): no row changes its choice.",
        _changed_choices,
        {"shift": 0.0},
        {"shift": 1e3},
        finding="The remark concludes that inputs need not be normalised. Its reason, scale "
        "invariance, covers one factor common to all tokens. The conclusion is right: the proof of "
        "Theorem 2 holds for any keys, so norms do not matter there, and the divergence in the "
        "proof of Total variation is the same for D(I + E)D against D², where D has the norms. So "
        "only the directions have to be almost orthonormal.",
    ),
    Statement(
        "Equations 66–69",
        Source.RANK_PAPER,
        "A.3",
        "W_k has independent N(0, 1) entries; d_h ≥ C·log n. Published without constants; here "
        "C = 4/(ε²/2 − ε³/3) at ε = 0.15, and the probability is Chernoff's.",
        "k_iᵀk_j ≈ d_h·x_iᵀx_j: P(max |k_iᵀk_j/d_h − x_iᵀx_j| > ε) ≤ 2n²e^(−d_h(ε²/2−ε³/3)/2) for "
        "unit inputs (simulated for orthonormal ones). So, given W_k, a row of QKᵀ/√d_h is "
        "N(0, KKᵀ/d_h), near N(0, XXᵀ).",
        _projected,
        {"shared": 0.0},
        {"shared": 0.8},
        finding="A.3 recalls that rows of QKᵀ are N(0, KKᵀ). That is so given W_k, as A.1 says; "
        "A.3 does not repeat it.",
    ),
    Statement(
        "Equations 70–72",
        Source.RANK_PAPER,
        "A.3",
        "Rows are independent, as in Theorem 2: here XXᵀ = I, which A.3 does not repeat. d_h → ∞ "
        "(published: d_h = Ω(log n)).",
        "The rank has the law of the rank of hardmax of independent rows N(0, XXᵀ).",
        _plateaus,
        {"similar": False},
        {"similar": True},
        finding="Rows are independent for orthogonal X alone. Where tokens are alike, rows share "
        "W_q and pick alike: the formula is too high. On a simplex it is too low. X·G·Xᵀ with one "
        "Gaussian G is right.",
    ),
    Statement(
        "Remark 5",
        Source.RANK_PAPER,
        "A.3",
        "Linear Gaussian projections.",
        "The constant in d_h = Ω(log n) is of order 1/ε²: four times the head dimension halves the "
        "coherence.",
        _constant,
        {"shared": 0.0},
        {"shared": 0.8},
        finding="The remark calls ε the error of the ≈ in (66); the ≈ stands in (68). That the "
        "constant also grows with the probability, and may be smaller for nonlinear projections, "
        "is published without a bound, so it has no check.",
    ),
)
