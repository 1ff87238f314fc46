"""The automatic answer below d_h = 16, and the simulation around single keys it rests on."""

from __future__ import annotations

import pytest

from headwise.errors import BadInputError, TooLargeError
from headwise.progress import NoProgress
from headwise.theory.expected import LAW_ERROR, expected_rank
from headwise.theory.law_formula import law_share
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.neighbourhood import neighbourhood_ratio
from headwise.theory.planar import plane_ratio
from headwise.theory.simulated_heads import IndependentHead


@pytest.mark.parametrize(("d", "seed"), [(2, 0), (4, 1), (10, 2), (24, 3)])
def test_simulation_around_single_keys_agrees_with_plain_simulation(d, seed):
    near = neighbourhood_ratio(4096, d, draws=1500, seed=seed)
    plain = simulate_ratio(IndependentHead(4096, d), draws=4, seed=seed)
    assert near.mean == pytest.approx(plain.mean, abs=4 * (near.stderr + plain.stderr))
    assert near.stderr < 0.05 * near.mean


def test_simulation_around_single_keys_agrees_with_the_exact_plane():
    near = neighbourhood_ratio(2**15, 2, draws=600)
    assert near.mean == pytest.approx(plane_ratio(2**15), abs=4 * near.stderr)


@pytest.mark.parametrize(("n", "d"), [(10**9, 64), (10**12, 64)])
def test_at_great_lengths_it_agrees_with_the_law(n, d):
    near = neighbourhood_ratio(n, d, draws=800)
    assert near.mean == pytest.approx(float(law_share(n, d)), abs=4 * near.stderr)


@pytest.mark.parametrize(
    ("n", "d", "method"),
    [(50, 1, "exact"), (50, 2, "exact"), (50, 3, "simulation"), (50, 16, "law")],
)
def test_each_size_has_its_method(n, d, method):
    assert expected_rank(n, d).method == method


@pytest.mark.parametrize(("n", "d"), [(2, 3), (3, 5), (16, 3), (128, 8), (700, 15)])
def test_automatic_answer_is_within_a_hundredth_of_plain_simulation(n, d):
    seen = simulate_ratio(IndependentHead(n, d), draws=max(60, 30000 // n), seed=99)
    found = expected_rank(n, d)
    assert seen.stderr < 0.002
    assert abs(found.ratio - seen.mean) < 0.01


@pytest.mark.parametrize(("n", "d", "measured"), [(128, 8, 0.357), (128, 4, 0.206)])
def test_automatic_answer_against_measured_values(n, d, measured):
    assert expected_rank(n, d).ratio == pytest.approx(measured, abs=0.006)


def test_long_sequences_are_answered_within_five_percent():
    found = expected_rank(2**17, 12)
    assert found.method == "simulation"
    assert found.error < 0.055 * found.ratio
    assert found.ratio < float(law_share(2**17, 12))


def test_what_cannot_be_known_is_refused():
    with pytest.raises(TooLargeError, match="too many possible queries to simulate"):
        expected_rank(10**12, 5)


def test_the_law_states_its_own_error():
    assert expected_rank(1000, 20).error == LAW_ERROR


def test_progress_adds_up_to_the_whole():
    class Steps(NoProgress):
        total = done = 0

        def start(self, task, total):
            self.total += total

        def advance(self, steps=1):
            self.done += steps

    steps = Steps()
    expected_rank(300, 6, progress=steps)
    assert steps.done == steps.total > 0


@pytest.mark.parametrize(("n", "d"), [(1, 4), (10, 0), (10.5, 2), (10, 2.5)])
def test_sizes_that_make_no_sense_are_refused(n, d):
    with pytest.raises(BadInputError):
        expected_rank(n, d)


def test_short_sequences_are_not_for_the_neighbourhood():
    with pytest.raises(BadInputError, match="at least 4,096"):
        neighbourhood_ratio(1000, 5)
