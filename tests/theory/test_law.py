"""The finite law against mpmath, against simulation, and at its edges."""

from __future__ import annotations

import time

import mpmath
import numpy as np
import pytest
import torch

from headwise.errors import BadInputError, InaccurateError
from headwise.theory import picking
from headwise.theory.ensembles import IndependentHead
from headwise.theory.law import (
    MAX_HEAD_DIM,
    MAX_LENGTH,
    barrier_ratio,
    critical_head_dim,
    finite_law,
)
from headwise.theory.montecarlo import simulate_ratio


def law_by_mpmath(n: int, d: int) -> float:
    """The double integral, written down as it is defined and left to adaptive quadrature."""
    mpmath.mp.dps = 20
    angle_total = mpmath.quad(lambda a: mpmath.sin(a) ** (d - 2), [0, mpmath.pi / 2, mpmath.pi])

    def picked(rho: mpmath.mpf) -> mpmath.mpf:
        def integrand(a: mpmath.mpf) -> mpmath.mpf:
            return mpmath.sin(a) ** (d - 2) * mpmath.ncdf(rho * mpmath.cos(a)) ** (n - 1)

        return mpmath.quad(integrand, [0, 0.5, 1, mpmath.pi / 2, mpmath.pi]) / angle_total

    def missed(rho: mpmath.mpf) -> mpmath.mpf:
        density = rho ** (d - 1) * mpmath.exp(-(rho**2) / 2)
        density /= mpmath.gamma(mpmath.mpf(d) / 2) * mpmath.mpf(2) ** (mpmath.mpf(d) / 2 - 1)
        return density * (1 - (1 - picked(rho)) ** n)

    middle = mpmath.sqrt(d)
    return float(mpmath.quad(missed, [0, middle, middle + 3, middle + 8], maxdegree=5))


@pytest.mark.parametrize(("n", "d"), [(5, 2), (30, 3), (20, 7)])
def test_law_agrees_with_mpmath(n, d):
    assert float(finite_law(n, d)) == pytest.approx(law_by_mpmath(n, d), abs=2e-8)


def test_law_does_not_depend_on_the_number_of_nodes(monkeypatch):
    lengths = torch.tensor([[2], [3], [100], [10**6], [10**9], [10**12]])
    dims = torch.tensor([1, 2, 3, 8, 16, 64, 1000, 10**5])
    usual = finite_law(lengths, dims)
    monkeypatch.setattr(picking, "ANGLES", 120)
    monkeypatch.setattr(picking, "COARSE_NORMS", 100)
    monkeypatch.setattr(picking, "NORMS", 2048)
    torch.testing.assert_close(finite_law(lengths, dims), usual, rtol=3e-6, atol=0)


def test_picking_probabilities_sum_to_one_over_the_whole_range():
    lengths = torch.tensor([2.0, 3, 17, 1e3, 1e6, 1e9, 1e12], dtype=torch.float64)
    for d in (1, 2, 3, 5, 16, 100, 3000, 10**5):
        rule = picking.key_norms(lengths, torch.full_like(lengths, d))
        total = lengths * rule.mean(rule.odds)
        torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-6, atol=0)


def test_a_rule_that_misses_one_is_refused(monkeypatch):
    monkeypatch.setattr(picking, "ANGLES", 3)
    with pytest.raises(InaccurateError, match=r"n·E\[p\] = .* instead of 1; simulate"):
        finite_law(1000, 64)


@pytest.mark.parametrize(("n", "d"), [(32, 16), (128, 32), (512, 16), (1024, 64), (64, 256)])
def test_law_is_near_simulation_and_never_below_it(n, d):
    seen = simulate_ratio(IndependentHead(n, d), draws=max(24, 20000 // n), seed=n + d)
    law = float(finite_law(n, d))
    assert law >= seen.mean - 3 * seen.stderr
    assert law - seen.mean <= 0.006 + 3 * seen.stderr


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
    assert float(grid[1, 0]) == float(finite_law(20.0, 2))
    assert finite_law(10, 4).shape == ()


@pytest.mark.parametrize(
    ("n", "d", "problem"),
    [
        (1, 4, "length must lie between 2 and"),
        (0, 4, "length must lie between 2 and"),
        (MAX_LENGTH + 1, 4, "length must lie between"),
        (10, 0, "head dimension must lie between 1 and"),
        (10, -3, "head dimension must lie between 1 and"),
        (10, MAX_HEAD_DIM + 1, "head dimension must lie between"),
        (10.5, 4, "length must be a whole number, got 10.5"),
        (10, float("nan"), "head dimension must be a whole number"),
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
    with pytest.raises(BadInputError, match="strictly between 0 and 1"):
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
