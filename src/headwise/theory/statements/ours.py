"""What neither paper states: the steps they skip, the finite law and the computable bounds."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory import barrier
from headwise.theory.harmonic_bound import Values, error_lower_bound
from headwise.theory.law_formula import column_share
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.nearest import heads_error
from headwise.theory.simulated_heads import Entries, IndependentHead, normal, orthonormal
from headwise.theory.statements.rank_theorems import simplex
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    columns_used,
    equal,
    gaussian,
    gaussian_weights,
    largest_rank,
    off_identity,
    unlinked,
)

_N = 40


def _perturbed_rows(seed: int, share: float) -> Evidence:
    """40 rows; winners move down and runners-up move up by 0.499 of the gap. Violator: by 0.501."""
    scores = gaussian(seed, "gap lemma", _N, _N)
    top = scores.topk(2, dim=-1)
    gap = top.values[:, 0] - top.values[:, 1]
    moved = scores.scatter_add(1, top.indices, torch.stack([-share * gap, share * gap], 1))
    changed = int((moved.argmax(-1) != scores.argmax(-1)).sum())
    size = float(((moved - scores).abs().amax(-1) / gap).max())
    return Evidence(
        (at_most("max |P_ij| over the row's gap", size, 0.4999),),
        (at_most("rows that change their choice", changed, 0.0),),
    )


def _narrow_gaps(seed: int, twins: bool) -> Evidence:
    """400 draws of 40 rows of 40 scores, η = 0.2. Violator: every score comes twice."""
    scores = gaussian(seed, "row gaps", 400, _N, _N)
    if twins:
        half = scores[..., : _N // 2]
        scores = torch.cat([half, half + 1e-9], -1)
    top = scores.topk(2, dim=-1).values
    narrow = (top[..., 0] - top[..., 1]).amin(-1) <= barrier.smallest_gap(_N, 0.2)
    rows = scores.flatten(0, 1)
    linked = off_identity(rows.mT @ rows / len(rows)) * len(rows) ** 0.5
    return Evidence(
        (at_most("correlation of two scores of a row, standard errors", linked, 6.5),),
        (at_most("P(some row's gap is narrower)", Estimate.of(narrow.double()), 0.2),),
    )


def _changed_rank(seed: int, tied: bool) -> Evidence:
    """n = 12, d_h = 64, 600 draws. Violator: W_q = W_k."""
    head_dim, exact = 64, orthonormal((12, 16), stream(seed, "exact"))
    alike = exact.clone()
    alike[1] += 0.02 * alike[0]
    apart = torch.nn.functional.normalize(torch.eye(12).double() + 0.015 * simplex(12), dim=-1)
    hypothesis, conclusion = [], []
    for name, inputs in (
        ("noise 1e-5", exact + 1e-5 * gaussian(seed, "noise", 12, 16)),
        ("towards a simplex", apart),
        ("two alike tokens", alike),
    ):
        n, d = inputs.shape
        query, key = gaussian_weights(seed, 600, d, head_dim, tied)
        error = inputs @ inputs.mT - torch.eye(n, dtype=torch.float64)
        excess = barrier.variation_excess(n, head_dim, float(error.norm()))
        ranks = columns_used(inputs, query, key)
        hypothesis.append(unlinked(query, key, f"W_q and W_k, {name}"))
        conclusion.append(at_most(f"E rank, {name}", ranks, barrier.rank_barrier(n) + excess))
    return Evidence(tuple(hypothesis), tuple(conclusion))


def _moved_rank(seed: int, share: float) -> Evidence:
    """Singular values 2, 1, ½, ¼, 0; ε = 0.4; the worst P at 0.999 of the limit.

    Violator: at 1.001.
    """
    values = torch.tensor([2.0, 1.0, 0.5, 0.25, 0.0], dtype=torch.float64)
    stable = barrier.stable_range(values, 0.4)
    left, right = (torch.linalg.qr(gaussian(seed, side, 5, 5))[0] for side in ("left", "right"))
    worst = torch.where(values >= 0.4, -1.0, 1.0) * share * stable.limit
    matrix, moved = (left @ torch.diag(one) @ right for one in (values, values + worst))
    size = float(torch.linalg.matrix_norm(moved - matrix, 2))
    near = float((torch.linalg.svdvals(matrix) - 0.4).abs().min())
    rank = int((torch.linalg.svdvals(moved) >= 0.4).sum())
    return Evidence(
        (at_most("‖P‖₂ over the distance from ε to a singular value", size / near, 0.9999),),
        (at_most("change of the rank", abs(rank - stable.rank), 0.0),),
    )


def _on_the_sphere(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.nn.functional.normalize(normal(shape, generator), dim=-1)


def _law(seed: int, entries: Entries) -> Evidence:
    """n = 100, d_h = 16, 200 draws. Violator: queries and keys of norm 1."""
    n, d = 100, 16
    head = IndependentHead(n, d, entries)
    squares = head.draw(50, stream(seed, "keys"))[1].square().sum(-1)
    # |k|² is χ² with d degrees of freedom: variance 2d, and 12/d + 2 is its excess kurtosis + 2.
    variance = squares.var() / (2 * d)
    noise = math.sqrt((2 + 12 / d) / squares.numel())
    return Evidence(
        (
            equal(
                "variance of |k|² over that of χ²",
                Estimate(float(variance), noise, squares.numel()),
                1.0,
            ),
        ),
        (at_most("E rank/n", simulate_ratio(head, 200, seed), float(column_share(n, d))),),
    )


def _layer(seed: int, values: Values, width: int, heads: int, full: bool) -> Evidence:
    """Heads of rank d/2, least-squares values: two at d = 6 (any), 24 at d = 8 (a·I).

    Violator: one full-rank head.
    """
    forms = gaussian(seed, "forms", heads, width // 2, width)
    forms = torch.eye(width, dtype=torch.float64).unsqueeze(0) if full else forms
    bound = error_lower_bound(width, width // 2, len(forms), values)
    return Evidence(
        (at_most("rank of a head", largest_rank(forms), width // 2),),
        (at_least("mean squared error", heads_error(forms, values, seed), bound),),
    )


#: Why "Total variation" is true.
_TOTAL_VARIATION = """\
The 2·d_h columns of Q = XW_q and K = XW_k are independent N(0, I + E) vectors in Rⁿ. For
orthonormal inputs they are N(0, I). Let λ_i be the eigenvalues of E.

1. *Small E.* Suppose ‖E‖_F ≤ ½, so that every λ_i ≥ −½. One column has the divergence
   KL(N(0, I+E) ‖ N(0, I)) = ½ Σ (λ_i − ln(1+λ_i)) ≤ ½ Σ λ_i² = ½‖E‖_F², since λ − ln(1+λ) ≤ λ² for
   λ ≥ −½. Divergences of independent columns add: at most d_h‖E‖_F² for all of them. Pinsker's
   inequality bounds the total variation by √(KL/2) ≤ ‖E‖_F·√(d_h/2).
2. The rank of hardmax(QKᵀ) is a function of (Q, K) with values from 1 to n. Its mean therefore
   changes by at most (n−1) times the total variation. Theorem 2 bounds it at E = 0.
3. *Large E.* If ‖E‖_F > ½ and d_h ≥ 2, the right-hand side exceeds (1−1/e)n + ½(n−1) + 2e⁻² ≥ n,
   and a rank is at most n. Let d_h = 1. If a token is zero or two tokens are equal, scores may tie,
   and hardmax may then choose any of the tied columns; but such an E has ‖E‖_F ≥ 1, so the
   right-hand side exceeds (1−1/e)n + 0.7(n−1) + 2e⁻² ≥ n. Otherwise ties have probability zero,
   and every row chooses the largest or the smallest key: the rank is at most 2, and Theorem 2's
   bound is at least 2.3. So X may be any matrix.
4. *Equation 2.* A non-zero singular value of a hardmax matrix is the root of a column's count, at
   least 1, so rank(·, δ) is the rank for 0 < δ ≤ 1 and never larger. With |E_ij| ≤ ε, ‖E‖_F ≤ nε
   and the excess is at most n²ε√(d_h/2). Because n ≤ d and √(d·d_h) ≤ (d+d_h)/2, it is at most
   ε·n^(3/2)(d+d_h)/(2√2), which tends to 0 under the hypothesis. ∎"""

OURS = (
    Statement(
        "Gap lemma",
        Source.OURS,
        "in place of the continuity that A.2 assumes",
        "No score moves by half of its row's gap or more.",
        "No row changes its choice. This is the stability that hardmax has in place of continuity.",
        _perturbed_rows,
        {"share": 0.499},
        {"share": 0.501},
    ),
    Statement(
        "Row gaps",
        Source.OURS,
        "how large the gaps of the Gap lemma are",
        "Scores of a row are independent N(0, 1).",
        "With probability at least 1 − η every one of n rows has a gap above δ, where "
        "n·P(gap ≤ δ) = η.",
        _narrow_gaps,
        {"twins": False},
        {"twins": True},
    ),
    Statement(
        "Total variation",
        Source.OURS,
        "a proof of eq. 2 of the rank paper, the first half of Theorem 1",
        "W_q and W_k have independent N(0, 1) entries; any X, n ≥ 2, with E = XXᵀ − I; ties are "
        "broken in any way.",
        "E rank ≤ Theorem 2's bound + (n−1)·‖E‖_F·√(d_h/2). Under Theorem 1's hypothesis the last "
        "term tends to 0, so eq. 2 holds.",
        _changed_rank,
        {"tied": False},
        {"tied": True},
        proof=_TOTAL_VARIATION,
    ),
    Statement(
        "Stable range",
        Source.OURS,
        "sharpens Proposition 1 of the rank paper",
        "‖P‖₂ is at most the distance from ε up to the next singular value of at least ε, and "
        "below the distance down to the next one under ε.",
        "rank(A, ε) = rank(A + P, ε). Proposition 1 is a special case.",
        _moved_rank,
        {"share": 0.999},
        {"share": 1.001},
    ),
    Statement(
        "Finite law",
        Source.OURS,
        "docs/theory.md",
        "Queries and keys are independent N(0, I) in d_h dimensions.",
        "E rank(hardmax)/n ≤ L(n, d_h).",
        _law,
        {"entries": normal},
        {"entries": _on_the_sphere},
    ),
    Statement(
        "Lower bound, any values",
        Source.OURS,
        "docs/theory.md; Theorem 2 of the heads paper made computable",
        "H generalised heads of rank r < d, value matrices of any form; x₁, x₂ a uniform "
        "orthonormal pair, y uniform on the sphere.",
        "E‖f − T‖² ≥ ½ Σ_ℓ λ_ℓ² max(0, N − H·M), M = 2C(r+ℓ−1, ℓ) + C(r+ℓ−3, ℓ−2).",
        _layer,
        {"values": Values.ANY, "width": 6, "heads": 2, "full": False},
        {"values": Values.ANY, "width": 6, "heads": 1, "full": True},
    ),
    Statement(
        "Lower bound, values a·I",
        Source.OURS,
        "docs/theory.md; Theorem 2 of the heads paper made computable",
        "The same with value matrices that are multiples of I.",
        "The same with M = C(r+ℓ−1, ℓ). The slide Combining has this sum; the talk has "
        "M ≤ C(r+ℓ, ℓ).",
        _layer,
        {"values": Values.IDENTITY, "width": 8, "heads": 24, "full": False},
        {"values": Values.IDENTITY, "width": 8, "heads": 1, "full": True},
        finding="The slide has Σ β_ℓ²(N − H·M), also where H·M exceeds N. Such terms are "
        "negative and weaken the bound: take max(0, ·). It writes M(d, ℓ); M depends on r and ℓ. "
        "Its first = must be ≥: heads also have parts outside the span. Inside its last norm "
        "N − H·M is a factor before one function; it must count functions, or the square would be "
        "(N − H·M)².",
    ),
)
