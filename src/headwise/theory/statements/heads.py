"""The heads paper: what full rank can do, what low rank cannot, and what depth buys."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import special
from torch import Tensor

from headwise.attention.constructions import BiasedNeighbours, TwoLayerVote, nearest_neighbour
from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory import separation
from headwise.theory.harmonics import (
    Values,
    energies,
    error_at,
    log_coefficient,
    log_dimension,
)
from headwise.theory.nearest import (
    heads_error,
    majority_vote_error,
    mean_rank_one_success,
    neighbours,
)
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    equal,
    gaussian,
)

#: Constants with which the computable bound implies Theorem 2 on the grids below.
REGIME_1_CONSTANT, REGIME_2_CONSTANT = 1.0, 0.2


def _full_rank(points: Tensor, y: Tensor) -> Evidence:
    """One full-rank hardmax head against the point at the least distance."""
    found = nearest_neighbour(y.shape[-1])(y.unsqueeze(1), points)[:, 0]
    closest = (points - y.unsqueeze(1)).norm(dim=-1).argmin(-1)
    error = (found - points[torch.arange(len(points)), closest]).square().sum(-1)
    off = max(float((part.norm(dim=-1) - 1).abs().max()) for part in (points, y))
    return Evidence(
        (at_most("distance from the sphere", off, 0.0),),
        (at_most("largest squared error", float(error.max()), 0.0),),
    )


def _points_on_the_sphere(seed: int) -> Evidence:
    # Clustered points: the statement allows any distribution.
    points = gaussian(seed, "points", 300, 17, 6) + 2 * gaussian(seed, "centre", 300, 1, 6)
    unit = torch.nn.functional.normalize
    return _full_rank(unit(points, dim=-1), unit(gaussian(seed, "y", 300, 6), dim=-1))


def _points_of_any_norm(seed: int) -> Evidence:
    y = torch.nn.functional.normalize(gaussian(seed, "y", 300, 6), dim=-1)
    return _full_rank(gaussian(seed, "points", 300, 17, 6), y)


def _reduction(seed: int, spread: float) -> Evidence:
    """A layer of rank-2 hardmax heads with random values, against its part along x₁ − x₂.

    ``spread`` pulls x₂ towards x₁; at 1 the pair is orthonormal.
    """
    d, heads = 5, 3
    pairs, y = neighbours(d, 40000, stream(seed, "reduction"))
    near = pairs[:, 0] + spread * (pairs[:, 1] - pairs[:, 0])
    pairs = torch.stack([pairs[:, 0], torch.nn.functional.normalize(near, dim=-1)], 1)
    forms = gaussian(seed, "forms", heads, d, 2) @ gaussian(seed, "queries", heads, 2, d)
    values = torch.eye(d, dtype=torch.float64) / heads + gaussian(seed, "V", heads, d, d) / 50
    x = torch.nn.functional.normalize(pairs[:, 0] - pairs[:, 1], dim=-1)
    first = torch.einsum("sd,hde,se->sh", x, forms, y).sign()
    nearer = pairs[torch.arange(len(y)), (pairs @ y.unsqueeze(-1))[..., 0].argmax(-1)]
    picked = (pairs.sum(1).unsqueeze(1) + first.unsqueeze(-1) * (pairs[:, :1] - pairs[:, 1:])) / 2
    layer = torch.einsum("hde,she->sd", values, picked)
    quadratic = torch.einsum("sd,hde,se->sh", x, values, x)
    along = (x * y).sum(-1).sign() - (quadratic * first).sum(-1)
    excess = (nearer - layer).square().sum(-1) - along.square() / 2
    inner = (pairs[:, 0] * pairs[:, 1]).sum(-1).abs().max()
    return Evidence(
        (at_most("max |x₁ᵀx₂|", float(inner), 0.0),),
        (at_least("E‖f − T‖² − ½E(sgn(xᵀy) − Σg)²", Estimate.of(excess), 0.0),),
    )


def _orthonormal_pairs(seed: int) -> Evidence:
    return _reduction(seed, 1.0)


def _close_pairs(seed: int) -> Evidence:
    return _reduction(seed, 0.05)


def legendre(width: int, degree: int, t: np.ndarray) -> np.ndarray:
    """The Legendre polynomial of the sphere in R^d, P(1) = 1."""
    order = width / 2 - 1
    top = special.eval_gegenbauer(degree, order, 1.0)
    return np.asarray(special.eval_gegenbauer(degree, order, t) / top)


def _represented(seed: int, power: int) -> Evidence:
    """T u_L by Monte Carlo against the expansion of sgn to degree L = 3, in R^4.

    u_L has the coefficients λ_ℓ^power; the lemma needs power −1.
    """
    d, degrees = 4, (1, 3)
    signs = np.array([1.0, -1.0])
    scale = signs * np.exp(log_coefficient(d, np.array(degrees)))
    size = np.exp(log_dimension(d, np.array(degrees)))
    draw = torch.nn.functional.normalize(gaussian(seed, "keys and queries", 2, 400000, d), dim=-1)
    k, q = draw[0].numpy(), draw[1].numpy()
    x, y = np.eye(d)[0], np.array([0.8, 0.6, 0.0, 0.0])
    cosine = (k * q).sum(-1)
    terms = [legendre(d, ell, cosine) for ell in degrees]
    u = sum(n * s**power * p for n, s, p in zip(size, scale, terms, strict=True))
    seen = Estimate.of(torch.as_tensor(u * np.sign(k @ x) * np.sign(q @ y)))
    terms = [legendre(d, ell, np.array(x @ y)) for ell in degrees]
    wanted = sum(n * s * float(p) for n, s, p in zip(size, scale, terms, strict=True))
    left = 1 - energies(d, 2000).sum()
    return Evidence(
        (equal("power of λ_ℓ in u", power, -1),),
        (
            equal("T u_3 at xᵀy = 0.8, against sgn to degree 3", seen, wanted),
            at_most("‖sgn − T u_L‖² at L = 3999", left, 0.001),
        ),
    )


def _inverse_coefficients(seed: int) -> Evidence:
    return _represented(seed, -1)


def _plain_coefficients(seed: int) -> Evidence:
    return _represented(seed, 1)


def _grid(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on the sphere in R³, turned at random: a product rule."""
    node, weight = np.polynomial.legendre.leggauss(40)
    angle = (np.arange(80) + 0.5) * 2 * math.pi / 80
    height, turn = (part.ravel() for part in np.meshgrid(node, angle, indexing="ij"))
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(turn), radius * np.sin(turn), height], 1)
    rotation = np.linalg.qr(gaussian(seed, "rotation", 3, 3).numpy())[0]
    return points @ rotation, np.repeat(weight, 80) / (2 * 80)


def _orthogonality(seed: int, functions: np.ndarray, points: np.ndarray, w: np.ndarray) -> Evidence:
    """Gram matrix of T(Y⊗Y): T factors, so it is the squared Gram matrix of ∫Y(k)sgn(kᵀx)."""
    moved = np.sign(points @ points.T) @ (w[:, None] * functions)
    gram = (moved.T @ (w[:, None] * moved)) ** 2
    scale = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    off = np.abs(gram / scale - np.eye(len(gram))).max()
    own = functions.T @ (w[:, None] * functions)
    norms = np.sqrt(np.outer(np.diag(own), np.diag(own)))
    return Evidence(
        (at_most("overlap of the functions", np.abs(own / norms - np.eye(len(own))).max(), 1e-9),),
        (at_most(f"largest overlap of T(Y⊗Y), seed {seed}", off, 1e-3),),
    )


def _cubics(points: np.ndarray) -> np.ndarray:
    powers = [(i, j, 3 - i - j) for i in range(4) for j in range(4 - i)]
    return np.stack([np.prod(points ** np.array(power), axis=1) for power in powers], 1)


def _harmonics(seed: int) -> Evidence:
    points, w = _grid(seed)
    root = np.sqrt(w)[:, None]
    # Orthonormal linear functions, then what cubics add to them: degrees 1 and 3.
    basis = np.linalg.qr(root * np.concatenate([points, _cubics(points)[:, :7]], 1))[0]
    return _orthogonality(seed, basis / root, points, w)


def _mixed_degrees(seed: int) -> Evidence:
    points, w = _grid(seed)
    return _orthogonality(seed, np.stack([points[:, 0], points[:, 0] ** 3], 1), points, w)


def tail_energy(width: int, degree: int) -> float:
    """What N·λ_ℓ² tends to for ℓ ≫ d: 2^(d+1)Γ(d/2)²/(π²Γ(d−1)) · ℓ⁻², about 1.02·√d·ℓ⁻²."""
    log_constant = (
        (width + 1) * math.log(2) + 2 * math.lgamma(width / 2) - math.lgamma(width - 1)
    ) - 2 * math.log(math.pi)
    return math.exp(log_constant - 2 * math.log(degree))


def _tail(width: int, degree: int) -> Evidence:
    log_energy = log_dimension(width, degree) + 2 * log_coefficient(width, degree)
    ratio = float(np.exp(log_energy)) / tail_energy(width, degree)
    root = tail_energy(width, 1) / (4 * math.sqrt(2 * math.pi * width) / math.pi**2)
    return Evidence(
        (at_least("ℓ / d²", degree / width**2, 100.0),),
        (
            equal("Nλ_ℓ² over its limit", Estimate(ratio, 0.001, 1), 1.0),
            equal("limit over (4√(2πd)/π²)·ℓ⁻²", Estimate(root, 0.01, 1), 1.0),
        ),
    )


def _high_degree(seed: int) -> Evidence:
    return _tail(64, 10**6 + 1 + 2 * seed)


def _low_degree(seed: int) -> Evidence:
    return _tail(64, 3 + 2 * seed)


def _reached(seed: int, values: Values) -> Evidence:
    """The dimension of the degree-1 part of xᵀVx·g(Kᵀx), by numerical rank, d = 6 and r = 3."""
    d, r = 6, 3
    points = torch.nn.functional.normalize(gaussian(seed, "points", 4000, d), dim=-1)
    seen = points @ gaussian(seed, "projection", d, r)
    form = torch.eye(d) if values is Values.IDENTITY else gaussian(seed, "form", d, d)
    quadratic = torch.einsum("si,ij,sj->s", points, form.double(), points)
    cubic = torch.einsum("si,sj,sk->sijk", seen, seen, seen).flatten(1)
    functions = quadratic.unsqueeze(-1) * torch.cat([seen, cubic], 1)
    # The degree-1 part is E[f(x)x]; with exact moments, by the points and their rotations.
    part = functions.mT @ points / len(points)
    counted = int((torch.linalg.svdvals(part) > 0.02 * torch.linalg.svdvals(part)[0]).sum())
    return Evidence(
        (at_most("‖V − I‖", float((form - torch.eye(d)).norm()), 0.0),),
        (at_most("dimensions reached in degree 1", counted, math.comb(r + 1, 1)),),
    )


def _identity_values(seed: int) -> Evidence:
    return _reached(seed, Values.IDENTITY)


def _general_values(seed: int) -> Evidence:
    return _reached(seed, Values.ANY)


def _regime_1(seed: int, forms: Tensor) -> Evidence:
    """A real layer in the first regime, and the computable bound at every size of a grid."""
    h, r, d = forms.shape
    room = separation.high_accuracy_regime(d, min(r, d - 3))
    least = math.inf
    for width in (8, 16, 32, 64):
        for rank in range(1, width - 2):
            limit = separation.high_accuracy_regime(width, rank)
            if limit.log_heads >= 0:
                bound = error_at(width, rank, limit.log_heads)
                least = min(least, bound / limit.error)
    error = heads_error(forms, Values.IDENTITY, seed)
    return Evidence(
        (
            at_most("r − (d − 3)", r - (d - 3), 0),
            at_most("log₂ H less its limit", math.log2(h) - room.log_heads / math.log(2), 0),
        ),
        (
            at_least("error of the layer", error, REGIME_1_CONSTANT * room.error),
            at_least("computable bound over c/(d+1), least", least, REGIME_1_CONSTANT),
        ),
    )


def _within_regime_1(seed: int) -> Evidence:
    return _regime_1(seed, gaussian(seed, "regime 1", 64, 1, 16))


def _full_rank_layer(seed: int) -> Evidence:
    return _regime_1(seed, torch.eye(16, dtype=torch.float64).unsqueeze(0))


def _regime_2(widths: tuple[int, ...], exponent: float) -> Evidence:
    """The computable bound at the number of heads that the second regime allows."""
    least, covered = math.inf, 0
    for width in widths:
        for error in (0.01, 0.03, 0.1, 0.2, 0.4):
            for rank in (1, 4, 16, 64):
                room = width - 2 * math.e**2 * rank
                if room <= 0 or error < 1 / room:
                    continue
                limit = separation.high_dimensional_regime(width, rank, error, exponent)
                if limit.log_heads >= 0:
                    least = min(least, error_at(width, rank, limit.log_heads) / error)
                    covered += 1
    return Evidence(
        (
            at_most("C'", exponent, REGIME_2_CONSTANT),
            at_least("sizes with at least one head", covered, 1),
        ),
        (at_least("computable bound over ε, least", least, 1.0),),
    )


def _within_regime_2(seed: int) -> Evidence:
    return _regime_2((8, 64, 512, 10**4 + seed, 10**6), REGIME_2_CONSTANT)


def _too_many_heads(seed: int) -> Evidence:
    return _regime_2((8, 64, 512, 10**4 + seed, 10**6), 1.0)


def _biased(seed: int, rank: int, biases: np.ndarray) -> Evidence:
    """f* by its layer, and the least number of heads of lower rank, which grows exponentially."""
    d = 16
    generator = stream(seed, "biased")
    pairs, _ = neighbours(d, 2000, generator)
    y = torch.randn(2000, d, generator=generator, dtype=torch.float64) * d**-0.25
    layer = BiasedNeighbours(d, biases.tolist())
    x = (pairs[:, 0] - pairs[:, 1]) / math.sqrt(2)
    steps = (math.sqrt(2) * (x * y).sum(-1, keepdim=True) + torch.as_tensor(biases)).sign()
    signs = torch.tensor([1.0, -1.0]).repeat(len(biases))[: len(biases)].double()
    wave = (steps * signs).sum(-1, keepdim=True)
    target = pairs.sum(1) / 2 + wave * x / math.sqrt(2)
    heads = math.exp(separation.log_heads_for_biased_error(d, min(rank, d - 1)))
    slope = (
        separation.log_heads_for_biased_error(32, 2) - separation.log_heads_for_biased_error(16, 2)
    ) / 16
    represented = float((layer(pairs, y) - target).abs().max())
    return Evidence(
        (at_most("r / d", rank / d, 0.5), at_least("biases", len(biases), math.sqrt(d))),
        (
            at_most("layer of full-rank biased heads less f*", represented, 0.0),
            at_least("heads of rank r for error 1/40", heads, 2.0 ** (d - rank)),
            at_least("log₂ of the growth per dimension", slope / math.log(2), 1.0),
        ),
    )


def _square_wave(seed: int) -> Evidence:
    return _biased(seed, 2, separation.square_wave(16))


def _nearly_full_rank(seed: int) -> Evidence:
    return _biased(seed, 15, separation.square_wave(16)[:1])


def _one_head(seed: int, same: bool) -> Evidence:
    """How often a random rank-one head is right, d = 16."""
    d, draws = 16, 60000
    pairs, y = neighbours(d, draws, stream(seed, "one head"))
    key = gaussian(seed, "key", draws, d)
    query = key if same else gaussian(seed, "query", draws, d)
    x = pairs[:, 0] - pairs[:, 1]
    guess = (key * x).sum(-1).sign() * (query * y).sum(-1).sign()
    right = Estimate.of((guess == (x * y).sum(-1).sign()).double())
    asymptotic = (mean_rank_one_success(10**4) - 0.5) * 100
    return Evidence(
        (at_most("largest |q − k|", float((query - key).abs().max()), 0.0),),
        (
            equal("P(right)", right, mean_rank_one_success(d)),
            equal("(P − ½)√d", Estimate(asymptotic, 1e-4, 1), math.sqrt(2 / math.pi) / math.pi),
        ),
    )


def _same_query_and_key(seed: int) -> Evidence:
    return _one_head(seed, same=True)


def _independent_query_and_key(seed: int) -> Evidence:
    return _one_head(seed, same=False)


def _votes(seed: int, different: int) -> Evidence:
    """The squared error of 21 votes, of which ``different`` are cast by heads of their own."""
    heads, d = 21, 4
    generator = stream(seed, "votes")
    pairs, y = neighbours(d, 20000, generator)
    forms = torch.randn(20000, different, d, generator=generator, dtype=torch.float64)
    x = (pairs[:, 0] - pairs[:, 1]).unsqueeze(-1)
    ballots = torch.sign(forms @ x) * torch.sign(forms @ y.unsqueeze(-1))
    wrong = torch.sign(ballots.sum((1, 2))) != torch.sign((x[..., 0] * y).sum(-1))
    return Evidence(
        (at_least("independent heads", different, heads),),
        (
            equal(
                "mean squared error",
                Estimate.of(2 * wrong.double()),
                majority_vote_error(d, heads),
            ),
        ),
    )


def _independent_votes(seed: int) -> Evidence:
    return _votes(seed, 21)


def _repeated_votes(seed: int) -> Evidence:
    return _votes(seed, 1)


def _two_layers(seed: int, targets: int) -> Evidence:
    """The error of the two-layer construction, against that of a majority vote."""
    d, heads, losses = 4, 21, []
    for number in range(60):
        model = TwoLayerVote(d, heads, seed=1000 * seed + number)
        pairs, y = neighbours(d, 100, stream(seed, "two layers", number))
        nearer = pairs[torch.arange(100), (pairs @ y.unsqueeze(-1))[..., 0].argmax(-1)]
        if targets == 1:  # without index, tokens cannot be told apart: both are the first
            pairs = pairs[:, :1].expand(-1, 2, -1)
        losses.append((model(pairs, y) - nearer).square().sum(-1).mean())
    found, geometry = Estimate.of(torch.stack(losses)), TwoLayerVote(d, heads).look_up.geometry
    return Evidence(
        (equal("target points the vote can tell apart", targets, 2),),
        (
            equal("mean squared error", found, majority_vote_error(d, heads)),
            equal("query-key rank of the look-up head", geometry.qk_rank, 1),
            equal("value rank of the look-up head, d", geometry.v_rank, d),
        ),
    )


def _two_targets(seed: int) -> Evidence:
    return _two_layers(seed, 2)


def _one_target(seed: int) -> Evidence:
    return _two_layers(seed, 1)


HEADS = (
    Statement(
        "Upper bound",
        Source.HEADS_PAPER,
        "slide Upper Bound",
        "y and x_1 … x_N lie on the sphere, from any distribution.",
        "One full-rank hardmax head (M = W = I) returns the nearest neighbour exactly.",
        _points_on_the_sphere,
        _points_of_any_norm,
        finding="The talk also writes = for softmax with 10¹⁰·I. That is an approximation: at a "
        "tie it returns the mean.",
    ),
    Statement(
        "Reduction to sgn",
        Source.HEADS_PAPER,
        "slide Reduction to Scalar Function",
        "x₁, x₂ a uniform orthonormal pair, y uniform on the sphere.",
        "E‖f − Σ attn_h‖² ≥ ½E(sgn(xᵀy) − Σ g_h)², g_h = xᵀV_hx·φ̃_h(K_hᵀx, y).",
        _orthonormal_pairs,
        _close_pairs,
    ),
    Statement(
        "Lemma sgn = Tu",
        Source.HEADS_PAPER,
        "slide Representing sgn",
        "u = Σ_ℓ λ_ℓ⁻¹ Σ_i Y_ℓ^i ⊗ Y_ℓ^i over odd degrees.",
        "[Tu](x, y) = ∫ u(q, k) sgn(xᵀk)sgn(qᵀy) is sgn(xᵀy).",
        _inverse_coefficients,
        _plain_coefficients,
        finding="Only as a limit: the coefficients 1/λ_ℓ grow, so no square-integrable u and no "
        "measure exists; Tu_L tends to sgn in L² while ‖u_L‖ diverges.",
    ),
    Statement(
        "Lemma orthogonality",
        Source.HEADS_PAPER,
        "slide Expansion of sgn",
        "Y_ℓ^i is an orthonormal basis of harmonics.",
        "The functions T(Y_ℓ^i ⊗ Y_ℓ^i) of odd degree are orthogonal.",
        _harmonics,
        _mixed_degrees,
    ),
    Statement(
        "Spectrum tail",
        Source.HEADS_PAPER,
        "slide Expansion of sgn",
        "ℓ ≫ d.",
        "The energy N(d, ℓ)λ_ℓ² of degree ℓ falls like √d·ℓ⁻², with constant 4√(2π)/π² = 1.02.",
        _high_degree,
        _low_degree,
        finding="Printed as d/ℓ². As an energy that is too large: it would leave a constant share "
        "beyond degree d, where 1/√d is left. For ℓ ≪ d the energy falls like ℓ^(−3/2).",
    ),
    Statement(
        "Lemma reach",
        Source.HEADS_PAPER,
        "slide Expansion of the head functions",
        "V_h = I, the simplification that the talk states.",
        "A rank-r head reaches at most C(r+ℓ, ℓ) harmonics of degree ℓ (exactly C(r+ℓ−1, ℓ)).",
        _identity_values,
        _general_values,
        finding="With a general V the count is larger: d = 6, r = 3, ℓ = 1 gives 6 > 4. The bounds "
        "of this project count M for any V.",
    ),
    Statement(
        "Theorem 2, high accuracy",
        Source.HEADS_PAPER,
        "slide Lower Bound, regime 1",
        "r ≤ d − 3, ε ≤ c/(d+1), H ≤ C·2^(d−(r+1)log₂(2d/r)).",
        "H generalised rank-r heads have error at least ε. Constants are not printed; the "
        "computable bound implies it with c = C = 1 for every rank at widths 8 to 64.",
        _within_regime_1,
        _full_rank_layer,
    ),
    Statement(
        "Theorem 2, high dimension",
        Source.HEADS_PAPER,
        "slide Lower Bound, regime 2",
        "d ≥ 5, ε ≥ c'/(d − 2e²r), H ≤ ½(d/(2e(r + C'/ε)))^(C'/ε).",
        "H generalised rank-r heads have error at least ε. The computable bound implies it with "
        "c' = 1, C' = 0.2 at widths 8 to 10⁶.",
        _within_regime_2,
        _too_many_heads,
    ),
    Statement(
        "Theorem on biased neighbours",
        Source.HEADS_PAPER,
        "slide Alternative Lower Bound",
        "y ~ N(0, I/√d); f* combines biased nearest neighbours; r < d. Here f* is a square wave of "
        "about 2.5√d biases, since the talk does not print one.",
        "A layer of full-rank biased heads represents f*; with rank-r heads the error exceeds 1/40 "
        "unless H·max‖V_h‖ ≳ c^(d−r). Here without ‖V_h‖: H must exceed 2^(d−r).",
        _square_wave,
        _nearly_full_rank,
        finding="The slide prints “unless H·max‖V_h‖ ≲ c^(d−r)”; the sign must be ≳.",
    ),
    Statement(
        "Random rank-one head",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "q = k, uniform; N = 2.",
        "The head is right with probability ½ + asin|wᵀy|/π; on average ½ + 0.254/√d.",
        _same_query_and_key,
        _independent_query_and_key,
        finding="Printed as about ½ + 1/√d: the rate is right, the constant is √(2/π)/π = 0.254.",
    ),
    Statement(
        "Majority vote",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "An odd number of independent random rank-one heads.",
        "The majority is right with high probability; its error is exactly the binomial one.",
        _independent_votes,
        _repeated_votes,
    ),
    Statement(
        "Two-layer construction",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "N = 2; tokens (x₁; 1; 0), (x₂; −1; 0), (y; 0; 0).",
        "Two hardmax layers of query-key rank one, without an MLP, return what the majority chose.",
        _two_targets,
        _one_target,
        finding="The look-up head has query-key rank 1 and value rank d: a rank-one value could "
        "not return a point.",
    ),
)
