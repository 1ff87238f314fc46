"""The rank paper on rows of scores and the columns they choose: Lemmas 1 to 4 and the theorems."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory import barrier
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.simulated_heads import InputHead, PlateauHead, orthonormal
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    columns_used,
    distinct,
    equal,
    gaussian,
    gaussian_weights,
    off_identity,
    unlinked,
)

_N = 40


def _softmax_row(seed: int, top: float) -> Evidence:
    """One row of 40 scores at T = 0.1, all runners-up nearly equal.

    Violator: the top is 0.5 instead of 1.02, and δ is still called 1.
    """
    gap, heat = 1.0, 0.1
    scores = 0.01 * gaussian(seed, "lemma1", _N).clamp(-2, 2)
    scores[seed % _N] = top
    first, second = scores.topk(2).values
    distance = 2 * float(1 - torch.softmax(scores / heat, -1).max())
    return Evidence(
        (at_least("gap to the next score", float(first - second), gap),),
        (at_most("1-norm", distance, barrier.softmax_to_hardmax(_N, gap, heat)),),
    )


def _excess(seed: int, largest: float) -> Evidence:
    """n from 1 to 29 and 100, about 100 values of p from 0.01 up. Violator: p up to 2."""
    first = second = 0.0
    grid = torch.linspace(0.01, largest, 100 + seed % 7).tolist()
    for n in (*range(1, 30), 100):
        for p in grid:
            one, two = barrier.exponential_excess_bounds(n, p)
            first = max(first, barrier.exponential_excess(n, p) / one)
            second = max(second, one / two)
    return Evidence(
        (at_least("least p", min(grid), 0.0), at_most("largest p", max(grid), 1.0)),
        (
            at_most("δ_n(p) over its first bound", first, 1.0),
            at_most("first over second", second, 1.0),
        ),
    )


def _chi_square(choices: Tensor, columns: int) -> float:
    """Chi-square of independence between the choices of the first two rows."""
    table = torch.zeros(columns**2, dtype=torch.float64)
    pair = choices[:, 0] * columns + choices[:, 1]
    table = table.scatter_add_(0, pair, torch.ones(len(pair), dtype=torch.float64))
    table = table.reshape(columns, columns)
    expected = table.sum(1, keepdim=True) * table.sum(0, keepdim=True) / table.sum()
    return float(((table - expected).square() / expected.clamp(min=1e-9)).sum())


def _unequal_rows(seed: int, own_draws: bool) -> Evidence:
    """8 rows with chances of their own invert uniform numbers, 20,000 draws.

    Violator: all rows invert the same number.
    """
    n = 8
    size = (20000, n if own_draws else 1)
    uniforms = torch.rand(size, generator=stream(seed, "lemma3"), dtype=torch.float64)
    chances = torch.softmax(gaussian(seed, "lemma3", n, n), -1)
    edges = chances.cumsum(-1)[:, :-1].contiguous()
    choices = torch.searchsorted(edges, uniforms.expand(-1, n).T.contiguous()).T
    used = distinct(choices)
    empty = Estimate(n - used.mean, used.stderr, used.draws)
    limit = barrier.independence_limit(n)
    return Evidence(
        (at_most("chi-square of two rows", _chi_square(choices, n), limit),),
        (equal("empty columns", empty, barrier.empty_columns(chances)),),
    )


def _moments(seed: int, cosine: float) -> Evidence:
    """Every second and fourth moment of (Gu; Gv), m = 3, 20,000 draws.

    Violator: u and v have the cosine 0.6.
    """
    draws, m = 20000, 3
    pair = torch.tensor([[1.0, 0, 0, 0], [cosine, (1 - cosine**2) ** 0.5, 0, 0]]).double()
    both = (gaussian(seed, "lemma4", draws, m, 4) @ pair.T).transpose(1, 2).flatten(1)
    second = both.T @ both / draws
    fourth = both.square().T @ both.square() / draws
    eye = torch.eye(2 * m, dtype=torch.float64)
    # Var(ab) is 1 off the diagonal and 2 on it; Var(a²b²) is 8, and Var(a⁴) is 96.
    off_second = (second - eye).abs() / (1 + eye).sqrt()
    off_fourth = (fourth - 1 - 2 * eye).abs() / (8 + 88 * eye).sqrt()
    worst = float(torch.maximum(off_second, off_fourth).max()) * draws**0.5
    return Evidence(
        (at_most("max |[u v]ᵀ[u v] − I|", off_identity(pair @ pair.T), 1e-6),),
        (at_most("largest moment's deviation, standard errors", worst, 5.0),),
    )


def _theorem_2(seed: int, tied: bool) -> Evidence:
    """n = 40, d = 64, d_h = 256, 400 draws of the weights. Violator: W_q = W_k."""
    inputs = orthonormal((_N, 64), stream(seed, "theorem2"))
    query, key = gaussian_weights(seed, 400, 64, 256, tied)
    return Evidence(
        (
            at_most("max |XXᵀ − I|", off_identity(inputs @ inputs.mT), 0.0),
            unlinked(query, key),
        ),
        (at_most("E rank", columns_used(inputs, query, key), barrier.rank_barrier(_N)),),
    )


def simplex(corners: int) -> Tensor:
    """Unit vectors with every inner product −1/(n−1): no rows are more evenly apart."""
    centred = torch.eye(corners, dtype=torch.float64) - 1 / corners
    return torch.nn.functional.normalize(centred, dim=-1)


def _theorem_1(seed: int, evenly_apart: bool) -> Evidence:
    """n = 40, d = 64, d_h = 256, orthonormal rows with noise of 1e-8, 400 draws.

    Violator: the corners of a simplex, n = d = 20, d_h = 2048.
    """
    inputs = orthonormal((_N, 64), stream(seed, "x")) + 1e-8 * gaussian(seed, "noise", _N, 64)
    inputs, head_dim = (simplex(20), 2048) if evenly_apart else (inputs, 256)
    n, d = inputs.shape
    query, key = gaussian_weights(seed, 400, d, head_dim)
    scale = barrier.orthonormality_scale(n, d, head_dim, off_identity(inputs @ inputs.mT))
    matrices = torch.nn.functional.one_hot((inputs @ query @ (inputs @ key).mT).argmax(-1), n)
    # Columns of a hardmax matrix are orthogonal; their norms are its singular values.
    ranks = (matrices.sum(1).double().sqrt() >= 0.5).sum(-1)
    return Evidence(
        (
            at_most("ε·n^(3/2)(d + d_h)", scale, 0.01),
            at_least("d − n", d - n, 0),
            unlinked(query, key),
        ),
        (at_most("E rank(·, ½)", Estimate.of(ranks.double()), barrier.rank_barrier(n)),),
    )


def _growth_to_the_limit(seed: int, head_dim: int) -> Evidence:
    """d_h = 1024 against independent rows, 150 and 300 draws. Violator: d_h = 4."""
    inputs = torch.eye(_N, dtype=torch.float64)
    head = InputHead(inputs, head_dim)
    _, keys = head.draw(1, stream(seed, "one head"))
    low = simulate_ratio(head, 150, seed)
    high = simulate_ratio(PlateauHead(inputs), 300, seed + 1)
    stderr = (low.stderr**2 + high.stderr**2) ** 0.5 * _N
    growth = Estimate(abs(high.mean - low.mean) * _N, stderr, low.draws + high.draws)
    factor = keys.shape[-1] / math.log(keys.shape[-2])
    return Evidence(
        (
            at_most("max |XXᵀ − I|", off_identity(inputs @ inputs.mT), 0.0),
            at_least("dimensions of a key / log n", factor, barrier.log_constant(0.25)),
        ),
        (at_most("growth to d_h = ∞, columns", growth, 0.5),),
    )


RANK_THEOREMS = (
    Statement(
        "Lemma 1",
        Source.RANK_PAPER,
        "A.1, eq. 3",
        "a ∈ Rⁿ has a unique maximum, δ > 0 above the next score; T > 0.",
        "‖softmax(a/T) − hardmax(a)‖₁ ≤ 2(n−1)e^(−δ/T).",
        _softmax_row,
        {"top": 1.02},
        {"top": 0.5},
    ),
    Statement(
        "Lemma 2",
        Source.RANK_PAPER,
        "A.1, eqs 5–6",
        "n ≥ 1, p ∈ [0, 1] (published: p ∈ [0, ∞)).",
        "δ_n(p) = e^(−pn) − (1−p)ⁿ ≤ ½p²n·e^(−p(n−1)), which is ≤ ½p² for n = 1 and "
        "≤ 2e⁻²(1/(n−1) + 1/(n−1)²) for n ≥ 2.",
        _excess,
        {"largest": 1.0},
        {"largest": 2.0},
        finding="Published for every p ≥ 0 and false for odd n ≥ 3 beyond p = 1.54 (n = 3) or 1.32 "
        "(n = 25): δ_3(2) = 1.002 against 0.110. The proof replaces (1−p)^k by e^(−pk), which "
        "fails for p > 1.28 and even k ≥ 2. Theorem 2 uses p ≤ 1 only, so it stands.",
    ),
    Statement(
        "Lemma 3",
        Source.RANK_PAPER,
        "A.1, eq. 22",
        "The rows of A are independent, not necessarily alike; p_ij = P(a_ij is its row's "
        "maximum); maxima are unique.",
        "The expected number of empty columns of hardmax(A) equals Σ_j Π_i (1 − p_ij).",
        _unequal_rows,
        {"own_draws": True},
        {"own_draws": False},
        finding="The paper does not ask for unique maxima, which are needed: for a constant matrix "
        "every p_ij is 1, the formula says 0, and n − 1 columns are empty.",
    ),
    Statement(
        "Lemma 4",
        Source.RANK_PAPER,
        "A.1",
        "G has independent N(0, 1) entries; u and v are orthogonal unit vectors.",
        "Gu and Gv are independent N(0, I).",
        _moments,
        {"cosine": 0.0},
        {"cosine": 0.6},
        finding="The proof numbers the entries of Gu and Gv from 1 to n; there are m of them. "
        "The conclusion is not affected.",
    ),
    Statement(
        "Theorem 2",
        Source.RANK_PAPER,
        "A.1, eqs 30–33",
        "W_q and W_k have independent N(0, 1) entries; XXᵀ = I exactly; n ≥ 2; any d_h.",
        "E rank(hardmax(XW_qW_kᵀXᵀ)) ≤ (1−1/e)n + 2e⁻²(1 + 1/(n−1))².",
        _theorem_2,
        {"tied": False},
        {"tied": True},
    ),
    Statement(
        "Theorem 1, barrier",
        Source.RANK_PAPER,
        "3.1, eq. 2",
        "As Theorem 2, but XXᵀ = I + E with |E_ij| ≤ ε = o(1/(n^(3/2)(d+d_h))), d ≥ n, n large, "
        "δ small.",
        "E rank(hardmax(XW_qW_kᵀXᵀ), δ) ≤ (1−1/e)n + O(1); here with Theorem 2's constant.",
        _theorem_1,
        {"evenly_apart": False},
        {"evenly_apart": True},
        finding="The proof assumes that hardmax is continuous; it is not (see Gap lemma). Equation "
        "2 stands: Total variation proves it without continuity. Its hypothesis is far stricter "
        "than Gaussian inputs of width 384 (100 tokens, made unit vectors), where "
        "ε·n^(3/2)(d+d_h) is about 10⁵; and a simplex, with |E_ij| = 1/(n−1), exceeds the bound. "
        "At d_h = ∞ it uses 0.60, 0.94 and 1.3 columns more than orthonormal inputs at n = 10, 40 "
        "and 160, and the excess grows like (ln n)/e, so no O(1) is enough there. The text adds "
        "that almost "
        "orthonormality allows exponentially many vectors; not here: the theorem assumes d ≥ n.",
    ),
    Statement(
        "Theorem 1, saturation",
        Source.RANK_PAPER,
        "3.1, after eq. 2, and A.3",
        "As above, and d_h = Ω(log n). Ours: XXᵀ = I, n = 40, and d_h ≥ C·log n with "
        "C = 4/(ε²/2 − ε³/3), ε = ¼, Johnson and Lindenstrauss' constant after Dasgupta and Gupta.",
        "The expected rank is approximately independent of d_h. Ours: it grows by less than half "
        "a column to d_h = ∞.",
        _growth_to_the_limit,
        {"head_dim": 1024},
        {"head_dim": 4},
        finding="No constant is enough for all n: with d_h = C·log n the share of the barrier "
        "tends to 0, because it depends on t⁴/d_h, t² ≈ 2 ln n. A fixed share needs (log n)²; a "
        "fixed gain per step, the paper's rule in Table 1, about log n at practical lengths.",
    ),
)
