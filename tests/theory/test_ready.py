"""What is known at once, against fresh simulations, formulas and the table it comes from."""

from __future__ import annotations

import pytest
from benchmarks.simulate_low_dims import LENGTHS, simulated
from hypothesis import given
from hypothesis import strategies as st

from headwise.errors import BadInputError
from headwise.theory.expected import UPPER_BOUND, ready_ratio, table
from headwise.theory.fluctuation import corrected_law
from headwise.theory.law_formula import column_share, law_share
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.neighbourhood import neighbourhood_ratio
from headwise.theory.planar import line_ratio, plane_ratio
from headwise.theory.simulated_heads import IndependentHead


@pytest.mark.parametrize(("n", "d"), [(5, 3), (27, 4), (90, 7), (300, 12), (700, 15), (1300, 5)])
def test_between_the_lengths_of_the_table_it_agrees_with_simulation(n, d):
    assert n not in LENGTHS
    seen = simulate_ratio(IndependentHead(n, d), draws=max(60, 40_000 // n), seed=7)
    assert seen.stderr < 0.002
    found = ready_ratio(n, d)
    assert found.method == "simulation"
    assert abs(found.ratio - seen.mean) < found.error + 3 * seen.stderr


def test_long_sequences_agree_with_a_look_at_single_keys():
    seen = neighbourhood_ratio(50_000, 9, draws=1500, seed=3)
    found = ready_ratio(50_000, 9)
    assert abs(found.ratio - seen.mean) < found.error + 3 * seen.stderr


def test_formulas_are_taken_where_they_are_accurate():
    assert ready_ratio(300, 1).ratio == line_ratio(300)
    assert ready_ratio(300, 2).ratio == plane_ratio(300)
    assert ready_ratio(300, 16).ratio == corrected_law(300, 16)


def test_beyond_the_table_the_method_is_upper_bound():
    found = ready_ratio(10**9, 7)
    assert (found.method, found.ratio) == (UPPER_BOUND, float(column_share(10**9, 7)))
    assert ready_ratio(2**20, 3).method == UPPER_BOUND


@given(n=st.integers(2, 2**20), d=st.integers(1, 20))
def test_it_never_exceeds_the_law_by_more_than_its_error(n, d):
    found = ready_ratio(n, d)
    assert 0 < found.ratio <= float(column_share(n, d)) + found.error + 1e-12


@pytest.mark.parametrize(("n", "d"), [(12, 3), (48, 9)])
def test_a_cell_of_the_table_is_what_its_script_simulates(n, d):
    again = simulated(n, d)
    assert again is not None
    assert ready_ratio(n, d).ratio == pytest.approx(again.mean, rel=1e-6)


@pytest.mark.parametrize(("n", "d"), [(1, 4), (10, 0), (10.5, 2), (10, 2.5)])
def test_sizes_that_make_no_sense_are_refused(n, d):
    with pytest.raises(BadInputError):
        ready_ratio(n, d)


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_the_stored_law_is_the_law(mask):
    for d in (3, 8, 15):
        lengths, _, _, laws = table(d, mask)
        some = lengths[::5].astype(int)
        assert laws[::5] == pytest.approx(law_share(some, d, mask), rel=1e-6)
