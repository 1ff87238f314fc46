"""Simulation: the conditional mean is exact, ensembles do what they say, error bars cover."""

from __future__ import annotations

import itertools

import pytest
import torch

from headwise.errors import BadInputError
from headwise.theory.law_formula import barrier_ratio
from headwise.theory.montecarlo import (
    _used_columns,
    hardmax_choices,
    plateau_ratio,
    simulate_ratio,
    simulate_to,
)
from headwise.theory.planar import line_ratio
from headwise.theory.simulated_heads import (
    IndependentHead,
    InputHead,
    PlateauHead,
    RandomInputHead,
    WideHead,
    narrowed,
    normal,
    uniform,
)


def test_conditional_mean_is_the_mean_over_all_choices_of_queries():
    choices = torch.tensor([[0, 0, 1, 4, 4, 4, 2]])
    every = [
        len({int(choices[0, i]) for i in part}) for part in itertools.combinations(range(7), 5)
    ]
    mean = sum(every) / len(every)
    assert float(_used_columns(choices, 5)) == pytest.approx(mean, abs=1e-12)


def test_exactly_n_queries_are_counted_as_they_are():
    choices = torch.tensor([[0, 0, 1], [2, 2, 2]])
    assert _used_columns(choices, 3).tolist() == pytest.approx([2.0, 1.0])


def test_conditioning_cuts_the_spread():
    """Twice the queries for the same keys: less than half the variance on a wide head."""

    class OneRound(IndependentHead):
        def draw(self, heads, generator):
            queries, keys = super().draw(heads, generator)
            return queries[:, : self.length], keys

    plain = simulate_ratio(OneRound(50, 256), draws=400, seed=1)
    conditioned = simulate_ratio(IndependentHead(50, 256), draws=400, seed=1)
    assert conditioned.stderr**2 < 0.5 * plain.stderr**2
    assert conditioned.mean == pytest.approx(plain.mean, abs=4 * plain.stderr)


def test_choices_in_parts_are_the_choices_at_once(monkeypatch):
    generator = torch.Generator().manual_seed(2)
    queries = torch.randn(3, 37, 5, generator=generator)
    keys = torch.randn(3, 11, 5, generator=generator)
    whole = hardmax_choices(queries, keys)
    monkeypatch.setattr("headwise.attention.operator.LOGITS_AT_ONCE", 100)
    assert torch.equal(hardmax_choices(queries, keys), whole)
    assert torch.equal(whole, (queries @ keys.mT).argmax(-1))


def test_the_asked_error_bar_is_kept():
    assert simulate_to(IndependentHead(60, 5), stderr=0.003).stderr < 0.0033


def test_error_bars_cover_the_known_answer():
    """Of twenty estimates at d_h = 1, nearly all lie within two of their standard errors."""
    hits = 0
    for seed in range(20):
        seen = simulate_ratio(IndependentHead(3, 1), draws=400, seed=seed)
        hits += abs(seen.mean - line_ratio(3)) < 2 * seen.stderr
    assert hits >= 16


def test_a_seed_gives_the_same_answer_twice():
    head = IndependentHead(20, 3)
    assert simulate_ratio(head, 5, seed=3) == simulate_ratio(head, 5, seed=3)
    assert simulate_ratio(head, 5, seed=3) != simulate_ratio(head, 5, seed=4)


def test_the_global_generator_is_not_touched():
    before = torch.get_rng_state()
    simulate_ratio(IndependentHead(20, 3), 3)
    assert torch.equal(before, torch.get_rng_state())


def test_orthonormal_inputs_make_the_independent_head():
    inputs = torch.linalg.qr(torch.randn(40, 40, generator=torch.Generator().manual_seed(1)))[0]
    mine = simulate_ratio(InputHead(inputs, 8), draws=400, seed=1)
    plain = simulate_ratio(IndependentHead(40, 8), draws=400, seed=2)
    assert mine.mean == pytest.approx(plain.mean, abs=4 * (mine.stderr + plain.stderr))


def test_weights_drawn_in_the_span_of_the_inputs_are_weights_of_the_whole_width():
    """A few inputs in many dimensions, and the same inputs with every weight drawn."""

    def alike(shape, generator):
        # Far from orthonormal, so that the inputs' inner products matter.
        shared = torch.ones(shape[-1], dtype=torch.float64)
        return normal(shape, generator) + shared

    class WholeWidth(RandomInputHead):
        def _draw(self, heads, generator):
            inputs = self.inputs((heads, self.length, self.width), generator)
            shape = (heads, self.width, self.head_dim)
            return inputs @ normal(shape, generator), inputs @ normal(shape, generator)

    short = simulate_ratio(RandomInputHead(12, 4, width=30, inputs=alike), 2000, seed=1)
    whole = simulate_ratio(WholeWidth(12, 4, width=30, inputs=alike), 2000, seed=2)
    assert short.mean == pytest.approx(whole.mean, abs=4 * (short.stderr + whole.stderr))
    plain = simulate_ratio(IndependentHead(12, 4), 2000, seed=3)
    assert short.mean < plain.mean - 4 * (short.stderr + plain.stderr)


@pytest.mark.parametrize("ensemble", [PlateauHead, WideHead])
def test_the_plateau_of_orthonormal_inputs_is_the_barrier(ensemble):
    seen = simulate_ratio(ensemble(torch.eye(50, dtype=torch.float64)), draws=400, seed=5)
    assert seen.mean == pytest.approx(barrier_ratio(50), abs=4 * seen.stderr)


def test_wide_heads_of_given_inputs_tend_to_their_plateau():
    inputs = torch.randn(40, 6, generator=torch.Generator().manual_seed(7)).double()
    wide = simulate_ratio(InputHead(inputs, 2048), draws=100, seed=1)
    limit = simulate_ratio(WideHead(inputs), draws=400, seed=2)
    assert wide.mean == pytest.approx(limit.mean, abs=4 * (wide.stderr + limit.stderr))
    assert limit.mean < 0.9 * barrier_ratio(40)


@pytest.mark.parametrize("rows", ["joint", "independent"])
def test_narrowed_inputs_have_the_plateau_of_the_wide_ones(rows):
    generator = torch.Generator().manual_seed(3)
    few = torch.randn(12, 300, generator=generator).double() + 0.5
    inputs = few[torch.randint(12, (30,), generator=generator)]
    short = narrowed(inputs)
    assert short.shape[1] <= 12
    torch.testing.assert_close(short @ short.mT, inputs @ inputs.mT, rtol=1e-12, atol=1e-9)
    # A row that differs from its equal by rounding would be one more column.
    assert len(short.unique(dim=0)) == len(inputs.unique(dim=0))
    wide, other = (plateau_ratio(x, 400, seed, rows=rows) for seed, x in enumerate((inputs, short)))
    assert wide.mean == pytest.approx(other.mean, abs=4 * (wide.stderr + other.stderr))
    assert torch.equal(narrowed(inputs[:, :200]), inputs[:, :200])


def test_the_distribution_is_an_argument():
    """Bounded entries leave the corners of the cube: another law than the Gaussian one."""
    flat = simulate_ratio(IndependentHead(200, 2, uniform), draws=100)
    round_ = simulate_ratio(IndependentHead(200, 2), draws=100)
    assert abs(flat.mean - round_.mean) > 5 * (flat.stderr + round_.stderr)


@pytest.mark.parametrize("draws", [1, 0, 2.5])
def test_too_few_draws_are_refused(draws):
    with pytest.raises(BadInputError, match="number of draws"):
        simulate_ratio(IndependentHead(5, 2), draws)


def test_an_empty_head_is_refused():
    with pytest.raises(BadInputError, match="head dimension of at least 1"):
        IndependentHead(5, 0)
