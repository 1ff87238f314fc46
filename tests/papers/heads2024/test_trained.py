"""Exhibits of the heads paper that train: their questions, and what they make of the answers."""

import math
import re
from dataclasses import replace

import pytest

from headwise.experiments.learning_curves import seed_rows
from headwise.experiments.training_run import TrainingRun
from headwise.models import NeighbourShape
from headwise.papers.comparison import comparison_table
from headwise.papers.exhibit import Answers, Scale
from headwise.papers.heads2024 import HEADS_2024
from headwise.papers.heads2024.costs import H200, cheap_first, run_seconds, step_seconds
from headwise.papers.heads2024.figure_in_context import FIGURE_IN_CONTEXT
from headwise.papers.heads2024.figure_large_n import FIGURE_LARGE_N
from headwise.papers.heads2024.figure_positions import FIGURE_POSITIONS
from headwise.papers.heads2024.figure_rank_depth import FIGURE_RANK_DEPTH
from headwise.papers.heads2024.figure_role_of_d import FIGURE_ROLE_OF_D
from headwise.papers.heads2024.figure_role_of_n import FIGURE_ROLE_OF_N
from headwise.papers.heads2024.figure_saturation import FIGURE_SATURATION
from headwise.papers.heads2024.figure_what_it_learns import FIGURE_WHAT_IT_LEARNS
from headwise.papers.heads2024.remarks import stuck_remark
from headwise.papers.printed import printed_table
from headwise.papers.reproduction import Wanted, from_records
from headwise.papers.trained_rows import (
    OverSeeds,
    diverged_remark,
    over_seeds,
    seeds_by,
    trained_cell,
    trained_curve,
)
from headwise.runs import Provenance, Record
from headwise.training import train
from training.small import Poisoned, settings

TRAINED = [e for e in HEADS_2024 if any(isinstance(s, TrainingRun) for s in e.specs(Scale.PAPER))]
SOURCE = Provenance("0", "0", "cpu", None, 0.0, "", None)


def invented(spec, loss):
    """An answer as training would give it, with losses that a function says."""
    rows = []
    for seed in spec.seeds:
        value = loss(spec) * (1 + 0.01 * seed)
        rows.append(
            {
                "seed": seed,
                "train_loss": value,
                "best_train_loss": value,
                "test_loss": 1.2 * value,
                "test_score": value,
                "diverged_at": None,
                "trivial": 0.9,
                "angle": 179.0,
                "form_size": 100.0,
                "curve_step": [1],
                "curve_train": [1.0],
                "curve_test": [1.0],
            }
        )
    return Record(spec.key, spec.content, tuple(rows), SOURCE)


def presented(exhibit, scale, loss):
    records = tuple(invented(spec, loss) for spec in exhibit.specs(scale))
    return exhibit.present(Answers(scale, records))


def test_every_trained_exhibit_is_in_the_catalogue():
    assert len(TRAINED) == 9


@pytest.mark.parametrize("exhibit", TRAINED, ids=lambda e: e.name)
@pytest.mark.parametrize("scale", list(Scale))
def test_questions_can_be_built_are_asked_once_and_cheap_ones_first(exhibit, scale):
    if scale not in exhibit.scales:
        pytest.skip("has no such scale")
    specs = exhibit.specs(scale)
    assert len({spec.key for spec in specs}) == len(specs)
    if exhibit not in (FIGURE_WHAT_IT_LEARNS, FIGURE_SATURATION):
        assert specs == cheap_first(specs)


@pytest.mark.parametrize("exhibit", TRAINED, ids=lambda e: e.name)
def test_the_paper_scale_has_five_seeds_and_both_protocols(exhibit):
    specs = [s for s in exhibit.specs(Scale.PAPER) if isinstance(s, TrainingRun)]
    assert {len(spec.seeds) for spec in specs} == {5}
    if specs[0].kind == "train_neighbours":
        assert {spec.protocol for spec in specs} == {"fixed", "fresh"}


def test_the_papers_grid_is_its_315_runs_in_each_protocol():
    specs = FIGURE_RANK_DEPTH.specs(Scale.PAPER)
    assert sum(len(spec.seeds) for spec in specs) == 2 * 315
    assert {spec.steps for spec in specs} == {100_000}
    assert {(s.width, s.tokens, s.mlp_width, s.batch) for s in specs} == {(64, 16, 2048, 256)}


@pytest.mark.parametrize(
    ("exhibit", "table"),
    [
        (FIGURE_RANK_DEPTH, "heads2024_rank_depth"),
        (FIGURE_POSITIONS, "heads2024_positions"),
        (FIGURE_ROLE_OF_N, "heads2024_role_of_n"),
        (FIGURE_IN_CONTEXT, "heads2024_in_context"),
    ],
)
def test_every_printed_value_is_compared_at_the_papers_scale(exhibit, table):
    found = presented(exhibit, Scale.PAPER, lambda spec: 0.5)
    printed = [float(row["loss"]) for row in printed_table(table)]
    assert sorted(cell.printed for cell in found.cells) == sorted(printed)
    assert all(cell.measured == pytest.approx(0.5) for cell in found.cells)


def test_a_printed_value_that_is_measured_agrees_and_one_that_is_not_differs():
    by_place = {
        (int(r["layers"]), float(r["exponent"]), int(r["rank"])): float(r["loss"])
        for r in printed_table("heads2024_rank_depth")
    }
    exponents = {1: 1.0, 8: 1.5, 64: 2.0}

    def as_printed(spec):
        return by_place[spec.layers, exponents[spec.copies], spec.rank]

    assert all(cell.agrees for cell in presented(FIGURE_RANK_DEPTH, Scale.PAPER, as_printed).cells)
    twice = presented(FIGURE_RANK_DEPTH, Scale.PAPER, lambda spec: 2 * as_printed(spec))
    assert not any(cell.agrees for cell in twice.cells if cell.printed > 0.1)


@pytest.mark.parametrize(("half", "holds"), [(0.5, True), (0.05, False)])
def test_claims_of_the_main_figure_can_fail(half, holds):
    found = presented(FIGURE_RANK_DEPTH, Scale.GPU, lambda s: 0.01 if s.rank == s.width else half)
    claims = dict(found.claims)
    assert claims["one layer of full rank and d² parameters reaches a loss of 0.02"]
    assert claims["one layer of rank 32 or less stays above 0.25"] is holds
    assert (
        claims["with one layer and d² parameters full rank is at least 10 times better than half"]
        is holds
    )
    assert any("shortened" in remark for remark in found.remarks)


def test_the_title_counts_what_the_rows_hold():
    # The paper's scale is fixed; what is there at smaller ones may change.
    records = tuple(invented(spec, lambda _: 0.5) for spec in FIGURE_RANK_DEPTH.specs(Scale.PAPER))
    whole = FIGURE_RANK_DEPTH.present(Answers(Scale.PAPER, records))
    assert whole.title.endswith("for three numbers of parameters and three depths")
    fewer = [r for r in records if r.spec["layers"] == 1 and r.spec["copies"] != 64]
    part = FIGURE_RANK_DEPTH.present(Answers(Scale.GPU, tuple(fewer)))
    assert part.title.endswith("for two numbers of parameters and one depth")


def test_a_panel_of_zero_output_says_so():
    # Losses on fresh data are invented 1.2 times larger: that panel is not one of zero output.
    found = presented(FIGURE_RANK_DEPTH, Scale.GPU, lambda s: 0.995 if s.layers == 5 else 0.5)
    fixed, fresh = found.panels[:3], found.panels[3:]
    assert [p.title for p in fixed] == ["1 layer", "3 layers", "5 layers: zero output"]
    assert [p.title for p in fresh] == ["1 layer", "3 layers", "5 layers"]


@pytest.mark.parametrize("exhibit", [FIGURE_ROLE_OF_D, FIGURE_ROLE_OF_N], ids=lambda e: e.name)
def test_a_caption_states_no_rate(exhibit):
    assert "rate" not in exhibit.caption
    remark = presented(exhibit, Scale.LAPTOP, lambda s: 0.5).remarks[0]
    rates = {f"{spec.learning_rate:g}" for spec in exhibit.specs(Scale.LAPTOP)}
    assert all(rate in remark for rate in rates)


def of_scheduling(presentation):
    """The remarks on curves that were trained in unlike ways."""
    return [remark for remark in presentation.remarks if "not all trained alike" in remark]


@pytest.mark.parametrize(
    ("exhibit", "panel", "curves"),
    [
        (FIGURE_RANK_DEPTH, {"layers": 3}, "copies"),
        (FIGURE_RANK_DEPTH, {"layers": 5}, "copies"),
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
def test_curves_that_were_trained_alike_need_no_words(exhibit):
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
    assert any("it lies above the test loss even" in told for told in presentation.remarks)


@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.GPU, Scale.PAPER])
def test_a_figure_that_the_paper_has_not_is_expected_to_differ_from_nothing(scale):
    found = presented(FIGURE_LARGE_N, scale, lambda spec: 0.5)
    told = " ".join(found.remarks)
    assert "has no figure of it" in told
    assert "differences from print" not in told
    assert ("where scale paper has 100,000 steps" in told) is (scale is not Scale.PAPER)


@pytest.mark.parametrize(
    ("scale", "why"),
    [(Scale.LAPTOP, "printed for other sizes"), (Scale.GPU, "its values are not on record here")],
)
def test_a_printed_figure_without_values_here_is_not_said_to_be_missing(scale, why):
    assert why in presented(FIGURE_ROLE_OF_D, scale, lambda spec: 0.5).uncompared


def test_panels_stand_in_rows_of_protocols_and_carry_the_baseline():
    found = presented(FIGURE_RANK_DEPTH, Scale.PAPER, lambda spec: 0.5)
    assert [panel.y_label.split(",")[0] for panel in found.panels] == (
        ["best training loss"] * 3 + ["test loss"] * 3
    )
    assert all(("trivial", 0.9) in panel.levels for panel in found.panels)
    assert any(len(curve.printed) for curve in found.panels[0].curves)
    assert not any(len(curve.printed) for curve in found.panels[3].curves)


def test_growing_n_is_a_claim_that_can_fail():
    rising = presented(FIGURE_LARGE_N, Scale.GPU, lambda s: 0.01 * s.tokens)
    falling = presented(FIGURE_LARGE_N, Scale.GPU, lambda s: 1 / s.tokens)
    assert [rising.claims[0][1], falling.claims[0][1]] == [True, False]


def test_what_full_rank_learns_asks_nothing_new_but_the_papers_rate():
    asked = {spec.key for spec in FIGURE_RANK_DEPTH.specs(Scale.GPU)}
    new = [spec for spec in FIGURE_WHAT_IT_LEARNS.specs(Scale.GPU) if spec.key not in asked]
    assert {(spec.copies, spec.learning_rate) for spec in new} == {(8, 0.01), (64, 0.01)}


def test_what_full_rank_learns():
    found = presented(FIGURE_WHAT_IT_LEARNS, Scale.GPU, lambda spec: 0.5)
    assert found.tables[0].rows[0] == (1, 0.1, 10_000, 0.603, 179.0, 179.6, 100, 2399.0)
    assert found.tables[1].rows[0] == (1, 0.1, 10_000, 0.603, 179.0, None, 100, None)
    assert [row[:3] for row in found.tables[0].rows[1:3]] == [(8, 0.01, 3000), (8, 0.1, 10_000)]
    angle, size, fresh, _ = found.panels
    assert [curve.printed.y for curve in angle.curves] == [(179.6,), (176.3,), (168.5,)]
    assert [curve.printed.y for curve in size.curves] == [(2399.0,), (1533.0,), (1477.0,)]
    assert not any(len(curve.printed) for curve in fresh.curves)


def test_a_run_that_learnt_nothing_and_a_cell_left_out_are_named():
    stuck = presented(FIGURE_RANK_DEPTH, Scale.GPU, lambda s: 1.0 if s.layers == 5 else 0.3)
    told = " ".join(stuck.remarks)
    assert "runs ended above the trivial loss" in told
    assert "5 layers, c 2 at r = 1, 2, 4, 8, 32" in told
    whole = presented(FIGURE_RANK_DEPTH, Scale.PAPER, lambda s: 0.3)
    assert not any(words in " ".join(whole.remarks) for words in ("not trained", "ended above"))


@pytest.mark.parametrize(("low", "holds"), [(0.5, True), (0.01, False)])
def test_where_the_two_rules_disagree(low, holds):
    records = [
        invented(spec, lambda s: 0.01 if s.rank == s.width else low)
        if isinstance(spec, TrainingRun)
        else Record(spec.key, spec.content, (measured(spec.head_dim),), SOURCE)
        for spec in FIGURE_SATURATION.specs(Scale.GPU)
    ]
    found = FIGURE_SATURATION.present(Answers(Scale.GPU, tuple(records)))
    assert [seen for _, seen in found.claims] == [True, holds]
    assert "takes r = 8" in found.remarks[0]


def measured(head_dim):
    return {"mean": min(head_dim, 8) / 20, "std": 0.1, "count": 64, "stderr": 0.01}


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


def test_the_angle_of_a_run_that_diverged_decides_no_claim():
    def answer(spec):
        record = invented(spec, lambda _: 0.5)
        fell = {"diverged_at": 7, "angle": 90.0, "test_loss": None}
        sound, other = record.rows
        return replace(record, rows=(sound, other | fell))

    records = tuple(answer(spec) for spec in FIGURE_WHAT_IT_LEARNS.specs(Scale.GPU))
    found = FIGURE_WHAT_IT_LEARNS.present(Answers(Scale.GPU, records))
    assert found.claims[0][1]
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
    # Seeds that agree leave the least difference that counts, however large the printed value.
    assert cell.tolerance == pytest.approx(0.015)
    assert trained_cell("it", OverSeeds(2.0, 0.0, 2.0, 2), 2.0).tolerance == pytest.approx(0.015)


@pytest.mark.parametrize("printed", [0.005, 0.05, 0.5, 5.0])
@pytest.mark.parametrize("spread", [0.0, 0.001, 0.1])
def test_what_is_allowed_follows_from_the_rule_as_it_is_told(printed, spread):
    """max(0.015, or a fifth of the printed value if that is less; 3 standard errors)."""
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
    assert (small.cells, small.uncompared) == ((), "printed for other sizes")


def test_a_figure_of_context_has_its_means_in_a_table():
    found = presented(FIGURE_IN_CONTEXT, Scale.LAPTOP, lambda spec: 0.5)
    assert found.tables[0].rows[0][2:] == (0.502, 0.004, 0.5, 2)


def test_costs_grow_with_what_is_done():
    by = {copies: [s for s in FIGURE_RANK_DEPTH.specs(Scale.PAPER) if s.copies == copies]
          for copies in (1, 64)}  # fmt: skip
    cheap, dear = by[1][0], by[64][-1]
    assert step_seconds(cheap) < step_seconds(dear)
    assert run_seconds(cheap) > cheap.steps * step_seconds(cheap)
    # No estimate may lie below what the products alone would take.
    rows = dear.batch * dear.tokens * dear.layers
    products = 6 * rows * 64 * (4 * 4096 + 2 * 2048) * len(dear.seeds)
    assert step_seconds(dear) >= products / H200.flops
