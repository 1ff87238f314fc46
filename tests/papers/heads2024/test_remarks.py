"""What stands in words beside trained figures."""

import re

import pytest

from headwise.papers.exhibit import Scale
from headwise.papers.reproduction import Wanted, from_records
from papers.heads2024.inventing import (
    FIGURE_LARGE_N,
    FIGURE_POSITIONS,
    FIGURE_RANK_DEPTH,
    FIGURE_ROLE_OF_D,
    FIGURE_ROLE_OF_N,
    FIGURE_SATURATION,
    FIGURE_WHAT_IT_LEARNS,
    TRAINED,
    presented,
)


def test_a_panel_of_zero_output_has_a_remark():
    # Losses on fresh data are invented 1.2 times larger: that panel is not one of zero output.
    found = presented(FIGURE_RANK_DEPTH, Scale.GPU, lambda s: 0.995 if s.layers == 5 else 0.5)
    fixed, fresh = found.panels[::2], found.panels[1::2]
    assert [p.title for p in fixed] == [
        "1 layer, fixed set",
        "3 layers, fixed set",
        "5 layers, fixed set, zero output",
    ]
    assert [p.title for p in fresh] == [
        f"{n}, fresh data" for n in ("1 layer", "3 layers", "5 layers")
    ]


def test_a_curve_of_zero_output_is_a_named_level_and_others_keep_their_colours():
    # What is invented for fresh data is 1.2 times larger: there all four have learnt something.
    fixed, fresh = presented(
        FIGURE_ROLE_OF_D, Scale.GPU, lambda s: 0.995 if s.width == 64 else 0.4
    ).panels
    assert [len(curve.mean) for curve in fixed.curves] == [5, 0, 5, 5]
    assert [len(curve.mean) for curve in fresh.curves] == [5, 5, 5, 5]
    assert ("d = 64: zero output", 1.0) in fixed.levels
    assert not any("64" in name for name, height in fixed.levels if "trivial" in name)
    assert not any("zero" in name for name, _ in fresh.levels)


def test_a_setting_none_of_whose_runs_learnt_is_named_once():
    stuck = presented(FIGURE_ROLE_OF_D, Scale.GPU, lambda s: 1.0 if s.width == 256 else 0.3)
    (told,) = [remark for remark in stuck.remarks if "trivial loss" in remark]
    assert told.startswith("20 of 80 runs ended above the trivial loss: width 256 in all 20 runs.")
    one = presented(
        FIGURE_ROLE_OF_D, Scale.GPU, lambda s: 1.0 if s.rank == 4 == s.width / 16 else 0.3
    )
    (told,) = [remark for remark in one.remarks if "trivial loss" in remark]
    assert "width 64, rank 4, fixed, seed 0; width 64, rank 4, fixed, seed 1" in told


@pytest.mark.parametrize("exhibit", [FIGURE_ROLE_OF_D, FIGURE_ROLE_OF_N], ids=lambda e: e.name)
def test_a_caption_states_no_rate(exhibit):
    assert "rate" not in exhibit.caption
    remark = presented(exhibit, Scale.LAPTOP, lambda s: 0.5).remarks[0]
    rates = {f"{spec.learning_rate:g}" for spec in exhibit.specs(Scale.LAPTOP)}
    assert all(rate in remark for rate in rates)


def of_scheduling(presentation):
    """The remarks on curves that were trained in unlike ways."""
    return [
        remark for remark in presentation.remarks if "trained with different schedules" in remark
    ]


@pytest.mark.parametrize(
    ("exhibit", "panel", "curves"),
    [
        (FIGURE_RANK_DEPTH, {"layers": 1}, "copies"),
        (FIGURE_POSITIONS, {"layers": 3}, "positions"),
        (FIGURE_POSITIONS, {"layers": 1}, "positions"),
        (FIGURE_ROLE_OF_N, {}, "tokens"),
        (FIGURE_ROLE_OF_D, {}, "width"),
    ],
)
def test_curves_that_had_other_steps_or_rates_are_named(exhibit, panel, curves):
    specs = [
        spec
        for spec in exhibit.specs(Scale.GPU)
        if all(getattr(spec, name) == value for name, value in panel.items())
    ]
    ways = {(spec.steps, spec.learning_rate) for spec in specs}
    # Otherwise there is nothing to tell, and this tests nothing.
    assert len(ways) > 1 and len({getattr(spec, curves) for spec in specs}) > 1
    (told,) = of_scheduling(presented(exhibit, Scale.GPU, lambda spec: 0.5))
    for steps, rate in ways:
        assert re.search(rf"{steps:,} steps( of \d+)? at rate {rate:g}\b", told)


def test_panels_of_what_is_learnt_say_that_one_head_was_trained_longer_and_faster():
    (told,) = of_scheduling(presented(FIGURE_WHAT_IT_LEARNS, Scale.GPU, lambda spec: 0.5))
    assert "10,000 steps at rate 0.1 reached after 10% in tf32 (1 × d/r heads)" in told
    assert "3,000 steps at rate 0.01 reached after 5% in float32 (8 × d/r heads)" in told
    assert "1,000 steps at rate 0.01 reached after 5% in float32 (64 × d/r heads)" in told
    # The panels show the runs at the lowest rate alone.
    assert "6,000" not in told


@pytest.mark.parametrize("exhibit", TRAINED, ids=lambda e: e.name)
def test_curves_with_the_same_training_need_no_remark(exhibit):
    if exhibit is FIGURE_SATURATION or exhibit.name.endswith("lower_bound"):
        pytest.skip("has questions that are not trained")
    assert not of_scheduling(presented(exhibit, Scale.PAPER, lambda spec: 0.5))


def test_epochs_that_are_much_of_a_run_are_named():
    """With 64 points an epoch is a third of the run; 256 have no epoch but the whole run."""
    remarks = presented(FIGURE_ROLE_OF_N, Scale.GPU, lambda spec: 0.5).remarks
    (long,) = [remark for remark in remarks if "mean over an epoch" in remark]
    assert "(400 of 2,000, 400 of 2,500, 800 of 2,400 steps)" in long
    assert "above the test loss" not in long
    (early,) = [remark for remark in remarks if "no epoch near their end" in remark]
    assert early.startswith("Runs of 1,600 steps, in epochs of 1,600")


def test_a_best_training_loss_above_the_test_loss_is_counted():
    presentation = from_records(Wanted(FIGURE_ROLE_OF_N, Scale.GPU)).presentation
    assert any("it even lies above the test loss" in told for told in presentation.remarks)


@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.GPU, Scale.PAPER])
def test_a_figure_that_the_paper_has_not_is_expected_to_differ_from_nothing(scale):
    found = presented(FIGURE_LARGE_N, scale, lambda spec: 0.5)
    told = " ".join(found.remarks)
    assert "has no figure of it" in told
    assert "differences from the paper" not in told
    assert ("where scale paper has 100,000 steps" in told) is (scale is not Scale.PAPER)


@pytest.mark.parametrize(
    ("exhibit", "why"),
    [
        (FIGURE_ROLE_OF_N, "published for other sizes"),
        (FIGURE_ROLE_OF_D, "a figure, no numbers"),
    ],
)
def test_a_printed_figure_without_values_here_is_not_said_to_be_missing(exhibit, why):
    shown = presented(exhibit, Scale.LAPTOP, lambda spec: 0.5)
    assert why in exhibit.why_uncompared(Scale.LAPTOP, shown)


def test_the_printed_losses_of_appended_positions_stand_beside_the_talks_words():
    told = " ".join(presented(FIGURE_POSITIONS, Scale.GPU, lambda spec: 0.5).remarks)
    # Published at rank 1: 0.747 with appended positions, 0.837 without; at rank 32: 0.318, 0.432.
    assert "are 11% to 26% lower with them" in told


def test_a_run_that_learnt_nothing_and_a_cell_left_out_are_named():
    stuck = presented(FIGURE_RANK_DEPTH, Scale.GPU, lambda s: 1.0 if s.layers == 5 else 0.3)
    told = " ".join(stuck.remarks)
    assert "runs ended above the trivial loss" in told
    many_points = presented(FIGURE_ROLE_OF_N, Scale.GPU, lambda s: 0.3)
    assert "not trained here: N = 256 at r = 1." in " ".join(many_points.remarks)
    whole = presented(FIGURE_RANK_DEPTH, Scale.PAPER, lambda s: 0.3)
    assert not any(words in " ".join(whole.remarks) for words in ("not trained", "ended above"))
