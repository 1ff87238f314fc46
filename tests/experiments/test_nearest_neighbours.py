"""Specs about nearest neighbours that train nothing: bounds, random heads, votes, layers."""

import math

import pytest
import torch
from pydantic import ValidationError

from headwise.experiments.bound_heads import BoundHeads
from headwise.experiments.construction import Construction
from headwise.experiments.kinds import Kinds
from headwise.experiments.majority_vote import MajorityVote
from headwise.experiments.random_heads import RandomHeads
from headwise.runs import parsed_spec


@pytest.mark.parametrize(
    "spec",
    [
        BoundHeads(width=8, rank=2, heads=4),
        RandomHeads(width=8, heads=4),
        MajorityVote(width=8, heads=3),
        Construction(layer="tally", width=8),
    ],
)
def test_kinds_read_back(spec):
    assert parsed_spec(Kinds, spec.content).key == spec.key


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BoundHeads(width=8, rank=8, heads=1), "below the width 8, got 8"),
        (lambda: RandomHeads(width=8, heads=2, rank=2), "no closed form"),
        (lambda: MajorityVote(width=8, heads=4), "can tie"),
        (lambda: Construction(layer="tally", width=8, tokens=3), "2 tokens for the tally, got 3"),
    ],
)
def test_what_cannot_be_asked_is_refused(make, words):
    with pytest.raises(ValidationError, match=words):
        make()


def test_bounds_of_the_two_classes():
    one = [BoundHeads(width=64, rank=32, heads=2, values=v).ask() for v in ("identity", "any")]
    assert [round(row["bound"], 4) for row in one] == [0.1628, 0.1463]
    # 23 and 12 heads reach 0.1; the logarithm is that of the real number before rounding up.
    assert [math.ceil(10 ** row["log10_heads_needed"]) for row in one] == [23, 12]


def test_random_heads_lie_above_the_bound_and_counting_all_costs_more():
    bound = BoundHeads(width=8, rank=1, heads=32, values="identity").ask()["bound"]
    along = RandomHeads(width=8, heads=32).ask()["error"]
    whole = RandomHeads(width=8, heads=32, counted="all").ask()
    assert bound < along < whole["error"] - 5 * whole["stderr"]


def test_the_layer_votes_as_the_formula_says():
    row = MajorityVote(width=8, heads=9, layers=200, samples=60, seed=1).ask()
    assert abs(row["simulated"] - row["formula"]) < 4 * row["stderr"] < 0.1
    assert "simulated" not in MajorityVote(width=8, heads=9, layers=0).ask()


def test_a_cold_head_is_nearly_exact_and_a_warm_one_is_not():
    cold, warm = (
        Construction(layer="softmax", width=8, tokens=5, heat=heat, samples=300).ask()
        for heat in (1e-6, 1.0)
    )
    assert cold["error"] < 1e-3 < 0.1 < warm["error"]
    # Softmax keeps the order of the inner products, but its mean may lie nearer to another.
    assert cold["wrong"] == 0


def test_the_tally_is_exact_where_it_is_linear_and_votes_where_it_is_hard():
    soft, hard = (
        Construction(layer="tally", width=9, heat=heat, samples=500).ask() for heat in (1e-4, 1e6)
    )
    assert soft["error"] == 0
    assert hard["error"] == pytest.approx(2 * hard["wrong"])
    assert hard["error"] > 0.2


def test_the_same_seed_sees_the_same_points():
    spec = Construction(layer="softmax", width=6, tokens=4, heat=0.3, samples=50)
    before = torch.random.get_rng_state()
    assert spec.ask() == spec.ask()
    assert spec.ask() != spec.model_copy(update={"seed": 1}).ask()
    assert torch.equal(before, torch.random.get_rng_state())
