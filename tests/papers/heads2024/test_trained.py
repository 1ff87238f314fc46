"""Exhibits of the heads paper that train: their questions, and what they make of the answers."""

import shutil
from pathlib import Path

import pytest

from headwise.experiments.training_cost import H200, cheap_first, run_seconds, step_seconds
from headwise.experiments.training_run import TrainingRun
from headwise.papers import catalogue
from headwise.papers.catalogue import record_path
from headwise.papers.exhibit import Answers, Scale
from headwise.papers.kinds.protocols import protocol_panels
from headwise.papers.pages import figures_of, summary_table
from headwise.papers.printed import printed_table
from headwise.papers.recorded import record
from headwise.papers.reproduction import best_recorded
from headwise.report import draw
from headwise.runs import Record, Records
from papers.heads2024.inventing import (
    FIGURE_IN_CONTEXT,
    FIGURE_LARGE_N,
    FIGURE_POSITIONS,
    FIGURE_RANK_DEPTH,
    FIGURE_ROLE_OF_N,
    FIGURE_SATURATION,
    FIGURE_WHAT_IT_LEARNS,
    SOURCE,
    TRAINED,
    invented,
    presented,
)


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
    by_setting: dict[str, list[int]] = {}
    for spec in specs:
        setting = {name: value for name, value in spec.content.items() if name != "seeds"}
        by_setting.setdefault(str(setting), []).extend(spec.seeds)
    assert {tuple(sorted(seeds)) for seeds in by_setting.values()} == {(0, 1, 2, 3, 4)}
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
    claims = {claim.words: claim.holds for claim in found.claims}
    assert claims["one layer of full rank and d² parameters reaches a loss of 0.02"]
    assert claims["one layer of rank 32 or less stays above 0.25"] is holds
    assert (
        claims["with one layer and d² parameters full rank is at least 10 times better than half"]
        is holds
    )
    assert any("shortened" in remark for remark in found.remarks)


@pytest.mark.parametrize(("low", "holds"), [(0.03, True), (0.015, False)])
def test_low_rank_is_judged_in_deep_stacks_but_for_the_one_that_the_talk_calls_junk(low, holds):
    def loss(spec):
        if (spec.layers, spec.copies) == (5, 1):
            return 0.9
        return 0.01 if spec.rank == spec.width else low if spec.layers > 1 else 0.5

    claims = presented(FIGURE_RANK_DEPTH, Scale.GPU, loss).claims
    (deep,) = [claim for claim in claims if "several layers" in claim.words]
    assert deep.holds is holds
    assert deep.printed


def test_the_title_counts_what_the_rows_hold():
    # The paper's scale is fixed; what is there at smaller ones may change.
    records = tuple(invented(spec, lambda _: 0.5) for spec in FIGURE_RANK_DEPTH.specs(Scale.PAPER))
    whole = FIGURE_RANK_DEPTH.present(Answers(Scale.PAPER, records))
    assert whole.title.endswith("for three numbers of parameters and three depths")
    fewer = [r for r in records if r.spec["layers"] == 1 and r.spec["copies"] != 64]
    part = FIGURE_RANK_DEPTH.present(Answers(Scale.GPU, tuple(fewer)))
    assert part.title.endswith("for two numbers of parameters and one depth")


def test_panels_stand_in_a_row_for_each_depth_and_carry_the_baseline():
    found = presented(FIGURE_RANK_DEPTH, Scale.PAPER, lambda spec: 0.5)
    assert [panel.y_label for panel in found.panels] == ["best training loss", "test loss"] * 3
    assert all(("trivial", 0.9) in panel.levels for panel in found.panels)
    assert any(len(curve.printed) for curve in found.panels[0].curves)
    assert not any(len(curve.printed) for curve in found.panels[1].curves)


def test_growing_n_is_a_claim_that_can_fail():
    rising = presented(FIGURE_LARGE_N, Scale.GPU, lambda s: 0.01 * s.tokens)
    falling = presented(FIGURE_LARGE_N, Scale.GPU, lambda s: 1 / s.tokens)
    assert [rising.claims[0].holds, falling.claims[0].holds] == [True, False]


def test_what_full_rank_learns_adds_only_the_papers_rate():
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


@pytest.mark.parametrize(("low", "holds"), [(0.5, True), (0.01, False)])
def test_where_the_two_rules_disagree(low, holds):
    records = [
        invented(spec, lambda s: 0.01 if s.rank == s.width else low)
        if isinstance(spec, TrainingRun)
        else Record(spec.key, spec.content, (measured(spec.head_dim),), SOURCE)
        for spec in FIGURE_SATURATION.specs(Scale.GPU)
    ]
    found = FIGURE_SATURATION.present(Answers(Scale.GPU, tuple(records)))
    assert [claim.holds for claim in found.claims] == [True, holds]
    assert "takes r = 8" in found.remarks[0]


def measured(head_dim):
    return {"mean": min(head_dim, 8) / 20, "std": 0.1, "count": 64, "stderr": 0.01}


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


@pytest.fixture
def with_a_part(tmp_path, monkeypatch):
    """The recorded rows of scale gpu, and three layers with c = 1 and two seeds of scale paper."""
    name = Path(record_path(FIGURE_RANK_DEPTH.name, "gpu"))
    (tmp_path / "heads2024").mkdir()
    shutil.copy(name, tmp_path / "heads2024")
    part = [
        invented(spec, lambda _: 0.5)
        for spec in FIGURE_RANK_DEPTH.specs(Scale.PAPER)
        if (spec.layers, spec.copies, spec.seeds) == (3, 1, (0, 1))
    ]
    record(FIGURE_RANK_DEPTH, Scale.PAPER, Records(part), tmp_path)
    monkeypatch.setattr(catalogue, "RECORDS", tmp_path)
    return part


def test_a_part_of_the_papers_scale_is_shown_with_the_complete_smaller_scale(with_a_part):
    gpu, paper = best_recorded(FIGURE_RANK_DEPTH)
    assert (gpu.wanted.scale, gpu.problem) == (Scale.GPU, "")
    assert (paper.wanted.scale, paper.problem) == (Scale.PAPER, "238 missing of 252")
    assert len(with_a_part) == 14
    assert paper.shown.remarks[0] == (
        "Only 14 of 252 runs of this scale are there. Missing are all with seeds 2, 3, 4; "
        "layers 1, 5; copies 8, 64."
    )
    assert {cell.name.rpartition(",")[0] for cell in paper.shown.cells} == {
        "3 layers, d² parameters"
    }
    panels = figures_of([gpu, paper])[FIGURE_RANK_DEPTH.name]
    assert [panel.title for panel in panels[-2:]] == [
        "3 layers, fixed set, scale paper",
        "3 layers, fresh data, scale paper",
    ]
    assert len(draw(panels).axes) == len(gpu.shown.panels) + 2
    assert [row[2] for row in summary_table([gpu, paper]).rows] == ["gpu", "paper, in part"]


def test_without_fresh_runs_the_second_panel_shows_the_test_loss_of_the_fixed_set():
    rows = [
        {"rank": r, "protocol": "fixed", "best_train_loss": 0.1, "test_loss": 0.7 + r / 10}
        | {"steps": 200, "epoch": 100, "trivial": 0.89}
        for r in (1, 2)
    ]
    trained, tested = protocol_panels("3 layers", {"H = d/r": rows}, ("rank", "rank r"))
    assert trained.curves[0].mean.y == (0.1, 0.1)
    assert tested.curves[0].mean.y == pytest.approx((0.8, 0.9))
    assert (tested.title, tested.y_label) == ("3 layers, trained on the fixed set", "test loss")
    fresh = [row | {"protocol": "fresh", "test_loss": 0.5} for row in rows]
    _, tested = protocol_panels("3 layers", {"H = d/r": rows + fresh}, ("rank", "rank r"))
    assert tested.curves[0].mean.y == (0.5, 0.5)
    assert (tested.title, tested.y_label) == ("3 layers, fresh data", "test loss")


def test_the_recorded_panel_of_the_papers_scale_is_memorised_below_rank_16():
    _, paper = best_recorded(FIGURE_RANK_DEPTH)
    (told,) = [one for one in paper.shown.remarks if "no better than the trivial" in one]
    assert told.endswith(": 3 layers, d² parameters at r = 1, 2, 4, 8.")
    near = [cell.name for cell in paper.shown.cells if abs(cell.difference) < 0.03 * cell.printed]
    assert near == [f"3 layers, d² parameters, r {r}" for r in (1, 2, 8, 16)]


def test_one_layer_on_fresh_data_stands_beside_the_authors_sweep():
    found = presented(FIGURE_RANK_DEPTH, Scale.GPU, lambda spec: 0.5)
    (table,) = [table for table in found.tables if "authors" in table.title]
    assert [row[:2] for row in table.rows] == [
        (64, 0.061), (32, 0.721), (16, 0.827), (8, 0.863), (4, 0.878), (2, 0.885), (1, 0.889)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("losses", "holds"),
    [
        ({("concatenated", 3): 0.1}, [True, True, True]),
        ({("additive", 1): 0.1}, [False, True, False]),
        ({("concatenated", 1): 0.1, ("concatenated", 3): 0.1}, [True, False, True]),
    ],
)
def test_what_the_talk_says_of_positions_can_fail(losses, holds):
    found = presented(
        FIGURE_POSITIONS, Scale.GPU, lambda spec: losses.get((spec.positions, spec.layers), 0.5)
    )
    assert [claim.holds for claim in found.claims] == holds
    assert all(claim.printed.startswith("the authors' talk") for claim in found.claims)


def test_more_points_make_low_rank_worse_can_fail():
    rising = presented(FIGURE_ROLE_OF_N, Scale.GPU, lambda spec: spec.tokens / 300)
    falling = presented(FIGURE_ROLE_OF_N, Scale.GPU, lambda spec: 1 / spec.tokens)
    assert [rising.claims[0].holds, falling.claims[0].holds] == [True, False]
