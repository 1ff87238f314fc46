"""Geometries within constraints and budgets; what is named when nothing fits."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.advice.advisor import advise, advise_numbers
from headwise.advice.candidates import candidates, references
from headwise.advice.costs import Costs
from headwise.advice.heads import most_heads
from headwise.advice.question import Budget, Constraints
from headwise.advice.retrieval import floor_words, retrieval_floor, shown_floor
from headwise.advice.rule import SLACK
from headwise.advice.shaping import content_rank, shaped
from headwise.advice.tables import cost_table, named_rows
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.theory import error_lower_bound


@settings(max_examples=200, deadline=None)
@given(
    width=st.sampled_from([16, 64, 100, 384]),
    rank=st.integers(1, 64),
    heads=st.none() | st.integers(1, 16),
    kind=st.sampled_from([None, "mha", "gqa", "mla"]),
    multiple=st.sampled_from([1, 2, 8]),
    parameters=st.none() | st.integers(1, 10**6),
)
def test_every_candidate_keeps_to_what_was_asked(width, rank, heads, kind, multiple, parameters):
    constraints = Constraints(heads=heads, multiple_of=multiple, kind=kind)
    budget, rank = Budget(parameters=parameters), constraints.rounded(rank)
    try:
        most = heads or most_heads(width, rank, constraints, budget) or 4
        found = candidates(width, rank, most, constraints, budget, fewer=4)
    except BadInputError as error:
        needed = int(re.search(r"([\d,]+) parameters, ", error.hint)[1].replace(",", ""))
        assert needed > parameters
        return
    for candidate in found:
        geometry = candidate.geometry
        assert geometry.parameters <= (parameters or geometry.parameters)
        assert geometry.heads == (heads or geometry.heads)
        assert content_rank(geometry) % multiple == 0
        assert isinstance(geometry, LatentGeometry) == (kind == "mla")


@settings(max_examples=200, deadline=None)
@given(
    width=st.sampled_from([16, 64, 100]),
    rank=st.integers(1, 100),
    kind=st.sampled_from([None, "gqa", "mla"]),
    parameters=st.none() | st.integers(1, 10**5),
    cache=st.none() | st.integers(1, 2000),
)
def test_most_heads_fit_and_one_step_more_would_not(width, rank, kind, parameters, cache):
    constraints, budget = Constraints(kind=kind), Budget(parameters, cache)
    step = 4 if kind == "gqa" else 1
    found = most_heads(width, rank, constraints, budget)
    most = max(1, width // rank * (1 if parameters is None else 2))
    assert found <= max(most, 2 * width // rank)
    assert found == 0 or budget.allows(shaped(width, found, rank, rank, constraints))
    dearer = shaped(width, found + step, rank, rank, constraints)
    assert found + step > most or not budget.allows(dearer)


def test_the_smallest_that_would_fit_does_fit():
    with pytest.raises(BadInputError) as raised:
        candidates(64, 16, 4, Constraints(multiple_of=8), Budget(parameters=100))
    assert "nothing fits 100 parameters at width 64" in str(raised.value)
    assert "1 head of rank 8: 2,048 parameters" in str(raised.value)
    found = candidates(64, 16, 4, Constraints(multiple_of=8), Budget(parameters=2048))
    assert [c.geometry.parameters for c in found] == [2048]


def test_the_cache_is_part_of_the_budget():
    answer = advise_numbers(512, 768, budget=Budget(cache_bytes=1024))
    assert (answer.best.role, answer.best.geometry.heads) == ("advised", 2)
    assert max(choice.costs.cache_bytes_per_token for choice in answer.choices) <= 1024


def test_kinds_have_their_shapes():
    assert shaped(64, 8, 4, 4, Constraints(kind="gqa")).kv_heads == 2
    assert shaped(64, 8, 4, 4, Constraints(kind="gqa", group=2)).kv_heads == 4
    assert shaped(64, 7, 4, 4, Constraints(kind="gqa")).kv_heads == 1
    latent = shaped(512, 8, 128, 128, Constraints(kind="mla"))
    assert (latent.content_rank, latent.rope_rank, latent.kv_latent) == (128, 64, 512)


def test_costs_are_compared_with_habit_and_largest():
    habit, largest = references(768, 12, 128)
    assert habit.geometry == HeadGeometry.standard(768, 12)
    assert largest.geometry == HeadGeometry.free(768, 12, 128)
    costs = [Costs.of(c.geometry, 512) for c in (habit, largest)]
    assert costs[0].against(costs[1])["parameters"] == 0.5


def test_no_choice_exceeds_the_largest_and_exact_lookup_is_a_nought():
    """Tokens of 20 directions in width 48: twice that is needed, 20 is where one head is exact."""
    generator = torch.Generator().manual_seed(0)
    plane = torch.linalg.qr(torch.randn(48, 20, generator=generator)).Q
    tokens = torch.randn(40, 12, 20, generator=generator) @ plane.mT
    answer = advise(tokens, width=48, constraints=Constraints(heads=2))
    shown = dict(named_rows(answer))
    assert answer.rank.retrieval in (39, 40)
    assert max(choice.against_largest["parameters"] for choice in shown.values()) <= 1
    cells = {row[0]: row[-1] for row in cost_table(answer).rows}
    assert shown["2 half advised"].rank == 20
    assert cells["2 half advised"] == "0"
    fixed = advise(tokens, width=48, constraints=Constraints(heads=1, rank=19))
    assert cost_table(fixed).rows[0][-1] != "0"


def test_the_largest_is_at_least_what_is_fixed():
    """Beyond 128 no rank is measured."""
    tokens = torch.randn(4, 8, 200, generator=torch.Generator().manual_seed(0))
    answer = advise(tokens, constraints=Constraints(rank=160))
    assert answer.references[-1].geometry.qk_rank >= 160
    shares = [choice.against_largest["parameters"] for choice in answer.choices]
    assert max(shares) <= 1


def test_no_rank_is_rounded_above_the_width():
    answer = advise_numbers(512, 100, constraints=Constraints(multiple_of=64))
    assert answer.rank.mixing > 64
    assert {choice.rank for choice in answer.choices} == {64}
    assert not answer.best.meets
    looking = advise_numbers(16, 100, constraints=Constraints(multiple_of=48), need="retrieval")
    assert looking.best.rank == 96


def test_the_floor_is_the_papers_bound():
    assert retrieval_floor(15.2, 4, heads=4) == error_lower_bound(16, 4, 4)
    assert retrieval_floor(15.2, 16, heads=1) == 0
    assert retrieval_floor(1.0, 1, heads=1) == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Constraints(heads=0), "heads must be at least 1, got 0"),
        (lambda: Constraints(rank=3, multiple_of=2), "rank 3 is not a multiple of 2; pass rank 4"),
        (lambda: Constraints(heads=65_537), "65537 heads were asked for; pass at most 65,536"),
        (
            lambda: advise_numbers(64, 32, constraints=Constraints(rank=33)),
            "rank 33 is above the width, 32; pass at most 32",
        ),
        (
            lambda: advise_numbers(64, 32, constraints=Constraints(multiple_of=64)),
            "multiple_of 64 is above the width, 32; pass at most 32",
        ),
        (lambda: Budget(parameters=-1), "parameters must be at least 1, got -1"),
    ],
)
def test_impossible_questions_are_refused(make, words):
    with pytest.raises(BadInputError, match=re.escape(words)):
        make()


def test_a_bound_that_says_nothing_is_a_dash():
    assert shown_floor(4e-4, exact=False) == "–"
    assert shown_floor(6e-4, exact=False) == "≥ 0.001"
    assert shown_floor(0.3, exact=True) == "0"
    assert "two isotropic tokens in 3 dimensions" in floor_words(2.7)


@settings(max_examples=100, deadline=None)
@given(
    length=st.integers(16, 512),
    width=st.sampled_from([16, 64, 192]),
    kind=st.sampled_from([None, "gqa", "mla"]),
    parameters=st.none() | st.integers(8_000, 10**5),
)
def test_each_geometry_is_offered_and_shown_once(length, width, kind, parameters):
    answer = advise_numbers(
        length, width, budget=Budget(parameters), constraints=Constraints(kind=kind)
    )
    offered = [choice.geometry for choice in answer.choices]
    assert len(offered) == len(set(offered))
    shown = [choice.geometry for _, choice in named_rows(answer)]
    assert len(shown) == len(set(shown))
    assert set(shown) >= {choice.geometry for choice in answer.references}


def test_a_smaller_rank_is_not_also_half_the_rank():
    answer = advise_numbers(512, 768, budget=Budget(parameters=1_179_648))
    halves = [choice for choice in answer.choices if choice.geometry.qk_rank == 48]
    found = [(choice.role, choice.geometry.heads) for choice in halves]
    assert found == [("half advised", 4), ("limited rank", 8)]


@settings(max_examples=100, deadline=None)
@given(
    length=st.integers(16, 512),
    kind=st.sampled_from([None, "gqa", "mla"]),
    heads=st.none() | st.integers(1, 8),
    parameters=st.integers(8_000, 10**5),
)
def test_no_worse_choice_stands_before_a_better_one(length, kind, heads, parameters):
    constraints = Constraints(heads=heads, kind=kind)
    answer = advise_numbers(length, 64, budget=Budget(parameters), constraints=constraints)
    meeting = [choice.meets for choice in answer.choices]
    assert meeting == sorted(meeting, reverse=True)
    short = [choice for choice in answer.choices if not choice.meets]
    first, *rest = short or answer.choices
    assert all(c.plateau_share <= first.plateau_share + SLACK for c in rest)
    assert all(c.plateau_share <= first.plateau_share or c.floor > first.floor for c in rest)
    shares = [choice.plateau_share for choice in rest if not choice.meets]
    assert shares == sorted(shares, reverse=True)
    assert answer.best.meets or "does not meet the need" in str(answer)
    for choice in answer.choices:
        assert choice.meets != any("does not meet the need" in r for r in choice.reasons)


def test_one_head_of_larger_rank_stands_before_many_of_rank_one():
    answer = advise_numbers(512, 768, budget=Budget(parameters=30_000))
    assert (answer.best.role, answer.best.geometry.heads, answer.best.rank) == (
        "limited rank",
        1,
        9,
    )
    assert [choice.rank for choice in answer.choices] == [9, 1]


def test_heads_that_mix_nearly_as_much_and_look_up_much_better_come_first():
    constraints = Constraints(kind="mla")
    answer = advise_numbers(2048, 2048, budget=Budget(3_200_000, 800), constraints=constraints)
    first, second = answer.choices[:2]
    assert not first.meets
    assert first.geometry.heads > second.geometry.heads > 1
    assert second.rank > first.rank
    assert second.plateau_share - SLACK <= first.plateau_share < second.plateau_share
    assert first.floor < (1 - SLACK) * second.floor


def test_as_many_heads_of_the_largest_rank_are_offered_as_fit():
    """The cache of a latent limits its rank, and not the number of heads."""
    constraints, budget = Constraints(kind="mla"), Budget(10**7, cache_bytes=800)
    answer = advise_numbers(2048, 2048, budget=budget, constraints=constraints)
    best = answer.best
    assert (best.role, best.rank) == ("limited rank", 89)
    assert best.geometry.heads > 1
    assert not budget.allows(shaped(2048, best.geometry.heads + 1, 89, 89, constraints))
    words = "a larger rank would exceed 800 cache bytes per token, and more heads 10,000,000 param"
    assert any(words in line for line in answer.findings)


@pytest.mark.parametrize(
    ("multiple", "found"), [(1, ("half advised", 48)), (40, ("under advised", 80))]
)
def test_half_of_the_advised_rank_is_called_so_where_it_is_half(multiple, found):
    answer = advise_numbers(512, 768, constraints=Constraints(multiple_of=multiple))
    last = answer.choices[-1]
    assert (last.role, last.rank) == found
