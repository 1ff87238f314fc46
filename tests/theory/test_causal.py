"""The finite law under a causal mask, against its own sum row by row and against simulation."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special

from headwise.attention.masks import Causal, SlidingWindow
from headwise.errors import BadInputError, TooLargeError
from headwise.mask_names import checked_mask
from headwise.theory.causal import causal_share
from headwise.theory.expected import LAW_ERROR, expected_rank, ready_ratio
from headwise.theory.law_formula import barrier_ratio, column_share, critical_head_dim, law_share
from headwise.theory.montecarlo import simulate_ratio, simulate_to
from headwise.theory.numerics import rule_between
from headwise.theory.picking import norm_density, odds
from headwise.theory.simulated_heads import IndependentHead


def row_by_row(n, d):
    """C(n, d) as it is defined: every row and every column, no spline."""
    low = math.sqrt(2 * special.gammaincinv(d / 2, 1e-16))
    norm, step = rule_between(low, math.sqrt(special.chdtri(d, 1e-13)), 400)
    weight = norm_density(norm, np.asarray(float(d))) * step
    missed, used = np.ones_like(norm), 0.0
    for i in range(n, 0, -1):
        with np.errstate(all="ignore"):
            picked = odds(norm[None], np.array([[float(i)]]), np.array([[float(d)]]))[0]
        missed *= 1 - (np.nan_to_num(picked) if i > 1 else 1.0)
        used += (weight * (1 - missed)).sum()
    return used / n


@pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 63, 64, 65, 130, 400])
@pytest.mark.parametrize("d", [1, 2, 5, 16, 300])
def test_the_sum_over_knots_is_the_sum_over_rows(n, d):
    assert float(causal_share(n, d)) == pytest.approx(row_by_row(n, d), abs=3e-5)


def test_one_two_and_three_tokens_are_known():
    """Row one picks itself; row two either, with equal chance; row three a third each."""
    assert causal_share([1, 2, 3], 7) == pytest.approx([1, 3 / 4, 2 / 3])


@pytest.mark.parametrize("n", [2, 10, 1000, 10**6])
def test_many_dimensions_reach_the_barrier(n):
    assert barrier_ratio(n, "causal") == (n + 1) / (2 * n)
    assert float(causal_share(n, 10**5)) == pytest.approx(barrier_ratio(n, "causal"), abs=1e-3)


@settings(deadline=None, max_examples=25)
@example(n=2, d=128)
@given(n=st.integers(2, 10**12), d=st.integers(1, 10**5))
def test_every_size_has_a_share_below_the_barrier(n, d):
    share = float(causal_share(n, d))
    assert 0 < share <= barrier_ratio(n, "causal") + 1e-9


def test_the_law_rises_with_head_dimension_and_falls_with_length():
    assert (np.diff(causal_share(777, [1, 2, 4, 8, 16, 17, 64, 500])) > 0).all()
    assert (np.diff(causal_share([2, 31, 33, 64, 500, 10**4, 10**7], 20)) < 0).all()


@pytest.mark.parametrize(("n", "d"), [(32, 16), (32, 64), (128, 16), (128, 32), (128, 100)])
def test_from_sixteen_dimensions_on_it_is_what_is_simulated(n, d):
    found = simulate_to(IndependentHead(n, d), 0.001, seed=5, mask=Causal())
    told = ready_ratio(n, d, "causal")
    assert (told.method, told.error) == ("law", LAW_ERROR)
    assert abs(told.ratio - found.mean) < told.error + 3 * found.stderr


@pytest.mark.parametrize(("n", "d"), [(20, 1), (20, 2), (100, 3), (100, 9), (300, 5), (48, 15)])
def test_below_the_table_is_what_is_simulated(n, d):
    found = simulate_to(IndependentHead(n, d), 0.002, seed=6, mask=Causal())
    told = ready_ratio(n, d, "causal")
    assert told.method == "simulation"
    assert abs(told.ratio - found.mean) < told.error + 4 * found.stderr
    assert told.ratio < float(causal_share(n, d)) + told.error


def test_beyond_the_table_few_dimensions_have_a_bound():
    assert ready_ratio(10**7, 4, "causal").method == "upper bound"
    with pytest.raises(TooLargeError, match="10,000,000 tokens under a causal mask"):
        expected_rank(10**7, 4, mask="causal")


def test_predicted_is_simulated_or_the_law():
    found = expected_rank(64, 3, mask="causal")
    assert found.method == "simulation"
    assert abs(found.ratio - ready_ratio(64, 3, "causal").ratio) < found.error + 0.01
    assert expected_rank(64, 20, mask="causal") == ready_ratio(64, 20, "causal")


def test_it_saturates_earlier_than_without_a_mask():
    for n in (64, 512, 4096):
        under, without = critical_head_dim(n, 0.9, "causal"), critical_head_dim(n, 0.9)
        assert under < without
        shares = law_share(n, [under - 1, under], "causal") / barrier_ratio(n, "causal")
        assert shares[0] < 0.9 <= shares[1]


def test_without_a_mask_nothing_has_changed():
    assert law_share(300, 20) == column_share(300, 20)
    assert ready_ratio(300, 20) == ready_ratio(300, 20, "none")


def test_a_mask_that_allows_only_the_token_itself_uses_every_column():
    """Simulation takes any mask: in a window of one each token picks itself."""
    found = simulate_ratio(IndependentHead(30, 4), 4, mask=SlidingWindow(1))
    assert (found.mean, found.stderr) == (1.0, 0.0)


def test_an_unknown_mask_is_refused():
    with pytest.raises(BadInputError, match="expected `mask` 'none' or 'causal', got 'prefix'"):
        checked_mask("prefix")
