"""The budget is spent as an exhaustive search would spend it."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.errors import BadInputError
from headwise.reduction.allocation import Option, Part, allocate

OPTIONS = st.lists(
    st.builds(Option, st.integers(1, 9), st.integers(0, 12), st.floats(0, 10)),
    min_size=1,
    max_size=4,
)


@given(st.lists(OPTIONS, min_size=1, max_size=4), st.integers(0, 40))
@settings(max_examples=150, deadline=None)
def test_the_choice_is_the_best_of_all(options, budget):
    parts = [Part(i, "keys", tuple(each)) for i, each in enumerate(options)]
    every = [
        sum(option.loss for option in choice)
        for choice in product(*options)
        if sum(option.cost for option in choice) <= budget
    ]
    if not every:
        with pytest.raises(BadInputError, match="expected a budget of at least"):
            allocate(parts, budget)
        return
    found = allocate(parts, budget)
    assert sum(option.cost for option in found) <= budget
    assert sum(option.loss for option in found) == pytest.approx(min(every))


@given(st.lists(OPTIONS, min_size=1, max_size=4), st.integers(0, 20))
@settings(max_examples=80, deadline=None)
def test_a_budget_in_larger_units_is_still_met(options, more):
    parts = [Part(i, "keys", tuple(each)) for i, each in enumerate(options)]
    least = sum(min(option.cost for option in each) for each in options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headwise.reduction.allocation.MOST_UNITS", 3)
        found = allocate(parts, least + more)
    assert sum(option.cost for option in found) <= least + more


def test_the_memory_for_a_budget_of_many_units_is_bounded():
    """As many parameters, with as small a divisor, as a large model with biases has."""
    options = tuple(Option(r, 2**24 + 8_193 * r, 1 / r) for r in range(8, 136, 8))
    parts = [Part(i, "keys", (*options, Option(136, 2**25, 0.0))) for i in range(56)]
    budget = int(0.53 * 56 * 2**25)
    cost = sum(option.cost for option in allocate(parts, budget))
    assert 0.999 * budget <= cost <= budget


def test_one_threshold_for_all_would_be_worse():
    """A part with a long tail gets what a part with a short one does not need."""
    short = Part(0, "keys", tuple(Option(r, r, 100.0 * (r < 8)) for r in (8, 16, 24, 32)))
    long = Part(1, "keys", tuple(Option(r, r, 32.0 - r) for r in (8, 16, 24, 32)))
    assert [option.rank for option in allocate([short, long], budget=40)] == [8, 32]


def test_the_smallest_budget_is_named():
    part = Part(0, "keys", (Option(8, 800, 1.0), Option(16, 1600, 0.0)))
    with pytest.raises(BadInputError, match=r"at least 1,600, got 1,599; pass 1,600"):
        allocate([part, part], 1599)
