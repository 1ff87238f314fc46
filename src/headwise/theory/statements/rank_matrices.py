"""The rank paper on matrices near others: A.2 and the bottleneck of section 3.1."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory import barrier
from headwise.theory.simulated_heads import orthonormal
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    gaussian,
    gaussian_weights,
    largest_rank,
    off_identity,
    unlinked,
)

_N, _WIDTH, _HEAD_DIM = 20, 40, 10


def _procrustes(seed: int, rows: int, width: int) -> Evidence:
    """n = 5, d = 9, against 200 other matrices with orthonormal columns, some close to U₁Vᵀ.

    Violator: n = 9, d = 5.
    """
    given = gaussian(seed, "lemma5", rows, width)
    left, _, right = torch.linalg.svd(given.mT, full_matrices=False)
    best = left @ right
    steps = torch.logspace(-3, 1, 200, dtype=torch.float64).reshape(-1, 1, 1)
    others = torch.linalg.qr(best + steps * gaussian(seed, "others", 200, width, rows))
    signs = torch.diagonal(others.R, dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    distances = (others.Q * signs - given.mT[:, : others.Q.shape[-1]]).norm(dim=(-2, -1))
    gained = float((best - given.mT).norm() - distances.min())
    return Evidence(
        (at_least("d − n", given.shape[1] - given.shape[0], 0),),
        (
            at_most("max |PᵀP − I|", off_identity(best.mT @ best), 0.0),
            at_most("what the nearest of 200 others gains", gained, 0.0),
        ),
    )


def _nearly(seed: int, size: float) -> Tensor:
    exact = orthonormal((_N, _WIDTH), stream(seed, "exact"))
    return exact + size * gaussian(seed, "noise", _N, _WIDTH)


def _distance(seed: int, dependent: bool) -> Evidence:
    """n = 20, d = 40, orthonormal rows with noise of 1e-4.

    Violator: the last row is a mean of the others.
    """
    inputs = _nearly(seed, 0.0 if dependent else 1e-4)
    if dependent:
        inputs[-1] = inputs[:-1].mean(0) * (_N - 1) ** 0.5
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


def _shift(seed: int, noise: float) -> Evidence:
    """n = 20, d = 40, d_h = 10, ε = 10⁻⁶, 300 draws, t = 2.

    Violator: noise 10,000 times larger, ε as before.
    """
    inputs, epsilon = _nearly(seed, noise), 1e-6
    n, d = inputs.shape
    query, key = gaussian_weights(seed, 300, d, _HEAD_DIM)
    exact = barrier.nearest_orthonormal(inputs)
    moved = exact @ query @ (exact @ key).mT - inputs @ query @ (inputs @ key).mT
    norms = torch.linalg.matrix_norm(moved, 2)
    limit = barrier.score_shift(n, d, _HEAD_DIM, epsilon, deviation=2.0)
    within = Estimate.of((norms <= limit).double())
    scale = barrier.orthonormality_scale(n, d, _HEAD_DIM, off_identity(inputs @ inputs.mT))
    return Evidence(
        (
            at_most("max |E_ij|", off_identity(inputs @ inputs.mT), epsilon),
            at_most("ε·n^(3/2)(d + d_h)", scale, 0.01),
        ),
        (
            at_most("E norm", Estimate.of(norms), barrier.score_shift(n, d, _HEAD_DIM, epsilon)),
            at_least("P(norm within bound), t = 2", within, barrier.score_shift_probability(2.0)),
        ),
    )


def _perturbed(seed: int, share: float) -> Evidence:
    """Singular values 2, 1, ½, 0, 0; the worst P of norm σ_min/3; three δ of the interval.

    Violator: ‖P‖₂ = 0.4·σ_min.
    """
    values, least = torch.tensor([2.0, 1.0, 0.5, 0.0, 0.0], dtype=torch.float64), 0.5
    left, right = (torch.linalg.qr(gaussian(seed, side, 5, 5))[0] for side in ("left", "right"))
    matrix = left @ torch.diag(values) @ right
    low, high = barrier.stable_tolerances(least)
    tolerances = (low * (1 + 1e-9), (low + high) / 2, high * (1 - 1e-12))
    changed, norm = 0, 0.0
    for sign in (-1.0, 1.0):
        worst = ((values > 0).double() * (sign - 1) + 1) * share * least
        moved = left @ torch.diag(values + worst) @ right
        norm = max(norm, float(torch.linalg.matrix_norm(moved - matrix, 2)))
        for tolerance in tolerances:
            ranks = [int((torch.linalg.svdvals(one) >= tolerance).sum()) for one in (matrix, moved)]
            changed += abs(ranks[1] - ranks[0])
    return Evidence(
        (
            at_most("‖P‖₂ / σ_min", norm / least, 1 / 3),
            at_least("least δ / σ_min", min(tolerances) / least, 1 / 3),
            at_most("largest δ / σ_min", max(tolerances) / least, 2 / 3),
        ),
        (at_most("changes of rank(·, δ)", changed, 0.0),),
    )


def _to_target(seed: int, tied: bool) -> Evidence:
    """n = 40, d = d_h = 64, target I, 200 draws. Violator: W_q = W_k, which gives I."""
    n = 40
    inputs, target = orthonormal((n, 64), stream(seed, "bottleneck")), torch.eye(n).double()
    query, key = gaussian_weights(seed, 200, 64, 64, tied)
    choices = (inputs @ query @ (inputs @ key).mT).argmax(-1)
    matrices = torch.nn.functional.one_hot(choices, n).double()
    distances = (matrices - target).square().sum((-1, -2))
    ranks = (matrices.sum(1) > 0).sum(-1)
    tails = torch.tensor([barrier.bottleneck(target, rank) for rank in range(n + 1)])
    own = tails.double()[ranks]
    return Evidence(
        (
            at_most("max |XXᵀ − I|", off_identity(inputs @ inputs.mT), 0.0),
            unlinked(query, key),
            at_least("rank A / n", largest_rank(target) / n, 0.63),
        ),
        (
            at_least("E‖hardmax − A‖²", Estimate.of(distances), barrier.barrier_bottleneck(target)),
            at_least("least excess over its own Σσ²", float((distances - own).min()), 0.0),
        ),
    )


RANK_MATRICES = (
    Statement(
        "Lemma 5, closed form",
        Source.RANK_PAPER,
        "A.2, eq. 41",
        "d ≥ n; X̃ᵀ = UΣVᵀ is a singular value decomposition.",
        "U₁Vᵀ has orthonormal columns and is nearest to X̃ᵀ in Frobenius norm among all such.",
        _procrustes,
        {"rows": 5, "width": 9},
        {"rows": 9, "width": 5},
        finding="Published as the minimiser; it is the only one when rank X̃ = n. For X̃ = 0 every "
        "matrix with orthonormal columns is as near. The proof's 1 = Σ_i S_ii² should be "
        "1 = Σ_k S_ki².",
    ),
    Statement(
        "Lemma 5, distance",
        Source.RANK_PAPER,
        "A.2, eq. 42",
        "d ≥ n; X̃X̃ᵀ = I + E with |E_ij| ≤ ε = o(n^(−3/2)).",
        "rank X̃ = n and ‖U₁Vᵀ − X̃ᵀ‖_F ≤ ε·n^(3/2) (ε·n is true as well).",
        _distance,
        {"dependent": False},
        {"dependent": True},
        finding="The inequality holds for every E; only the rank needs a small ε.",
    ),
    Statement(
        "Lemma 6",
        Source.RANK_PAPER,
        "A.2, eq. 57",
        "As Lemma 5, ε = o(1/(n^(3/2)(d+d_h))), X = VU₁ᵀ, Gaussian weights, t > 0.",
        "‖XW_qW_kᵀXᵀ − X̃W_qW_kᵀX̃ᵀ‖₂ ≲ ε·n^(3/2)(d+d_h+t²) with probability at least "
        "(1−2e^(−t²))², and its mean is ≲ ε·n^(3/2)(d+d_h). Here with constants: the mean is at "
        "most (2a+a²)(√d+√d_h)², a = ε·n^(3/2).",
        _shift,
        {"noise": 1e-7},
        {"noise": 1e-3},
        finding="For t < √ln 2 the published probability is the square of a negative number and "
        "tends to 1 as t → 0: it would bound a Gaussian norm with certainty. Read max(0, ·)². "
        "The = o(1) of (57) needs t² = O(d + d_h).",
    ),
    Statement(
        "Proposition 1",
        Source.RANK_PAPER,
        "A.2, eq. 65",
        "‖P‖₂ ≤ σ_min/3 and δ ∈ (σ_min/3, 2σ_min/3], σ_min the least non-zero singular value.",
        "rank(A, δ) = rank(A + P, δ).",
        _perturbed,
        {"share": 1 / 3},
        {"share": 0.4},
    ),
    Statement(
        "Low-rank bottleneck",
        Source.RANK_PAPER,
        "3.1",
        "As Theorem 1 (here XXᵀ = I, Theorem 2); the target A has rank n' ∈ (0.63n, n].",
        "‖hardmax(QKᵀ) − A‖_F² ≥ Σ_{i > rank} σ_i(A)², and on average at least the same sum beyond "
        "the barrier, which is above 0.",
        _to_target,
        {"tied": False},
        {"tied": True},
        finding="1 − 1/e = 0.632 is above 0.63, and the barrier has an O(1): for n' between 0.63n "
        "and the barrier the sum is empty. n' must exceed the barrier.",
    ),
)
