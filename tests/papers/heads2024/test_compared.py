"""Rows of several seeds: what counts, what is compared with the paper, and what is allowed."""

import math
from dataclasses import replace

import pytest

from headwise.experiments.learning_curves import seed_rows
from headwise.models import NeighbourShape
from headwise.papers.comparison import comparison_table
from headwise.papers.exhibit import Answers, Scale
from headwise.papers.kinds.trained_rows import (
    OverSeeds,
    diverged_remark,
    over_seeds,
    seeds_by,
    trained_cell,
    trained_curve,
)
from headwise.papers.kinds.training_remarks import stuck_remark
from headwise.training import train
from papers.heads2024.inventing import FIGURE_RANK_DEPTH, FIGURE_WHAT_IT_LEARNS, invented, presented
from training.small import Poisoned, settings


def test_diverged_seeds_count_in_no_mean():
    found = over_seeds([{"x": 1.0}, {"x": None}, {"x": 3.0}], "x")
    assert found == OverSeeds(2.0, math.sqrt(2), 1.0, 2, 1)
    assert found.stderr == pytest.approx(1.0)
    assert seeds_by([{"rank": 1, "x": None}, {"rank": 2, "x": 1.0}], "rank", "x").keys() == {2}


def poisoned_rows():
    """Two seeds on the fixed set; the second diverges after four epochs."""
    shape = NeighbourShape(width=8, tokens=5, rank=4, copies=4, mlp_width=16)
    return seed_rows(train({"": shape.build}, Poisoned(1, 16, math.nan), settings("same")))


def test_a_run_that_really_diverged_counts_in_nothing():
    sound, fallen = poisoned_rows()
    assert (sound["diverged_at"], fallen["diverged_at"]) == (None, 16)
    # It keeps what it had before: the record of a run says all that is known of it.
    assert fallen["best_train_loss"] is not None
    found = over_seeds([sound, fallen], "best_train_loss")
    best = sound["best_train_loss"]
    assert found == OverSeeds(best, 0.0, best, count=1, diverged=1)
    assert over_seeds([fallen], "best_train_loss") is None


def test_a_run_that_diverged_is_not_said_to_have_learnt_nothing():
    place = {"rank": 8, "protocol": "fixed", "steps": 40, "epoch": 4, "trivial": 0.01}
    sound, fallen = (row | place for row in poisoned_rows())
    assert "1 of 2 runs ended above the trivial loss" in stuck_remark([sound, fallen], "rank")[0]
    assert stuck_remark([fallen], "rank") == ()
    assert "1 of 2 runs diverged" in diverged_remark([sound, fallen])[0]


@pytest.mark.parametrize(("size", "large"), [(31.0, True), (29.0, False)])
def test_the_angle_of_a_run_that_diverged_decides_no_claim(size, large):
    def answer(spec):
        record = invented(spec, lambda _: 0.5)
        fell = {"diverged_at": 7, "angle": 90.0, "form_size": 1.0, "test_loss": None}
        sound, other = record.rows
        return replace(record, rows=(sound | {"form_size": size}, other | fell))

    records = tuple(answer(spec) for spec in FIGURE_WHAT_IT_LEARNS.specs(Scale.GPU))
    found = FIGURE_WHAT_IT_LEARNS.present(Answers(Scale.GPU, records))
    assert [claim.holds for claim in found.claims] == [True, large]
    assert found.tables[0].rows[0][4] == 179.0
    assert any("runs diverged" in remark for remark in found.remarks)


def test_one_seed_has_no_spread():
    assert over_seeds([{"x": 1.0}], "x").stderr == 0


def test_bands_stay_above_zero_on_a_logarithmic_axis():
    curve = trained_curve("it", {1: OverSeeds(0.1, 5.0, 0.01, 2)})
    assert curve.spread[0] < 0.1


def test_what_is_compared_is_the_minimum():
    cell = trained_cell("it", OverSeeds(0.9, 0.0, 0.5, 2), 0.51)
    assert cell.measured == 0.5
    # Seeds that agree leave the least difference that counts, however large the published value.
    assert cell.tolerance == pytest.approx(0.015)
    assert trained_cell("it", OverSeeds(2.0, 0.0, 2.0, 2), 2.0).tolerance == pytest.approx(0.015)


@pytest.mark.parametrize("printed", [0.005, 0.05, 0.5, 5.0])
@pytest.mark.parametrize("spread", [0.0, 0.001, 0.1])
def test_the_tolerance_follows_the_rule_that_is_printed(printed, spread):
    """max(0.015, or a fifth of the published value if that is less; 3 standard errors)."""
    found = trained_cell("it", OverSeeds(printed, spread, printed, 2), printed)
    told = max(min(0.015, printed / 5), 3 * spread / math.sqrt(2))
    assert found.tolerance == pytest.approx(told)


@pytest.mark.parametrize(
    ("printed", "least", "verdict"),
    [
        (0.0153, 0.0137, "agrees"),
        (0.00686, 0.0126, "differs"),  # within 0.015 of each other, and twice the loss
        (0.695, 0.70, "agrees"),
        (0.695, 0.715, "differs"),
    ],
)
def test_losses_near_zero_are_held_to_their_own_size(printed, least, verdict):
    assert trained_cell("it", OverSeeds(least, 0.0, least, 2), printed).verdict == verdict


def test_noise_above_a_fifth_of_a_small_loss_decides_nothing():
    assert trained_cell("it", OverSeeds(0.016, 0.003, 0.0153, 2), 0.0153).verdict == "undecided"


def test_the_column_says_that_the_least_of_the_seeds_is_compared():
    cell = trained_cell("it", OverSeeds(0.9, 0.0, 0.5, 2), 0.51)
    assert "least of 2 seeds" in comparison_table([cell]).columns


def test_it_is_said_why_nothing_is_compared():
    small = presented(FIGURE_RANK_DEPTH, Scale.LAPTOP, lambda spec: 0.5)
    assert small.cells == ()
    assert FIGURE_RANK_DEPTH.why_uncompared(Scale.LAPTOP, small) == "published for other sizes"
