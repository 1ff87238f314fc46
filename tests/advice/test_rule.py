"""Saturation by two rules, and the rank that is chosen."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.advice.curves import (
    RankCurve,
    head_dim_grid,
    law_curve,
    our_saturation,
    paper_saturation,
    saturated_from,
)
from headwise.advice.evidence import Evidence, law_evidence
from headwise.advice.judged import JudgedTask, RankApart, thin_keys
from headwise.advice.rule import SLACK, choose_rank, support_for
from headwise.advice.tokens.statistics import TokenStatistics
from headwise.advice.words.reasons import _gains
from headwise.theory.law_curve import law
from headwise.theory.law_formula import critical_head_dim


def curve(means, start="model", half=0.0, dims=(1, 2, 4, 8, 16, 32)):
    halves = (half,) * len(means)
    return RankCurve(start, dims[: len(means)], tuple(means), halves, 8, max(means), "measured")


def chosen(curves, dimension, directions, learned, need):
    """The choice for tokens of this effective dimension and number of directions."""
    known = TokenStatistics(
        sequences=1,
        length=16,
        width=directions,
        effective_dimension=dimension,
        mean_share=0.0,
        cosine_spread=0.5,
        orthonormality=0.1,
        learned=learned,
    )
    return choose_rank(Evidence("tokens", 16, directions, curves, known), need)


#: The published evidence of the rule: rank / tokens on CIFAR-10 at default initialisation, at
#: N(0, 1) weights, and the rank at which accuracy was best.
CIFAR_MODEL, CIFAR_PAPER, CIFAR_BEST = (
    (0.11, 0.33, 0.77, 0.95, 0.99, 1.0),
    (0.28, 0.41, 0.41, 0.44, 0.42, 0.42),
    8,
)


def test_the_rule_finds_what_its_evidence_showed():
    curves = (curve(CIFAR_MODEL), curve(CIFAR_PAPER, "paper"))
    found = chosen(curves, 5.6, directions=192, learned=False, need="mixing")
    assert (found.rank, found.binds, found.retrieval) == (CIFAR_BEST, "mixing", 12)
    assert found.paper == 2


@pytest.mark.parametrize(
    ("dimension", "wanted"),
    [(4.0, 8), (4.02, 8), (4.1, 9), (15.9, 32), (20.0, 40), (24.0, 48), (30.0, 48), (60.0, 48)],
)
def test_lookup_takes_twice_the_effective_dimension_up_to_the_width(dimension, wanted):
    """The width limits it; the largest head dimension that was measured, 32, does not."""
    found = chosen((curve(CIFAR_MODEL),), dimension, 48, learned=False, need="retrieval")
    assert (found.rank, found.retrieval) == (wanted, wanted)


@pytest.mark.parametrize("slack", [0.05, SLACK, 0.22])
def test_the_evidence_does_not_hang_on_the_slack(slack):
    assert our_saturation(curve(CIFAR_MODEL), slack) == CIFAR_BEST


def test_the_lower_limit_decides():
    assert our_saturation(curve((0.5, 0.91, 1.0), half=0.0), 0.1) == 2
    assert our_saturation(curve((0.5, 0.91, 1.0), half=0.02), 0.1) == 4
    assert our_saturation(curve((0.5, 0.91, 1.0), half=0.2), 0.1) is None


def test_the_papers_rule_starts_after_the_rise():
    assert paper_saturation(curve((0.001, 0.002, 0.3, 0.5, 0.505))) == 8
    assert paper_saturation(curve((0.1, 0.3, 0.5))) is None


def test_the_law_saturates_where_its_inverse_says():
    found = our_saturation(law_curve(512, 768), 0.1)
    critical = critical_head_dim(512, 0.9)
    below = max(dim for dim in head_dim_grid(768) if dim < found)
    assert below < critical <= found


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6), st.floats(1, 40))
def test_more_than_one_need_is_the_larger_one(means, dimension):
    curves = (curve(sorted(means)),)
    data = chosen(curves, dimension, 32, learned=False, need="data")
    mixing = chosen(curves, dimension, 32, learned=False, need="mixing")
    retrieval = chosen(curves, dimension, 32, learned=False, need="retrieval")
    assert data.rank == max(mixing.rank, retrieval.rank)
    learned = chosen(curves, dimension, 32, learned=True, need="data")
    assert learned.rank == mixing.rank


def test_a_curve_that_never_gets_there_is_said_to():
    found = chosen((law_curve(10**6, 16),), 16.0, 16, learned=True, need="data")
    assert (found.rank, found.reached) == (16, False)


def test_default_initialisation_is_judged_first():
    own, paper = curve(CIFAR_MODEL), curve(CIFAR_PAPER, "paper")
    assert Evidence("tokens", 16, 32, (paper, own), None).curve is own
    assert Evidence("tokens", 16, 32, (paper,), None).curve is paper


def test_between_points_the_curve_is_straight_in_the_logarithm():
    found = curve((0.2, 0.4, 0.8))
    assert found.at(1) == 0.2
    assert found.at(4) == found.at(100) == 0.8
    assert 0.4 < found.at(3) < 0.8
    assert found.share(100) == 1.0


def test_a_rank_between_those_looked_at_meets_the_need_where_the_curve_does():
    law = law_curve(2048, 2560)
    found = chosen((law,), 2560.0, 2560, learned=True, need="data")
    assert (found.rank, found.mixing) == (192, 192)
    for rank in range(96, 257):
        assert found.is_met_by(rank) == (law.share(rank) >= 1 - SLACK), rank
    assert found.is_met_by(170)
    assert not found.is_met_by(128)


def test_the_band_counts_between_the_ranks_looked_at_too():
    sure, unsure = curve((0.5, 0.7, 0.8, 0.95, 1.0)), curve((0.5, 0.7, 0.8, 0.95, 1.0), half=0.04)
    assert (our_saturation(sure, 0.1), saturated_from(sure, 0.1)) == (8, 7)
    assert (our_saturation(unsure, 0.1), saturated_from(unsure, 0.1)) == (8, 8)
    assert saturated_from(curve((0.5, 0.91, 1.0), half=0.2), 0.1) is None
    assert saturated_from(curve((0.95, 1.0)), 0.1) == 1


@pytest.mark.parametrize(
    ("dimension", "learned", "need", "enough"),
    [
        (4.0, False, "data", 8),  # both count, and lookup takes 8
        (3.0, False, "data", 7),
        (4.0, True, "data", 7),  # mixing alone
        (4.0, False, "mixing", 7),
        (4.0, False, "retrieval", 8),
        (3.0, False, "retrieval", 6),
    ],
)
def test_what_mixes_enough_does_not_loosen_what_lookup_takes(dimension, learned, need, enough):
    curves = (curve((0.5, 0.7, 0.8, 0.95, 1.0)),)
    found = chosen(curves, dimension, 32, learned, need)
    met = [rank for rank in range(1, 17) if found.is_met_by(rank)]
    assert met == list(range(enough, 17))


@pytest.mark.parametrize(("length", "mask"), [(512, "none"), (512, "causal"), (20_000, "none")])
def test_without_data_the_least_rank_is_the_one_that_law_names(length, mask):
    found = choose_rank(law_evidence(length, 768, mask))
    assert found.mixing_from == critical_head_dim(length, 0.9, mask) < found.mixing


def test_regression_asks_for_twice_the_rank_of_the_tokens_and_no_more_than_the_width():
    given = {"dimension": 5.0, "directions": 64, "learned": False}
    known = chosen((curve(CIFAR_MODEL),), **given, need="data")
    evidence = replace(law_evidence(512, 64), curves=(curve(CIFAR_MODEL),))
    once, twice = choose_rank(evidence), choose_rank(evidence, task="regress")
    assert (twice.rank, twice.enough, twice.needed) == (16, 2 * once.enough, 16)
    assert once.rank == 8 and known.factor == 1
    assert twice.is_met_by(twice.enough) and not twice.is_met_by(once.rank)
    assert choose_rank(evidence, "mixing", "regress").rank == 8
    assert choose_rank(replace(evidence, width=12), task="regress").rank == 8


@pytest.mark.parametrize(("length", "mask"), [(3, "none"), (20, "none"), (10, "causal")])
def test_without_data_short_sequences_need_the_rank_that_law_names(length, mask):
    found = choose_rank(law_evidence(length, 64, mask))
    assert found.mixing_from == law(length, mask=mask).critical_head_dim


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        ([["a", 2.0, 0.5, "points"], ["b", 1.0, 0.5, "points"]], "On 2 trained X, such advice"
         " scored 1.5 points above the usual geometry on average: a +2.0 ± 0.5, b +1.0 ± 0.5."),
        ([["c", 0.04, 0.01, "nats"]], "scored 0.040 nats above the usual geometry on average: c "
         "+0.040 ± 0.010."),
    ],
)  # fmt: skip
def test_a_gain_is_told_in_its_own_unit(gains, words):
    assert words in _gains("X", gains, gains[0][3])


def judged(name, unit, gain, error, *, most=4, held_out=False):
    pairs = {"best": (16, 4), "usual": (1, 64), "by_rank": (16, 4)}
    costs = dict.fromkeys(("usual_regret", "usual_error", "by_rank_regret", "by_rank_error"), 0.0)
    rest = {"gain": gain, "gain_error": error, "half_cost": 0.0, "most": most, "held_out": held_out}
    known = {"data": "text", "steps": 1000, "width": 64}
    return JudgedTask(name, "classify", "ids", **known, **pairs, unit=unit, **costs, **rest)


@pytest.mark.parametrize(
    ("nats", "smaller"), [((0.02, 0.01), True), ((0.002, 0.01), False), ((-0.1, 0.001), False)]
)
def test_gains_in_points_and_nats_count_in_standard_errors(nats, smaller):
    points = judged("a", "points", 0.5, 0.2, held_out=True)
    both = [points, judged("b", "nats", *nats)]
    assert support_for("classify", "ids", both).smaller is smaller
    assert not support_for("classify", "ids", [points]).enough


def test_advice_asks_for_no_more_rank_than_paid_on_trained_tasks():
    tasks = [judged("a", "points", 2.0, 0.5, most=16, held_out=True)]
    tasks += [judged(name, "points", 2.0, 0.5, most=4) for name in ("b", "c")]
    ceiling = support_for("classify", "ids", tasks).ceiling
    assert ceiling == 8  # the geometric mean of 16, 4 and 4 is 6.3
    found = chosen((curve((0.1, 0.2, 0.3, 0.5, 0.7, 1.0)),), 1.0, 64, learned=False, need="data")
    limited = found.limited(ceiling)
    assert (found.rank, limited.rank, limited.needed, limited.enough) == (32, 8, 8, 8)
    assert limited.is_met_by(8) and not limited.is_met_by(7) and not found.is_met_by(16)
    assert limited.binds == "trained"
    wide = chosen((curve((0.1, 0.2, 0.3, 0.5, 0.7, 1.0)),), 6.0, 64, learned=False, need="data")
    assert wide.limited(ceiling).rank == 12  # twice the effective dimension, for lookup


def test_the_ceiling_needs_evidence_for_less_rank_and_leaves_what_is_below_it_and_what_is_given():
    worse = [judged(name, "points", -2.0, 0.5, held_out=True) for name in ("a", "b")]
    assert support_for("classify", "ids", worse).ceiling is None
    found = chosen((curve(CIFAR_MODEL),), 1.0, 64, learned=False, need="data")
    assert found.rank == 8 and found.limited(8) is found and found.limited(None) is found
    given = replace(found, rank=32, fixed=True)
    assert given.limited(4) is given


def test_thinner_keys_are_advised_where_they_did_no_harm():
    def row(task, share, cost, *, held_out=False):
        rest = {"unit": "nats", "steps": 1, "held_out": held_out}
        return RankApart(task, "next-token", "keys", share, 0.7, cost, error=0.01, **rest)

    half = [row("a", 0.5, 0.005), row("b", 0.5, -0.01, held_out=True)]
    quarter = [row("a", 0.25, 0.005), row("b", 0.25, 0.02, held_out=True)]
    assert thin_keys([*quarter, *half]) == 0.5
    assert thin_keys(quarter) is None
    assert thin_keys(half[:1]) is None
