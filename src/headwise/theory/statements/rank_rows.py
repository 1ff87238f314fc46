"""The rank paper on rows of scores and the columns they choose: A.1, A.3 and the remarks."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import PAPER_TOLERANCE, Estimate, LogWeights, count
from headwise.theory import barrier
from headwise.theory.ensembles import InputHead, PlateauHead, WideHead, orthonormal
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    distinct,
    equal,
    gaussian,
    off_identity,
)

_N = 40


def _softmax_row(scores: Tensor, claimed_gap: float) -> Evidence:
    top, heat = scores.topk(2).values, 0.1
    distance = 2 * float(1 - torch.softmax(scores / heat, -1).max())
    return Evidence(
        (at_least("gap", float(top[0] - top[1]), claimed_gap),),
        (at_most("1-norm", distance, barrier.softmax_to_hardmax(_N, claimed_gap, heat)),),
    )


def _one_clear_maximum(seed: int) -> Evidence:
    # All runners-up nearly equal: the case in which the lemma is nearly tight.
    scores = 0.01 * gaussian(seed, "lemma1", _N).clamp(-2, 2)
    scores[seed % _N] = 1.02
    return _softmax_row(scores, 1.0)


def _gap_too_small(seed: int) -> Evidence:
    scores = torch.zeros(_N, dtype=torch.float64)
    scores[seed % _N] = 0.5
    return _softmax_row(scores, 1.0)


def _excess(largest: float) -> Evidence:
    """Both inequalities of Lemma 2 on a grid of n and of p up to ``largest``, as ratios."""
    first = second = 0.0
    for n in (*range(1, 30), 100):
        for p in torch.linspace(0.01, largest, 100).tolist():
            one, two = barrier.exponential_excess_bounds(n, p)
            first = max(first, barrier.exponential_excess(n, p) / one)
            second = max(second, one / two)
    return Evidence(
        (at_most("largest p", largest, 1.0),),
        (
            at_most("δ_n(p) over its first bound", first, 1.0),
            at_most("first over second", second, 1.0),
        ),
    )


def _small_p(seed: int) -> Evidence:
    return _excess(1.0 - seed % 2 / 100)


def _large_p(seed: int) -> Evidence:
    return _excess(2.0 + seed % 2 / 100)


def _chi_square(choices: Tensor, columns: int) -> float:
    """Chi-square of independence between the choices of the first two rows."""
    table = torch.zeros(columns**2, dtype=torch.float64)
    pair = choices[:, 0] * columns + choices[:, 1]
    table = table.scatter_add_(0, pair, torch.ones(len(pair), dtype=torch.float64))
    table = table.reshape(columns, columns)
    expected = table.sum(1, keepdim=True) * table.sum(0, keepdim=True) / table.sum()
    return float(((table - expected).square() / expected.clamp(min=1e-9)).sum())


def _unequal_rows(seed: int, uniforms: Tensor) -> Evidence:
    """Rows with probabilities of their own choose by inverting one uniform number each."""
    n = uniforms.shape[1]
    chances = torch.softmax(gaussian(seed, "lemma3", n, n), -1)
    edges = chances.cumsum(-1)[:, :-1].contiguous()
    choices = torch.searchsorted(edges, uniforms.T.contiguous()).T
    used = distinct(choices)
    empty = Estimate(n - used.mean, used.stderr, used.draws)
    limit = barrier.independence_limit(n)
    return Evidence(
        (at_most("chi-square of two rows", _chi_square(choices, n), limit),),
        (equal("empty columns", empty, barrier.empty_columns(chances)),),
    )


def _independent_rows(seed: int) -> Evidence:
    uniforms = torch.rand(20000, 8, generator=stream(seed, "lemma3"), dtype=torch.float64)
    return _unequal_rows(seed, uniforms)


def _rows_that_share_a_draw(seed: int) -> Evidence:
    uniforms = torch.rand(20000, 1, generator=stream(seed, "lemma3"), dtype=torch.float64)
    return _unequal_rows(seed, uniforms.expand(-1, 8))


def _moments(seed: int, cosine: float) -> Evidence:
    """Every second and fourth moment of (Gu; Gv), in standard errors from those of N(0, I)."""
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
        (at_most("uᵀv", abs(float(pair[0] @ pair[1])), 0.0),),
        (at_most("largest moment's deviation, standard errors", worst, 5.0),),
    )


def _orthogonal_pair(seed: int) -> Evidence:
    return _moments(seed, 0.0)


def _oblique_pair(seed: int) -> Evidence:
    return _moments(seed, 0.6)


def _rank_of(scores: Tensor) -> Estimate:
    return distinct(scores.argmax(-1))


def _weights(seed: int, draws: int, width: int, head_dim: int) -> tuple[Tensor, Tensor]:
    shape = (draws, width, head_dim)
    return gaussian(seed, "query weights", *shape), gaussian(seed, "key weights", *shape)


def _theorem_2(inputs: Tensor, query: Tensor, key: Tensor) -> Evidence:
    n = inputs.shape[0]
    linked = float((query * key).mean().abs()) * query.numel() ** 0.5
    return Evidence(
        (
            at_most("max |XXᵀ − I|", off_identity(inputs @ inputs.mT), 0.0),
            at_most("correlation of W_q and W_k, standard errors", linked, 5.0),
        ),
        (at_most("E rank", _rank_of(inputs @ query @ (inputs @ key).mT), barrier.rank_barrier(n)),),
    )


def _orthonormal_inputs(seed: int) -> Evidence:
    inputs = orthonormal((_N, 64), stream(seed, "theorem2"))
    return _theorem_2(inputs, *_weights(seed, 400, 64, 256))


def _tied_weights(seed: int) -> Evidence:
    inputs = orthonormal((_N, 64), stream(seed, "theorem2"))
    query, _ = _weights(seed, 50, 64, 256)
    return _theorem_2(inputs, query, query)


def _theorem_1(seed: int, inputs: Tensor, head_dim: int) -> Evidence:
    n, d = inputs.shape
    query, key = _weights(seed, 400, d, head_dim)
    scale = barrier.orthonormality_scale(n, d, head_dim, off_identity(inputs @ inputs.mT))
    matrices = torch.nn.functional.one_hot((inputs @ query @ (inputs @ key).mT).argmax(-1), n)
    # Columns of a hardmax matrix are orthogonal; their norms are its singular values.
    ranks = (matrices.sum(1).double().sqrt() >= 0.5).sum(-1)
    return Evidence(
        (at_most("ε·n^(3/2)(d + d_h)", scale, 0.01), at_least("d − n", d - n, 0)),
        (at_most("E rank(·, ½)", Estimate.of(ranks.double()), barrier.rank_barrier(n)),),
    )


def _almost_orthonormal(seed: int) -> Evidence:
    exact, noise = orthonormal((_N, 64), stream(seed, "x")), gaussian(seed, "noise", _N, 64)
    return _theorem_1(seed, exact + 1e-8 * noise, 256)


def simplex(corners: int) -> Tensor:
    """Unit vectors with every inner product −1/(n−1): no rows are more evenly apart."""
    centred = torch.eye(corners, dtype=torch.float64) - 1 / corners
    return torch.nn.functional.normalize(centred, dim=-1)


def _simplex_inputs(seed: int) -> Evidence:
    return _theorem_1(seed, simplex(20), 2048)


def _growth_to_the_limit(seed: int, inputs: Tensor, head_dim: int) -> Evidence:
    """By how many columns the rank still grows from this head dimension to infinity."""
    low = simulate_ratio(InputHead(inputs, head_dim), 150, seed)
    high = simulate_ratio(PlateauHead(inputs), 300, seed + 1)
    stderr = (low.stderr**2 + high.stderr**2) ** 0.5 * _N
    growth = Estimate(abs(high.mean - low.mean) * _N, stderr, low.draws + high.draws)
    factor = head_dim / float(torch.tensor(float(_N)).log())
    return Evidence(
        (at_least("d_h / log n", factor, barrier.log_constant(0.25)),),
        (at_most("growth to d_h = ∞, columns", growth, 0.5),),
    )


def _many_dimensions(seed: int) -> Evidence:
    return _growth_to_the_limit(seed, torch.eye(_N, dtype=torch.float64), 1024)


def _few_dimensions(seed: int) -> Evidence:
    return _growth_to_the_limit(seed, torch.eye(_N, dtype=torch.float64), 4)


def _temperatures(seed: int, scale: float) -> Evidence:
    """ε-rank at T = √d_h against T = 1e-5, inputs and weights N(0, 1) of width 384, rescaled."""
    n, width, head_dim = 60, 384, 64
    inputs = gaussian(seed, "remark1", 30, n, width)
    query, key = _weights(seed, 30, width, head_dim)
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


RANK_ROWS = (
    Statement(
        "Lemma 1",
        Source.RANK_PAPER,
        "A.1, eq. 3",
        "a ∈ Rⁿ has a unique maximum, δ > 0 above the next score; T > 0.",
        "‖softmax(a/T) − hardmax(a)‖₁ ≤ 2(n−1)e^(−δ/T).",
        _one_clear_maximum,
        _gap_too_small,
    ),
    Statement(
        "Lemma 2",
        Source.RANK_PAPER,
        "A.1, eqs 5–6",
        "n ≥ 1, p ∈ [0, 1] (printed: p ∈ [0, ∞)).",
        "δ_n(p) = e^(−pn) − (1−p)ⁿ ≤ ½p²n·e^(−p(n−1)), which is ≤ ½p² for n = 1 and "
        "≤ 2e⁻²(1/(n−1) + 1/(n−1)²) for n ≥ 2.",
        _small_p,
        _large_p,
        finding="Printed for every p ≥ 0 and false for odd n ≥ 3 beyond p = 1.54 (n = 3) or 1.32 "
        "(n = 25): δ_3(2) = 1.002 against 0.110. The proof replaces (1−p)^k by e^(−pk), which "
        "fails for p > 1 and even k. Theorem 2 uses p ≤ 1 only, so it stands.",
    ),
    Statement(
        "Lemma 3",
        Source.RANK_PAPER,
        "A.1, eq. 22",
        "The rows of A are independent, not necessarily alike; p_ij = P(a_ij is its row's "
        "maximum); maxima are unique.",
        "The expected number of empty columns of hardmax(A) equals Σ_j Π_i (1 − p_ij).",
        _independent_rows,
        _rows_that_share_a_draw,
        finding="Unique maxima are not printed and are needed: for a constant matrix every p_ij is "
        "1, the formula says 0, and n − 1 columns are empty.",
    ),
    Statement(
        "Lemma 4",
        Source.RANK_PAPER,
        "A.1",
        "G has independent N(0, 1) entries; u and v are orthogonal unit vectors.",
        "Gu and Gv are independent N(0, I).",
        _orthogonal_pair,
        _oblique_pair,
    ),
    Statement(
        "Theorem 2",
        Source.RANK_PAPER,
        "A.1, eqs 30–33",
        "W_q and W_k have independent N(0, 1) entries; XXᵀ = I exactly; n ≥ 2; any d_h.",
        "E rank(hardmax(XW_qW_kᵀXᵀ)) ≤ (1−1/e)n + 2e⁻²(1 + 1/(n−1))².",
        _orthonormal_inputs,
        _tied_weights,
    ),
    Statement(
        "Theorem 1, barrier",
        Source.RANK_PAPER,
        "3.1, eq. 2",
        "As Theorem 2, but XXᵀ = I + E with |E_ij| ≤ ε = o(1/(n^(3/2)(d+d_h))), d ≥ n, n large, "
        "δ small.",
        "E rank(hardmax(XW_qW_kᵀXᵀ), δ) ≤ (1−1/e)n + O(1); here with Theorem 2's constant.",
        _almost_orthonormal,
        _simplex_inputs,
        finding="The proof takes hardmax for continuous; it is not (see Gap lemma). The theorem "
        "stands: Total variation proves it without continuity. Its hypothesis is far stricter than "
        "Gaussian inputs of width 384, where ε·n^(3/2)(d+d_h) is about 10⁵; and a simplex, with "
        "|E_ij| = 1/(n−1), exceeds the bound.",
    ),
    Statement(
        "Theorem 1, saturation",
        Source.RANK_PAPER,
        "3.1, after eq. 2",
        "As above, and d_h = Ω(log n); here d_h ≥ C·log n with C of Remark 5 at ε = ¼.",
        "The expected rank is approximately independent of d_h: it grows by less than half a "
        "column to d_h = ∞ (n = 40).",
        _many_dimensions,
        _few_dimensions,
        finding="No constant is enough for all n: with d_h = C·log n the share of the barrier "
        "tends to 0, because it depends on t⁴/d_h, t² ≈ 2 ln n. A fixed share needs (log n)²; a "
        "fixed gain per step, the paper's rule in Table 1, needs log n.",
    ),
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
