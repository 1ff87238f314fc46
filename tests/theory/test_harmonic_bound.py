"""The price of low rank: harmonics counted by hand, planted values, and layers that attack it."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import special

from headwise.errors import BadInputError, TooLargeError
from headwise.theory.harmonic_bound import (
    Values,
    energies,
    error_lower_bound,
    heads_needed,
    log_coefficient,
    log_dimension,
    log_heads_needed,
    log_reach,
)
from headwise.theory.nearest import random_heads_error
from headwise.theory.numerics import log_beta, log_binomial

ANY, IDENTITY = Values.ANY, Values.IDENTITY


def legendre(d: int, degree: int, t: np.ndarray) -> np.ndarray:
    """The Legendre polynomial of the sphere in R^d, P(1) = 1, from Gegenbauer's."""
    order = d / 2 - 1
    return special.eval_gegenbauer(degree, order, t) / special.eval_gegenbauer(degree, order, 1.0)


def reached_dimensions(d: int, r: int, degree: int, values: Values) -> int:
    """How many harmonics of one degree the functions xᵀVx·g(Kᵀx) have, counted by rank.

    g runs through monomials; each function is decomposed, on random points, into zonal
    harmonics of all degrees that can occur, and the coefficients of ``degree`` are ranked.
    """
    random, top = np.random.default_rng(d * 100 + r * 10 + degree), degree + 4
    degrees = range(1, top + 1, 2)
    points = random.normal(size=(900, d))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    blocks = []
    for ell in degrees:
        poles = random.normal(size=(round(float(np.exp(log_dimension(d, ell)))), d))
        poles /= np.linalg.norm(poles, axis=1, keepdims=True)
        blocks.append(legendre(d, ell, points @ poles.T))
    form = np.eye(d) if values is IDENTITY else random.normal(size=(d, d))
    quadratic = np.einsum("si,ij,sj->s", points, form, points)
    seen = points @ random.normal(size=(d, r))
    functions = [
        quadratic * np.prod(seen[:, list(choice)], axis=1)
        for power in range(1, top - 1, 2)
        for choice in itertools.combinations_with_replacement(range(r), power)
    ]
    basis = np.concatenate(blocks, axis=1)
    solution, *_ = np.linalg.lstsq(basis, np.stack(functions, 1), rcond=None)
    np.testing.assert_allclose(basis @ solution, np.stack(functions, 1), atol=1e-8)
    start = sum(block.shape[1] for block in blocks[: degrees.index(degree)])
    part = (
        blocks[degrees.index(degree)]
        @ solution[start : start + blocks[degrees.index(degree)].shape[1]]
    )
    return int(np.linalg.matrix_rank(part, tol=1e-7 * np.linalg.norm(part, 2)))


@pytest.mark.parametrize("values", [ANY, IDENTITY])
@pytest.mark.parametrize(
    ("d", "r", "degree"),
    [(4, 1, 1), (4, 1, 3), (4, 2, 1), (4, 2, 3), (5, 2, 3), (5, 3, 1), (6, 3, 1)],
)
def test_reach_against_numerical_rank(d, r, degree, values):
    cap = np.exp(log_dimension(d, degree))
    formula = min(cap, np.exp(log_reach(r, degree, values)))
    assert reached_dimensions(d, r, degree, values) == round(float(formula))


def test_general_values_break_the_printed_count():
    """C(r+ℓ, ℓ) is 4 for r = 3, ℓ = 1; a general V reaches 6 dimensions in R⁶."""
    assert math.comb(3 + 1, 1) == 4
    assert reached_dimensions(6, 3, 1, ANY) == 6
    assert reached_dimensions(6, 3, 1, IDENTITY) <= 4


@pytest.mark.parametrize(("d", "degree"), [(2, 1), (2, 7), (3, 4), (5, 3), (9, 6)])
def test_dimension_is_a_difference_of_binomials(d, degree):
    expected = math.comb(d + degree - 1, degree) - (
        math.comb(d + degree - 3, degree - 2) if degree >= 2 else 0
    )
    assert float(np.exp(log_dimension(d, degree))) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("d", "degree"), [(3, 1), (3, 3), (8, 5), (64, 7)])
def test_coefficient_against_the_integral_that_defines_it(d, degree):
    """Funk–Hecke: λ_ℓ is the average of sgn(t)·P_ℓ(t) over t = xᵀy."""
    mpmath.mp.dps = 30
    order = mpmath.mpf(d) / 2 - 1
    top = mpmath.gegenbauer(degree, order, 1)

    def weighted(t):
        return mpmath.gegenbauer(degree, order, t) / top * (1 - t * t) ** (order - 0.5)

    total = 2 * mpmath.quad(lambda t: (1 - t * t) ** (order - 0.5), [0, 1])
    value = 2 * mpmath.quad(weighted, [0, 1]) / total
    assert float(np.exp(log_coefficient(d, degree))) == pytest.approx(abs(float(value)), rel=1e-9)


def test_planted_energies():
    assert energies(64, 4) == pytest.approx([0.64161, 0.10843, 0.04937, 0.02969], abs=5e-6)


@pytest.mark.parametrize("t", [0.0, 0.3, -0.8])
def test_energies_expand_the_arcsine(t):
    """(2/π) asin t = Σ N λ² P_ℓ(t)."""
    degrees = 2 * np.arange(400) + 1
    terms = energies(6, 400) * np.array([legendre(6, int(ell), np.array(t)) for ell in degrees])
    assert terms.sum() == pytest.approx(2 / math.pi * math.asin(t), abs=1e-4)


@pytest.mark.parametrize("d", [3, 64, 1000, 10**6])
def test_nothing_is_cut_off(d):
    """One rank-1 head of infinitely many: what is left over falls from ½ like the first form."""
    assert error_lower_bound(d, 1, 1, IDENTITY) < 0.5
    captured = energies(d, 4096).sum()
    assert 1 - captured < 3 * math.sqrt(1 / 8192)
    summed = 0.5 * (1 - _captured(d, 1, 1))
    assert error_lower_bound(d, 1, 1, IDENTITY) == pytest.approx(summed, rel=1e-7)


def _captured(d: int, r: int, heads: int) -> float:
    """Σ λ² min(N, H·M) term by term: the second form, whose terms fall off fast."""
    degree = 2.0 * np.arange(200_000) + 1
    log_energy = log_dimension(d, degree) + 2 * log_coefficient(d, degree)
    share = log_reach(r, degree, IDENTITY) + math.log(heads) - log_dimension(d, degree)
    return float(np.exp(log_energy + np.minimum(share, 0)).sum())


@pytest.mark.parametrize(
    ("d", "r", "heads"), [(8, 1, 128), (64, 8, 1000), (16, 4, 7), (64, 1, 10**6)]
)
def test_both_forms_of_the_bound_agree(d, r, heads):
    summed = 0.5 * (1 - _captured(d, r, heads))
    assert error_lower_bound(d, r, heads, IDENTITY) == pytest.approx(summed, abs=1e-8)


@pytest.mark.parametrize(
    ("rank", "identity", "general"),
    [
        (1, 0.1791, 0.1790),
        (2, 0.1790, 0.1788),
        (4, 0.1788, 0.1784),
        (8, 0.1780, 0.1768),
        (16, 0.1752, 0.1711),
        (32, 0.1628, 0.1463),
    ],
)
def test_planted_bounds_at_the_standard_scaling(rank, identity, general):
    assert error_lower_bound(64, rank, 64 // rank, IDENTITY) == pytest.approx(identity, abs=6e-5)
    assert error_lower_bound(64, rank, 64 // rank, ANY) == pytest.approx(general, abs=6e-5)


@pytest.mark.parametrize(
    ("rank", "values", "planted"),
    [(1, IDENTITY, 2.3e7), (1, ANY, 7.7e6), (8, IDENTITY, 1.3e4), (8, ANY, 6.0e3)],
)
def test_planted_heads(rank, values, planted):
    assert heads_needed(64, rank, 0.1, values) == pytest.approx(planted, rel=0.02)


@pytest.mark.parametrize(("values", "planted"), [(IDENTITY, 23), (ANY, 12)])
def test_planted_heads_at_rank_32(values, planted):
    assert heads_needed(64, 32, 0.1, values) == planted


def test_heads_needed_is_the_least_number():
    for d, r, error in [(8, 2, 0.05), (64, 32, 0.1), (16, 1, 0.15)]:
        heads = heads_needed(d, r, error)
        assert error_lower_bound(d, r, heads) <= error < error_lower_bound(d, r, heads - 1)


def test_degree_one_alone_at_the_standard_scaling():
    """H = d/r rank-r heads capture degree one exactly."""
    plateau = (1 - float(energies(64, 1)[0])) / 2
    assert error_lower_bound(64, 1, 64, IDENTITY) == pytest.approx(plateau, abs=2e-4)


@pytest.mark.parametrize(
    ("d", "r", "heads"), [(10**6, 1, 1e300), (10**6, 990_000, 1e300), (4, 1, 1e300)]
)
def test_huge_sizes_neither_overflow_nor_vanish(d, r, heads):
    assert 0 < error_lower_bound(d, r, heads) < 0.5


def test_the_far_tail_follows_its_power_law():
    """d = 4, r = 1: the error falls like 1/√H, since ℓ* grows like √H."""
    low, high = error_lower_bound(4, 1, 1e100), error_lower_bound(4, 1, 1e104)
    assert low / high == pytest.approx(100, rel=1e-6)


def test_nearly_full_rank_heads_reach_everything():
    assert error_lower_bound(3, 2, 2, IDENTITY) == pytest.approx(0, abs=1e-12)
    assert error_lower_bound(64, 63, 1, ANY) == pytest.approx(0, abs=1e-12)
    assert heads_needed(64, 63, 1e-3, IDENTITY) == 2


def test_more_than_float64_holds_is_refused_with_the_exponent():
    with pytest.raises(TooLargeError, match=r"needs about 10\^\d+ heads; ask for a larger error"):
        heads_needed(10**6, 1, 0.01)
    assert log_heads_needed(10**6, 1, 0.01) > 300 * math.log(10)


@pytest.mark.parametrize("values", [ANY, IDENTITY])
@pytest.mark.parametrize(
    ("d", "r", "heads"),
    [
        (4, 1, 4),
        (4, 1, 40),
        (4, 2, 12),
        (6, 3, 10),
        (8, 1, 32),
        (8, 4, 16),
        (12, 6, 8),
        (16, 1, 16),
        (16, 8, 6),
    ],
)
def test_layers_that_try_to_beat_the_bound_do_not(d, r, heads, values):
    seen = random_heads_error(d, r, heads, values, seed=d + r)
    assert seen.mean - 3 * seen.stderr >= error_lower_bound(d, r, heads, values)


def test_any_values_never_cost_more_than_the_identity():
    for r in (1, 3, 7):
        assert error_lower_bound(8, r, 5, ANY) <= error_lower_bound(8, r, 5, IDENTITY)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((8, 8, 1), "expected `rank` below the width 8, got 8"),
        ((8, 9, 1), "expected `rank` below the width 8, got 9"),
        ((0, 1, 1), "expected `width` of at least 2"),
        ((8, 0, 1), "expected `rank` of at least 1"),
        ((8, 1, 0), "`heads` of at least 1, got 0"),
        ((8, 1, -2), "`heads` of at least 1, got -2"),
        ((8, 1, 2.5), "whole number for `heads`, got 2.5"),
        ((8.5, 1, 1), "a whole number for `width`"),
        ((10**7, 1, 1), "expected `width` of at most 1,000,000"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(arguments, problem):
    with pytest.raises(BadInputError, match=problem):
        error_lower_bound(*arguments)


@pytest.mark.parametrize("error", [0.0, -0.1, 0.51, float("nan")])
def test_errors_outside_their_range_are_refused(error):
    with pytest.raises(BadInputError, match=r"expected `error` above 0 and at most 0\.5"):
        heads_needed(8, 2, error)


def test_log_beta_against_mpmath_from_tiny_to_huge():
    mpmath.mp.dps = 220
    for a, b in [(0.5, 0.5), (1.5, 1e9), (3.0, 1e15), (1e6, 1e6), (5e5, 1e150), (19.9, 20.1)]:
        exact = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(mpmath.mpf(a) + b)
        assert float(log_beta(a, b)) == pytest.approx(float(exact), rel=1e-13)


def test_log_binomial_against_integers():
    for more, chosen in [(0, 0), (0, 9), (5, 3), (40, 60)]:
        exact = math.log(math.comb(more + chosen, chosen))
        assert float(log_binomial(more, chosen)) == pytest.approx(exact, abs=1e-12)
