"""The finite law against mpmath, against simulation, and at its edges."""

from __future__ import annotations

import math
import time

import mpmath
import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

from headwise.errors import BadInputError, InaccurateError
from headwise.randomness import stream
from headwise.theory import picking
from headwise.theory.fluctuation import corrected_law, meeting_probability
from headwise.theory.law_formula import barrier_ratio, critical_head_dim, law_share
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.number_types import MAX_HEAD_DIM, MAX_LENGTH
from headwise.theory.simulated_heads import IndependentHead


def finite_law(length, head_dim) -> torch.Tensor:
    """The law as a tensor, to compare with torch.testing."""
    return torch.as_tensor(law_share(length, head_dim))


def odds_by_mpmath(n: int, d: int, rho: float) -> float:
    """p(ρ) as it is defined, in thirty digits, left to adaptive quadrature."""
    mpmath.mp.dps = 30
    cuts = [0, 0.25, 0.5, 1, mpmath.pi / 2, mpmath.pi]

    def picked(angle: mpmath.mpf) -> mpmath.mpf:
        return mpmath.sin(angle) ** (d - 2) * mpmath.ncdf(rho * mpmath.cos(angle)) ** (n - 1)

    total = mpmath.quad(lambda angle: mpmath.sin(angle) ** (d - 2), cuts)
    return float(mpmath.quad(picked, cuts) / total)


def law_by_nested_quadrature(n: int, d: int) -> float:
    """The double integral written down as it is defined, by scipy's adaptive rule."""

    def angle_weight(angle: float) -> float:
        return math.sin(angle) ** (d - 2)

    whole = integrate.quad(angle_weight, 0, math.pi)[0]

    def used(rho: float) -> float:
        def picked(angle: float) -> float:
            return angle_weight(angle) * special.ndtr(rho * math.cos(angle)) ** (n - 1)

        odds = integrate.quad(picked, 0, math.pi, epsabs=1e-12, limit=200)[0] / whole
        return stats.chi.pdf(rho, d) * (1 - (1 - odds) ** n)

    ends = (math.sqrt(d) + 3, math.sqrt(d) + 9)
    return sum(
        integrate.quad(used, low, high, epsabs=1e-9, limit=200)[0]
        for low, high in ((0.0, ends[0]), ends)
    )


@pytest.mark.parametrize(
    ("n", "d", "rho"), [(5, 2, 1.5), (30, 3, 2.0), (1000, 16, 5.0), (10**6, 12, 6.5)]
)
def test_picking_probability_agrees_with_mpmath(n, d, rho):
    sizes = (np.array([[float(value)]]) for value in (rho, n, d))
    assert picking.odds(*sizes).item() == pytest.approx(odds_by_mpmath(n, d, rho), rel=1e-8)


@pytest.mark.parametrize(("n", "d"), [(5, 2), (30, 3), (20, 7), (1000, 16), (100, 64)])
def test_law_agrees_with_nested_quadrature(n, d):
    assert float(finite_law(n, d)) == pytest.approx(law_by_nested_quadrature(n, d), abs=2e-8)


def test_law_does_not_depend_on_the_number_of_nodes(monkeypatch):
    lengths = torch.tensor([[3], [1000], [10**12]])
    dims = torch.tensor([1, 2, 3, 16, 1000, 10**5])
    usual = finite_law(lengths, dims)
    monkeypatch.setattr(picking, "ANGLES", 120)
    monkeypatch.setattr(picking, "COARSE_NORMS", 80)
    monkeypatch.setattr(picking, "NORMS", 1000)
    torch.testing.assert_close(finite_law(lengths, dims), usual, rtol=3e-6, atol=0)


def test_picking_probabilities_sum_to_one_over_the_whole_range():
    lengths = np.array([2.0, 3, 17, 1e3, 1e6, 1e9, 1e12])
    for d in (1, 2, 3, 5, 16, 100, 3000, 10**5):
        rule = picking.key_norms(lengths, np.full_like(lengths, d))
        total = lengths * rule.mean(rule.odds)
        np.testing.assert_allclose(total, 1, rtol=1e-6)


def test_a_rule_that_misses_one_is_refused(monkeypatch):
    monkeypatch.setattr(picking, "ANGLES", 3)
    with pytest.raises(InaccurateError, match=r"n·E\[p\] = .* instead of 1; simulate"):
        finite_law(1000, 64)


@pytest.mark.parametrize(("n", "d"), [(32, 16), (128, 32), (512, 16), (1024, 64), (64, 256)])
def test_law_is_near_simulation_and_never_below_it(n, d):
    seen = simulate_ratio(IndependentHead(n, d), draws=max(24, 20000 // n), seed=n + d)
    law = float(finite_law(n, d))
    assert law >= seen.mean - 3 * seen.stderr
    assert law - seen.mean <= 0.01 + 3 * seen.stderr
    assert corrected_law(n, d) == pytest.approx(seen.mean, abs=0.006)


@pytest.mark.parametrize(("n", "d"), [(5, 2), (40, 3), (100, 16)])
def test_meeting_probability_against_simulation(n, d):
    generator = stream(1, "meeting", n, d)
    keys = torch.randn(20000, n, d, generator=generator, dtype=torch.float64)
    first, second = torch.randn(2, 20000, d, 1, generator=generator, dtype=torch.float64)
    met = ((keys @ first).argmax(1) == (keys @ second).argmax(1)).double()
    error = float(met.std()) / math.sqrt(20000)
    assert meeting_probability(n, d) == pytest.approx(float(met.mean()), abs=4 * error)


def test_correction_lowers_the_law_and_vanishes_where_it_must():
    for n, d in [(5, 16), (100, 16), (1000, 64)]:
        assert corrected_law(n, d) < float(finite_law(n, d))
    assert corrected_law(2, 20) == pytest.approx(0.75, abs=1e-9)
    assert corrected_law(200, 10**5) == pytest.approx(float(finite_law(200, 10**5)), abs=1e-5)


def test_two_keys_are_shared_evenly_in_every_dimension():
    """With two keys a query picks either with probability one half, whatever their norms."""
    torch.testing.assert_close(
        finite_law(2, [1, 2, 3, 50, 10**5]), torch.full((5,), 0.75, dtype=torch.float64)
    )


def test_law_rises_with_the_head_dimension_to_the_barrier():
    dims = [1, 2, 3, 4, 8, 16, 64, 256, 1024, 4096, 10**5]
    for n in (3, 200, 10**6):
        curve = finite_law(n, dims)
        assert (curve.diff() > 0).all()
        assert curve[-1] < barrier_ratio(n)
    assert float(finite_law(10**3, 10**5)) == pytest.approx(barrier_ratio(10**3), abs=1e-3)


def test_law_broadcasts_and_accepts_every_kind_of_number():
    grid = finite_law(np.array([[10], [20], [30]]), torch.tensor([2, 4]))
    assert grid.shape == (3, 2)
    # Sums of another shape may round otherwise.
    assert float(grid[1, 0]) == pytest.approx(float(finite_law(20.0, 2)), abs=1e-15)
    assert finite_law(10, 4).shape == ()


@pytest.mark.parametrize(
    ("n", "d", "problem"),
    [
        (1, 4, "expected `length` from 2 to"),
        (0, 4, "expected `length` from 2 to"),
        (MAX_LENGTH + 1, 4, "expected `length` from"),
        (10, 0, "expected `head_dim` from 1 to"),
        (10, -3, "expected `head_dim` from 1 to"),
        (10, MAX_HEAD_DIM + 1, "expected `head_dim` from"),
        (10.5, 4, "a whole number for `length`, got 10.5"),
        (10, float("nan"), "a whole number for `head_dim`"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(n, d, problem):
    with pytest.raises(BadInputError, match=problem):
        finite_law(n, d)


def test_critical_head_dim_is_the_first_to_reach_its_share():
    for n, share in [(128, 0.9), (1024, 0.5), (2**16, 0.95)]:
        dim = critical_head_dim(n, share)
        before, at = finite_law(n, [dim - 1, dim]) / barrier_ratio(n)
        assert before < share <= at


@pytest.mark.parametrize(("n", "expected"), [(2**7, 46), (2**20, 681)])
def test_critical_head_dim_at_ninety_percent(n, expected):
    assert critical_head_dim(n, 0.9) == expected


def test_two_tokens_need_one_dimension():
    assert critical_head_dim(2, 0.99) == 1


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5])
def test_fractions_outside_the_unit_interval_are_refused(share):
    with pytest.raises(BadInputError, match="between 0 and 1"):
        critical_head_dim(100, share)


def test_a_share_out_of_reach_is_refused():
    with pytest.raises(BadInputError, match="no head dimension up to 100000"):
        critical_head_dim(10**12, 0.9999)


def test_one_value_takes_milliseconds():
    finite_law(1000, 100)
    best = min(_seconds(lambda: finite_law(1000, 100)) for _ in range(20))
    assert best <= 0.010


def _seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
