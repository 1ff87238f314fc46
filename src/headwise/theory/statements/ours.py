"""What neither paper states: the steps they skip, the finite law and the computable bounds."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory import barrier
from headwise.theory.columns import column_share
from headwise.theory.ensembles import IndependentHead, InputHead, orthonormal
from headwise.theory.harmonics import Values, error_lower_bound
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.nearest import heads_error
from headwise.theory.statements.rank_rows import simplex
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    gaussian,
)

_N = 40


def _perturbed_rows(seed: int, share: float) -> Evidence:
    """Move every winner down and every runner-up up by ``share`` of the row's gap."""
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


def _below_half_the_gap(seed: int) -> Evidence:
    return _perturbed_rows(seed, 0.499)


def _above_half_the_gap(seed: int) -> Evidence:
    return _perturbed_rows(seed, 0.501)


def _narrow_gaps(scores: Tensor, correlation: float) -> Evidence:
    top = scores.topk(2, dim=-1).values
    narrow = (top[..., 0] - top[..., 1]).amin(-1) <= barrier.smallest_gap(_N, 0.2)
    return Evidence(
        (at_most("correlation of two scores of a row", correlation, 0.0),),
        (at_most("P(some row's gap is narrower)", Estimate.of(narrow.double()), 0.2),),
    )


def _independent_scores(seed: int) -> Evidence:
    return _narrow_gaps(gaussian(seed, "row gaps", 400, _N, _N), 0.0)


def _twin_keys(seed: int) -> Evidence:
    scores = gaussian(seed, "row gaps", 400, _N, _N // 2)
    return _narrow_gaps(torch.cat([scores, scores + 1e-9], -1), 1.0)


def _changed_rank(seed: int, inputs: Tensor, head_dim: int, claimed: float) -> Evidence:
    """E rank of heads of these inputs, if ‖E‖_F is at most what is claimed."""
    n = len(inputs)
    error = inputs @ inputs.mT - torch.eye(n, dtype=torch.float64)
    ratio = simulate_ratio(InputHead(inputs, head_dim), 600, seed)
    ranks = Estimate(n * ratio.mean, n * ratio.stderr, ratio.draws)
    allowed = barrier.rank_barrier(n) + barrier.variation_excess(n, head_dim, claimed)
    return Evidence(
        (
            at_most("‖E‖₂", float(torch.linalg.matrix_norm(error, 2)), 0.5),
            at_most("‖E‖_F", float(error.norm()), claimed),
        ),
        (at_most("E rank", ranks, allowed),),
    )


def _small_error(seed: int) -> Evidence:
    exact = orthonormal((12, 16), stream(seed, "exact"))
    return _changed_rank(seed, exact + 1e-5 * gaussian(seed, "noise", 12, 16), 128, 0.001)


def _simplex_error(seed: int) -> Evidence:
    return _changed_rank(seed, simplex(40), 512, 1e-4)


def _moved_rank(seed: int, share: float) -> Evidence:
    """The worst perturbation of a given share of the stable range."""
    values = torch.tensor([2.0, 1.0, 0.5, 0.25, 0.0], dtype=torch.float64)
    stable = barrier.stable_range(values, 0.4)
    left, right = (torch.linalg.qr(gaussian(seed, side, 5, 5))[0] for side in ("left", "right"))
    worst = torch.where(values >= 0.4, -1.0, 1.0) * share * stable.limit
    moved = torch.linalg.svdvals(left @ torch.diag(values + worst) @ right)
    return Evidence(
        (at_most("‖P‖₂ over the range", share, 1.0),),
        (at_most("change of the rank", abs(int((moved >= 0.4).sum()) - stable.rank), 0.0),),
    )


def _inside_the_range(seed: int) -> Evidence:
    return _moved_rank(seed, 0.999)


def _outside_the_range(seed: int) -> Evidence:
    return _moved_rank(seed, 1.001)


def _law(seed: int, head: IndependentHead) -> Evidence:
    n, d = head.length, head.head_dim
    keys = head.draw(50, stream(seed, "keys"))[1]
    spread = Estimate.of(keys.square().sum(-1))
    variance = float(keys.square().sum(-1).var() / spread.mean**2) * d / 2
    return Evidence(
        (at_least("variance of |k|² over that of χ²", variance, 0.8),),
        (at_most("E rank/n", simulate_ratio(head, 200, seed), float(column_share(n, d))),),
    )


def _gaussian_head(seed: int) -> Evidence:
    return _law(seed, IndependentHead(100, 16))


def _on_the_sphere(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    entries = torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(entries, dim=-1)


def _keys_of_equal_norm(seed: int) -> Evidence:
    return _law(seed, IndependentHead(100, 16, _on_the_sphere))


def _layer(seed: int, forms: Tensor, rank: int, values: Values) -> Evidence:
    """The error of a layer with least-squares values, against the bound at a claimed rank."""
    h, r, d = forms.shape
    found = heads_error(forms, values, seed)
    return Evidence(
        (at_most("rank of a head", r, rank),),
        (at_least("mean squared error", found, error_lower_bound(d, rank, h, values)),),
    )


def _forms(seed: int, width: int, rank: int, heads: int) -> Tensor:
    return gaussian(seed, "forms", heads, rank, width)


def _random_heads(seed: int) -> Evidence:
    return _layer(seed, _forms(seed, 6, 3, 2), 3, Values.ANY)


def _full_rank_head(seed: int) -> Evidence:
    return _layer(seed, torch.eye(6, dtype=torch.float64).unsqueeze(0), 3, Values.ANY)


def _random_identity_heads(seed: int) -> Evidence:
    return _layer(seed, _forms(seed, 8, 4, 24), 4, Values.IDENTITY)


def _full_rank_identity_head(seed: int) -> Evidence:
    return _layer(seed, torch.eye(8, dtype=torch.float64).unsqueeze(0), 4, Values.IDENTITY)


OURS = (
    Statement(
        "Gap lemma",
        Source.OURS,
        "docs/theory.md",
        "No score moves by half of its row's gap or more.",
        "No row changes its choice. This is the stability that hardmax has in place of continuity.",
        _below_half_the_gap,
        _above_half_the_gap,
    ),
    Statement(
        "Row gaps",
        Source.OURS,
        "docs/theory.md",
        "Scores of a row are independent N(0, 1).",
        "With probability 1 − η every one of n rows has a gap above δ, where n·P(gap ≤ δ) = η.",
        _independent_scores,
        _twin_keys,
    ),
    Statement(
        "Total variation",
        Source.OURS,
        "docs/theory.md",
        "XXᵀ = I + E with ‖E‖₂ ≤ ½; Gaussian weights.",
        "E rank ≤ Theorem 2's bound + (n−1)·‖E‖_F·√(d_h/2). Under Theorem 1's hypothesis the last "
        "term tends to 0, so Theorem 1 holds.",
        _small_error,
        _simplex_error,
    ),
    Statement(
        "Stable range",
        Source.OURS,
        "docs/theory.md",
        "‖P‖₂ is below the distance from ε to the nearest singular value.",
        "rank(A, ε) = rank(A + P, ε): the sharp form of Proposition 1.",
        _inside_the_range,
        _outside_the_range,
    ),
    Statement(
        "Finite law",
        Source.OURS,
        "docs/theory.md",
        "Queries and keys are independent N(0, I) in d_h dimensions.",
        "E rank(hardmax)/n ≤ L(n, d_h).",
        _gaussian_head,
        _keys_of_equal_norm,
    ),
    Statement(
        "Lower bound, any values",
        Source.OURS,
        "docs/theory.md; Theorem 2 of the heads paper made computable",
        "H generalised heads of query-key rank r, value matrices of any form.",
        "E‖f − T‖² ≥ ½ Σ_ℓ λ_ℓ² max(0, N − H·M), M = 2C(r+ℓ−1, ℓ) + C(r+ℓ−3, ℓ−2).",
        _random_heads,
        _full_rank_head,
    ),
    Statement(
        "Lower bound, values a·I",
        Source.OURS,
        "docs/theory.md; Theorem 2 of the heads paper made computable",
        "The same with value matrices that are multiples of I.",
        "The same with M = C(r+ℓ−1, ℓ).",
        _random_identity_heads,
        _full_rank_identity_head,
    ),
)
