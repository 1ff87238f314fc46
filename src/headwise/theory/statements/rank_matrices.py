"""The rank paper on matrices near others: A.2 and the bottleneck of section 3.1."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory import barrier
from headwise.theory.ensembles import IndependentHead, orthonormal
from headwise.theory.montecarlo import hardmax_choices
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    gaussian,
    off_identity,
)

_N, _WIDTH, _HEAD_DIM = 20, 40, 10


def _procrustes(seed: int, rows: int, width: int) -> Evidence:
    """U₁Vᵀ against 200 other matrices with orthonormal columns, some of them close to it."""
    given = gaussian(seed, "lemma5", rows, width)
    left, _, right = torch.linalg.svd(given.mT, full_matrices=False)
    best = left @ right
    steps = torch.logspace(-3, 1, 200, dtype=torch.float64).reshape(-1, 1, 1)
    others = torch.linalg.qr(best + steps * gaussian(seed, "others", 200, width, rows))
    signs = torch.diagonal(others.R, dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    distances = (others.Q * signs - given.mT[:, : others.Q.shape[-1]]).norm(dim=(-2, -1))
    gained = float((best - given.mT).norm() - distances.min())
    return Evidence(
        (at_least("d − n", width - rows, 0),),
        (
            at_most("max |PᵀP − I|", off_identity(best.mT @ best), 0.0),
            at_most("what the nearest of 200 others gains", gained, 0.0),
        ),
    )


def _wide_enough(seed: int) -> Evidence:
    return _procrustes(seed, 5, 9)


def _too_narrow(seed: int) -> Evidence:
    return _procrustes(seed, 9, 5)


def _distance(inputs: Tensor) -> Evidence:
    n, epsilon = len(inputs), off_identity(inputs @ inputs.mT)
    distance = float((inputs - barrier.nearest_orthonormal(inputs)).norm())
    rank = int((torch.linalg.svdvals(inputs) > 1e-9).sum())
    return Evidence(
        (
            at_most("ε·n^(3/2)", barrier.orthonormal_distance(n, epsilon), 0.1),
            at_least("d − n", inputs.shape[1] - n, 0),
        ),
        (
            at_least("rank of X̃", rank, n),
            at_most("‖VU₁ᵀ − X̃‖_F", distance, barrier.orthonormal_distance(n, epsilon)),
        ),
    )


def _nearly(seed: int, size: float) -> Tensor:
    exact = orthonormal((_N, _WIDTH), stream(seed, "exact"))
    return exact + size * gaussian(seed, "noise", _N, _WIDTH)


def _near_orthonormal(seed: int) -> Evidence:
    return _distance(_nearly(seed, 1e-4))


def _dependent_row(seed: int) -> Evidence:
    inputs = _nearly(seed, 0.0)
    inputs[-1] = inputs[:-1].mean(0) * (_N - 1) ** 0.5
    return _distance(inputs)


def _shift(seed: int, inputs: Tensor, claimed: float) -> Evidence:
    """Lemma 6 with 300 draws of the weights, at the claimed coherence, t = 2."""
    n, d = inputs.shape
    query = gaussian(seed, "query weights", 300, d, _HEAD_DIM)
    key = gaussian(seed, "key weights", 300, d, _HEAD_DIM)
    exact = barrier.nearest_orthonormal(inputs)
    moved = exact @ query @ (exact @ key).mT - inputs @ query @ (inputs @ key).mT
    norms = torch.linalg.matrix_norm(moved, 2)
    limit = barrier.score_shift(n, d, _HEAD_DIM, claimed, deviation=2.0)
    within = Estimate.of((norms <= limit).double())
    scale = barrier.orthonormality_scale(n, d, _HEAD_DIM, claimed)
    return Evidence(
        (
            at_most("max |E_ij|", off_identity(inputs @ inputs.mT), claimed),
            at_most("ε·n^(3/2)(d + d_h)", scale, 0.01),
        ),
        (
            at_most("E norm", Estimate.of(norms), barrier.score_shift(n, d, _HEAD_DIM, claimed)),
            at_least("P(norm within bound), t = 2", within, barrier.score_shift_probability(2.0)),
        ),
    )


def _small_shift(seed: int) -> Evidence:
    inputs = _nearly(seed, 1e-7)
    return _shift(seed, inputs, off_identity(inputs @ inputs.mT))


def _larger_than_claimed(seed: int) -> Evidence:
    inputs = _nearly(seed, 1e-3)
    return _shift(seed, inputs, 1e-6)


def _perturbed(seed: int, share: float) -> Evidence:
    """The worst perturbation of norm ``share``·σ_min, at both ends of the printed interval."""
    values = torch.tensor([2.0, 1.0, 0.5, 0.0, 0.0], dtype=torch.float64)
    least = 0.5
    left, right = (torch.linalg.qr(gaussian(seed, side, 5, 5))[0] for side in ("left", "right"))
    low, high = barrier.stable_tolerances(least)
    changed = 0
    for tolerance in (low * (1 + 1e-9), (low + high) / 2, high * (1 - 1e-12)):
        for sign in (-1.0, 1.0):
            worst = ((values > 0).double() * (sign - 1) + 1) * share * least
            moved = torch.linalg.svdvals(left @ torch.diag(values + worst) @ right)
            changed += abs(int((moved >= tolerance).sum()) - 3)
    return Evidence(
        (at_most("‖P‖₂ / σ_min", share, 1 / 3),),
        (at_most("changes of rank(·, δ)", changed, 0.0),),
    )


def _a_third(seed: int) -> Evidence:
    return _perturbed(seed, 1 / 3)


def _two_fifths(seed: int) -> Evidence:
    return _perturbed(seed, 0.4)


def _to_target(matrices: Tensor, random: float) -> Evidence:
    """Squared distances of hardmax matrices to the identity, by draw and on average."""
    n = matrices.shape[-1]
    target = torch.eye(n, dtype=torch.float64)
    distances = (matrices - target).square().sum((-1, -2))
    ranks = (matrices.sum(1) > 0).sum(-1)
    tails = torch.tensor([barrier.bottleneck(target, rank) for rank in range(n + 1)])
    own = tails.double()[ranks]
    return Evidence(
        (at_least("chance that a choice is random", random, 1.0), at_least("rank A / n", 1, 0.63)),
        (
            at_least("E‖hardmax − A‖²", Estimate.of(distances), barrier.barrier_bottleneck(target)),
            at_least("least excess over its own Σσ²", float((distances - own).min()), 0.0),
        ),
    )


def _random_attention(seed: int) -> Evidence:
    queries, keys = IndependentHead(40, 64).draw(200, stream(seed, "bottleneck"))
    choices = hardmax_choices(queries[:, :40], keys)
    return _to_target(torch.nn.functional.one_hot(choices, 40).double(), 1.0)


def _each_token_itself(seed: int) -> Evidence:
    same = torch.arange(40).expand(2 + seed % 2, -1)
    return _to_target(torch.nn.functional.one_hot(same, 40).double(), 0.0)


RANK_MATRICES = (
    Statement(
        "Lemma 5, closed form",
        Source.RANK_PAPER,
        "A.2, eq. 41",
        "d ≥ n; X̃ᵀ = UΣVᵀ is a singular value decomposition.",
        "U₁Vᵀ has orthonormal columns and is nearest to X̃ᵀ in Frobenius norm among all such.",
        _wide_enough,
        _too_narrow,
        finding="Printed as the minimiser; it is the only one when rank X̃ = n. For X̃ = 0 every "
        "matrix with orthonormal columns is as near.",
    ),
    Statement(
        "Lemma 5, distance",
        Source.RANK_PAPER,
        "A.2, eq. 42",
        "d ≥ n; X̃X̃ᵀ = I + E with |E_ij| ≤ ε = o(n^(−3/2)).",
        "rank X̃ = n and ‖U₁Vᵀ − X̃ᵀ‖_F ≤ ε·n^(3/2) (ε·n is true as well).",
        _near_orthonormal,
        _dependent_row,
    ),
    Statement(
        "Lemma 6",
        Source.RANK_PAPER,
        "A.2, eq. 57",
        "As Lemma 5, ε = o(1/(n^(3/2)(d+d_h))), X = VU₁ᵀ, Gaussian weights, t > 0.",
        "‖XW_qW_kᵀXᵀ − X̃W_qW_kᵀX̃ᵀ‖₂ ≲ ε·n^(3/2)(d+d_h+t²) with probability at least "
        "(1−2e^(−t²))², and its mean is ≲ ε·n^(3/2)(d+d_h). Here with constants: the mean is at "
        "most (2a+a²)(√d+√d_h)², a = ε·n^(3/2).",
        _small_shift,
        _larger_than_claimed,
        finding="For t < √ln 2 the printed probability is the square of a negative number and "
        "tends to 1 as t → 0: it would bound a Gaussian norm with certainty. Read max(0, ·)².",
    ),
    Statement(
        "Proposition 1",
        Source.RANK_PAPER,
        "A.2, eq. 65",
        "‖P‖₂ ≤ σ_min/3 and δ ∈ (σ_min/3, 2σ_min/3], σ_min the least non-zero singular value.",
        "rank(A, δ) = rank(A + P, δ).",
        _a_third,
        _two_fifths,
    ),
    Statement(
        "Low-rank bottleneck",
        Source.RANK_PAPER,
        "3.1",
        "Random weights as in Theorem 2; the target A has rank n' ∈ (0.63n, n].",
        "‖hardmax(QKᵀ) − A‖_F² ≥ Σ_{i > rank} σ_i(A)², and on average at least the same sum beyond "
        "the barrier.",
        _random_attention,
        _each_token_itself,
    ),
)
