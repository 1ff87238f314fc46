"""The heads paper: the proof's reduction to sgn, its expansion and what a head reaches of it."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy import special

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory.harmonic_bound import (
    Values,
    energies,
    log_coefficient,
    log_dimension,
)
from headwise.theory.nearest import (
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


def _reduction(seed: int, spread: float) -> Evidence:
    """d = 5, three rank-2 hardmax heads with random values, 40,000 draws.

    Violator: x₂ is pulled to x₁.
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


def legendre(width: int, degree: int, t: np.ndarray) -> np.ndarray:
    """The Legendre polynomial of the sphere in R^d, P(1) = 1."""
    order = width / 2 - 1
    top = special.eval_gegenbauer(degree, order, 1.0)
    return np.asarray(special.eval_gegenbauer(degree, order, t) / top)


def _represented(seed: int, power: int) -> Evidence:
    """d = 4, T u_3 by 400,000 draws, at xᵀy = 0.8. Violator: coefficients λ_ℓ instead of 1/λ_ℓ."""
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
    # E[u·P_ℓ(kᵀq)] is the coefficient of u in degree ℓ, because E[P_ℓ²] = 1/N.
    coefficients = [
        Estimate.of(torch.as_tensor(u * legendre(d, ell, cosine) * s))
        for ell, s in zip(degrees, scale, strict=True)
    ]
    return Evidence(
        tuple(
            equal(f"coefficient of u in degree {ell} times λ_{ell}", one, 1.0)
            for ell, one in zip(degrees, coefficients, strict=True)
        ),
        (
            equal("T u_3 at xᵀy = 0.8, against sgn to degree 3", seen, wanted),
            at_most("‖sgn − T u_L‖² at L = 3999", left, 0.001),
        ),
    )


def _grid(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights on the sphere in R³, turned at random: a product rule."""
    node, weight = np.polynomial.legendre.leggauss(40)
    angle = (np.arange(80) + 0.5) * 2 * math.pi / 80
    height, turn = (part.ravel() for part in np.meshgrid(node, angle, indexing="ij"))
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(turn), radius * np.sin(turn), height], 1)
    rotation = np.linalg.qr(gaussian(seed, "rotation", 3, 3).numpy())[0]
    return points @ rotation, np.repeat(weight, 80) / (2 * 80)


def _orthogonality(seed: int, mixed: bool) -> Evidence:
    """d = 3, degrees 1 and 3, by quadrature (T factors into two integrals).

    Violator: x₁ and x₁³.
    """
    points, w = _grid(seed)
    functions = np.stack([points[:, 0], points[:, 0] ** 3], 1) if mixed else _harmonics(points, w)
    moved = np.sign(points @ points.T) @ (w[:, None] * functions)
    gram = (moved.T @ (w[:, None] * moved)) ** 2
    scale = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    off = np.abs(gram / scale - np.eye(len(gram))).max()
    own = functions.T @ (w[:, None] * functions)
    norms = np.sqrt(np.outer(np.diag(own), np.diag(own)))
    return Evidence(
        (at_most("overlap of the functions", np.abs(own / norms - np.eye(len(own))).max(), 1e-9),),
        (at_most("largest overlap of T(Y⊗Y)", off, 1e-3),),
    )


def _cubics(points: np.ndarray) -> np.ndarray:
    powers = [(i, j, 3 - i - j) for i in range(4) for j in range(4 - i)]
    return np.stack([np.prod(points ** np.array(power), axis=1) for power in powers], 1)


def _harmonics(points: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Orthonormal linear functions, and what cubics add to them: degrees 1 and 3."""
    root = np.sqrt(w)[:, None]
    return np.linalg.qr(root * np.concatenate([points, _cubics(points)[:, :7]], 1))[0] / root


def tail_energy(width: int, degree: int) -> float:
    """What N·λ_ℓ² tends to for ℓ ≫ d: 2^(d+1)Γ(d/2)²/(π²Γ(d−1)) · ℓ⁻², about 1.02·√d·ℓ⁻²."""
    log_constant = (
        (width + 1) * math.log(2) + 2 * math.lgamma(width / 2) - math.lgamma(width - 1)
    ) - 2 * math.log(math.pi)
    return math.exp(log_constant - 2 * math.log(degree))


def _tail(seed: int, first: int) -> Evidence:
    """d = 64, ℓ = 10⁶ + 1. Violator: ℓ = 3."""
    width, degree = 64, first + 2 * seed
    log_energy = log_dimension(width, degree) + 2 * log_coefficient(width, degree)
    ratio = float(np.exp(log_energy)) / tail_energy(width, degree)
    root = tail_energy(width, 1) / (4 * math.sqrt(2 * math.pi * width) / math.pi**2)
    return Evidence(
        (at_least("ℓ / d", degree / width, 1000.0),),
        (
            equal("Nλ_ℓ² over its limit", Estimate(ratio, 0.001, 1), 1.0),
            equal("limit over (4√(2πd)/π²)·ℓ⁻²", Estimate(root, 0.01, 1), 1.0),
        ),
    )


def _reached(seed: int, values: Values) -> Evidence:
    """d = 6, r = 3, the degree-1 part of xᵀVx·g(Kᵀx), by numerical rank. Violator: a Gaussian V."""
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
        (
            at_most("dimensions reached in degree 1", counted, math.comb(r + 1, 1)),
            equal("the same, exactly C(r, 1)", counted, math.comb(r, 1)),
        ),
    )


EXPANSION = (
    Statement(
        "Reduction to sgn",
        Source.HEADS_PAPER,
        "slide Reduction to Scalar Function",
        "x₁, x₂ a uniform orthonormal pair, y uniform on the sphere.",
        "E‖f − Σ attn_h‖² ≥ ½E(sgn(xᵀy) − Σ g_h)², g_h = xᵀV_hx·φ̃_h(K_hᵀx, y).",
        _reduction,
        {"spread": 1.0},
        {"spread": 0.05},
    ),
    Statement(
        "Lemma sgn = Tu",
        Source.HEADS_PAPER,
        "slide Representing sgn",
        "Published: some u exists. Ours: u = Σ_ℓ λ_ℓ⁻¹ Σ_i Y_ℓ^i ⊗ Y_ℓ^i over odd degrees.",
        "(Tu)(x, y) = ∫ u(q, k) sgn(xᵀk)sgn(qᵀy) is sgn(xᵀy).",
        _represented,
        {"power": -1},
        {"power": 1},
        finding="Only as a limit: the coefficients 1/λ_ℓ grow, so no square-integrable u and no "
        "finite signed measure exists; Tu_L tends to sgn in L² while ‖u_L‖ diverges.",
    ),
    Statement(
        "Lemma orthogonality",
        Source.HEADS_PAPER,
        "slide Expansion of sgn",
        "Y_ℓ^i is an orthonormal basis of harmonics.",
        "The functions T(Y_ℓ^i ⊗ Y_ℓ^i) are orthogonal (those of even degree vanish).",
        _orthogonality,
        {"mixed": False},
        {"mixed": True},
        finding="The notes call them orthonormal; their norms are λ_ℓ². So β_ℓ before them would "
        "be 1/λ_ℓ, which grows. The β_ℓ that decays, on the slide Combining, is λ_ℓ: the "
        "coefficient of normalised functions.",
    ),
    Statement(
        "Spectrum tail",
        Source.HEADS_PAPER,
        "slide Expansion of sgn, where the rate is d/ℓ²",
        "ℓ ≫ d.",
        "The energy N(d, ℓ)λ_ℓ² of degree ℓ falls like √d·ℓ⁻², with constant 4√(2π)/π² = 1.02.",
        _tail,
        {"first": 10**6 + 1},
        {"first": 3},
        finding="√d·ℓ⁻² is ours. The slide has N·β_ℓ ~ d/ℓ², and the notes speak of the "
        "energy of a degree; with β_ℓ of the slide Combining the energy is N·β_ℓ². d/ℓ² is too "
        "large: it would leave a constant share beyond degree d, where 1/√d is left. For ℓ ≪ d the "
        "energy falls like ℓ^(−3/2).",
    ),
    Statement(
        "Lemma reach",
        Source.HEADS_PAPER,
        "slide Expansion of the head functions",
        "V_h = I, the simplification that the talk states.",
        "A rank-r head reaches at most C(r+ℓ, ℓ) harmonics of degree ℓ. Ours: exactly "
        "C(r+ℓ−1, ℓ) for r < d.",
        _reached,
        {"values": Values.IDENTITY},
        {"values": Values.ANY},
        finding="With a general V the count is larger: d = 6, r = 3, ℓ = 1 gives 6 > 4. The bounds "
        "of this project count M for any V.",
    ),
)
