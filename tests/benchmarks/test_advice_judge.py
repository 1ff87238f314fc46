"""The arithmetic of the judging, on rows written by hand."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from benchmarks.advice import judge, page
from benchmarks.advice.evidence_table import evidence_rows, kind_of, partly_swept, swept_tasks
from benchmarks.advice.inputs import RECORD
from benchmarks.advice.judge_language import is_learned, judged_names, width_scores
from benchmarks.advice.lead import advised_now, lead_table, part_table
from benchmarks.advice.rules import RULES, Question
from benchmarks.advice.tasks import BENCHES
from benchmarks.recording import read_rows

from headwise.advice.curves import RankCurve
from headwise.advice.evidence import Evidence
from headwise.advice.judged import TABLE, from_row
from headwise.advice.tokens.statistics import TokenStatistics

ROOT = Path(__file__).parents[2]
BENCH = BENCHES["digits-patches"]
DIMS = (1, 2, 4, 8, 16, 32, 64)


def evidence(model, paper, dimension=2.5):
    """Curves given point by point."""
    curves = tuple(
        RankCurve(start, DIMS, tuple(means), (0.0,) * 7, 8, max(means), "given")
        for start, means in (("model", model), ("paper", paper))
    )
    told = TokenStatistics(64, 16, 64, dimension, 0.0, 0.5, 0.1, learned=False)
    return Evidence("by hand", 16, 64, curves, told, 0)


SATURATES_AT_8 = evidence((0.1, 0.3, 0.8, 0.95, 1.0, 1.0, 1.0), (0.3, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5))


def row(geometry, seed, score, bench=BENCH):
    return {
        "task": bench.name,
        "measure": bench.measure,
        "width": geometry.width,
        "heads": geometry.heads,
        "qk_rank": geometry.qk_rank,
        "v_rank": geometry.v_rank,
        "seed": seed,
        "score": score,
        "device": "by hand",
        "dtype": "float32",
        "torch": "2",
        "code": "0",
    }


def question(regime):
    return Question(regime, 4, SATURATES_AT_8, judge.choices(BENCH.name, regime))


def chosen(rule, regime):
    return [(g.heads, g.qk_rank) for g in RULES[rule](question(regime))]


def test_what_each_rule_chooses_with_heads_fixed():
    found = {rule: chosen(rule, "heads") for rule in RULES if rule != "chance"}
    assert found == {
        "headwise": [(4, 8)],
        "usual (r = 64)": [(4, 64)],
        "4 heads (r = d/4)": [(4, 16)],
        "paper's rule": [(4, 2)],
        "largest": [(4, 64)],
        "half the parameters": [(4, 32)],
    }
    assert len(chosen("chance", "heads")) == 7


def test_what_each_rule_chooses_with_the_width_fixed_and_free():
    assert chosen("headwise", "width") == [(8, 8)]
    assert chosen("paper's rule", "width") == [(32, 2)]
    assert chosen("headwise", "free") == [(8, 8)]
    assert chosen("usual (r = 64)", "free") == [(1, 64)]
    assert chosen("largest", "free") == [(4, 64)]
    assert chosen("half the parameters", "free") == [(4, 32)]
    # 4×16 is in both sweeps.
    assert len(chosen("chance", "free")) == 13


def test_what_each_rule_chooses_at_half_the_parameters():
    found = {rule: chosen(rule, "half") for rule in RULES if rule != "chance"}
    assert found == {
        "headwise": [(16, 8)],
        "usual (r = 64)": [(2, 64)],
        "4 heads (r = d/4)": [(8, 16)],
        "paper's rule": [(32, 4)],
        "largest": [(2, 64)],
        "half the parameters": [(4, 32)],
    }
    assert len(chosen("chance", "half")) == 5


def test_half_the_parameters_is_compared_with_everything_that_was_trained():
    """The best is one that no rule may choose: it has twice the parameters."""
    best = BENCH.geometries("heads")[-1]
    swept = [*BENCH.geometries("half"), best]
    rows = [row(g, seed, 0.9 if g == best else 0.8) for g in swept for seed in (0, 1)]
    told = [{"task": BENCH.name, "trivial": 0.1, "evidence": asdict(SATURATES_AT_8)}]
    found = {v.rule: v for v in judge.judge(rows, told) if v.regime == "half"}
    assert found["headwise"].best == best
    assert found["headwise"].regret == pytest.approx(0.1)
    assert found["headwise"].cost == 0.5


def rows_by_rank(scores):
    """Rows of the heads-fixed sweep: score by rank, seeds 0 and 1 apart by their spread."""
    return [
        row(g, seed, scores[g.qk_rank] + seed * 0.02 * (g.qk_rank == 8))
        for g in BENCH.geometries("heads")
        for seed in (0, 1)
    ]


def test_regret_is_the_paired_difference_to_the_best_in_hindsight():
    scores = {1: 0.5, 2: 0.6, 4: 0.7, 8: 0.8, 16: 0.9, 32: 0.85, 64: 0.85}
    told = judge.scores_of(rows_by_rank(scores), BENCH.name, trivial=0.1)
    ours = judge.verdict("headwise", RULES["headwise"], question("heads"), BENCH.name, told)
    assert (ours.best.qk_rank, ours.chosen[0].qk_rank) == (16, 8)
    assert ours.by_seed == pytest.approx((0.10, 0.08))
    assert (ours.regret, ours.error) == pytest.approx((0.09, 0.01))
    assert ours.cost == 8 / 64
    assert ours.ratio is None


def test_chance_is_the_mean_over_all_choices():
    scores = dict(zip(DIMS, (0.5, 0.6, 0.7, 0.8, 0.9, 0.85, 0.85), strict=True))
    told = judge.scores_of(rows_by_rank(scores), BENCH.name, trivial=0.1)
    found = judge.verdict("chance", RULES["chance"], question("heads"), BENCH.name, told)
    assert found.by_seed[0] == pytest.approx(0.9 - sum(scores.values()) / 7)
    assert found.cost == pytest.approx(sum(DIMS) / 7 / 64)


def test_errors_are_shares_of_the_trivial_error_and_ratios():
    bench = BENCHES["farthest-planted-8"]
    errors = dict(zip(DIMS, (0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1), strict=True))
    rows = [row(g, s, errors[g.qk_rank], bench) for g in bench.geometries("heads") for s in (0, 1)]
    told = judge.scores_of(rows, bench.name, trivial=0.5)
    asked = Question("heads", 4, SATURATES_AT_8, judge.choices(bench.name, "heads"))
    found = judge.verdict("headwise", RULES["headwise"], asked, bench.name, told)
    assert found.regret == pytest.approx((0.3 - 0.1) / 0.5)
    assert found.ratio == pytest.approx(3.0)


def test_a_run_that_diverged_counts_as_having_learned_nothing():
    geometry = BENCH.geometries("heads")[0]
    told = judge.scores_of([row(geometry, 0, None)], BENCH.name, trivial=0.1)
    assert told[geometry] == {0: 0.1}


def test_the_summary_pairs_rules_by_task_and_seed():
    scores = {1: 0.5, 2: 0.6, 4: 0.7, 8: 0.8, 16: 0.9, 32: 0.85, 64: 0.85}
    told = judge.scores_of(rows_by_rank(scores), BENCH.name, trivial=0.1)
    found = [
        judge.verdict(name, rule, question("heads"), BENCH.name, told)
        for name, rule in RULES.items()
    ]
    usual = judge.summary(found, "usual (r = 64)")
    assert usual.regret == pytest.approx(0.05) and usual.error == pytest.approx(0.0)
    assert (usual.behind, usual.behind_error) == pytest.approx((-0.04, 0.01))
    assert judge.summary(found, "headwise").behind == 0


def test_a_sweep_with_gaps_is_not_judged():
    rows = rows_by_rank(dict.fromkeys(DIMS, 0.5))
    told = [{"task": BENCH.name, "trivial": 0.1, "evidence": asdict(SATURATES_AT_8)}]
    found = judge.judge(rows, told)
    assert {(v.task, v.regime) for v in found} == {(BENCH.name, "heads")}
    assert len(found) == len(RULES)
    assert judge.judge(rows[2:], told) == []


def test_devices_are_not_compared_with_each_other():
    here = rows_by_rank(dict.fromkeys(DIMS, 0.5))
    there = [one | {"device": "another", "score": 0.9} for one in here[:3]]
    wanted = judge.choices(BENCH.name, "heads")
    found = judge.of_one_device([*here, *there], BENCH.name, 0.1, wanted)
    assert set(found) == set(wanted)
    assert max(score for cell in found.values() for score in cell.values()) < 0.6
    half = len(here) // 2
    mixed = [one | {"device": "another"} for one in here[:half]] + here[half:]
    told = [{"task": BENCH.name, "trivial": 0.1, "evidence": asdict(SATURATES_AT_8)}]
    assert judge.judge(mixed, told) == []


def test_one_seed_has_no_error_bar():
    assert math.isnan(judge.mean_and_error([0.5])[1])


def test_the_page_keeps_the_text_around_its_tables(tmp_path):
    place = tmp_path / "page.md"
    place.write_text(f"# Before\n\n{page.BEGIN}\nold\n{page.END}\n\nAfter\n")
    page.write_page(place, "new")
    assert place.read_text() == f"# Before\n\n{page.BEGIN}\n\nnew\n\n{page.END}\n\nAfter\n"


def test_every_task_has_a_kind():
    assert {kind_of(name) for name in BENCHES} == {"classify", "regress", "retrieve"}


def test_the_page_says_what_the_records_say():
    rows = read_rows(sorted(judge.RECORDS.glob("rows*.jsonl")))
    inputs = read_rows([RECORD])
    text = page.report(judge.judge(rows, inputs), rows, inputs)
    assert text in (ROOT / "docs" / "advice-rules.md").read_text(encoding="utf-8")


def test_planted_dimensions_are_where_the_error_falls():
    """The committed rows, not a training: one head, queries and keys of rank r alone."""
    rows = read_rows(sorted(judge.RECORDS.glob("rows*.jsonl")))
    trivial = {row["task"]: row["trivial"] for row in read_rows([RECORD])}
    for planted in (4, 8, 16):
        bench = BENCHES[f"farthest-planted-{planted}"]
        scores = judge.scores_of(rows, bench.name, trivial[bench.name])
        error = {
            g.qk_rank: -judge.mean_and_error(list(scores[g].values()))[0]
            for g in bench.geometries("single")
        }
        whole = 1 - error[32]
        assert (1 - error[planted]) / whole > 0.75
        assert (1 - error[planted // 2]) / whole < 0.65


LANGUAGE = read_rows(sorted(judge.RECORDS.glob("language*.jsonl")))
PROSE, RECALL = "prose-next-token-w256-n512", "associative-w128-n128"
HELD_OUT = "code-next-token-w256-n512"


@pytest.fixture(scope="module")
def tasks():
    rows = read_rows(sorted(judge.RECORDS.glob("rows*.jsonl")))
    return swept_tasks(rows, read_rows([RECORD]), LANGUAGE)


def test_the_page_leads_with_the_advice_of_today(tasks):
    text = (ROOT / "docs" / "advice-judged.md").read_text(encoding="utf-8")
    lead = lead_table(tasks)
    assert lead in text
    assert text.index(lead) < text.index("\n## ")


def test_the_page_has_the_tasks_that_are_trained_in_part(tasks):
    rows = read_rows(sorted(judge.RECORDS.glob("rows*.jsonl")))
    partly = partly_swept(rows, read_rows([RECORD]))
    assert not {task.name for task in partly} & {task.name for task in tasks}
    text = (ROOT / "docs" / "advice-judged.md").read_text(encoding="utf-8")
    assert part_table(partly, tasks) in text


def test_a_task_with_a_missing_split_is_compared_and_is_no_evidence(tasks):
    rows = read_rows(sorted(judge.RECORDS.glob("rows*.jsonl")))
    kept = [r for r in rows if r["task"] != "cifar10" or r["qk_rank"] in (8, 64)]
    told = read_rows([RECORD])
    assert "cifar10" not in [task.name for task in swept_tasks(kept, told)]
    (part,) = (task for task in partly_swept(kept, told) if task.name == "cifar10")
    assert [split.qk_rank for split in part.splits] == [8, 64]
    line = part_table([part], [task for task in tasks if task.name != "cifar10"]).splitlines()[-1]
    assert "| 16 × 8 | 2 × 64 | 1.8 ± 0.5 points |" in line


def test_the_stored_evidence_is_what_the_records_say(tasks):
    assert json.loads(TABLE.read_text()) == evidence_rows(tasks)


def test_next_token_rows_are_judged_in_nats_after_the_longest_training(tasks):
    found = {task.name: task for task in tasks if task.kind == "next-token"}
    assert [name for name, task in found.items() if task.held_out] == [HELD_OUT]
    (row,) = evidence_rows([found[PROSE]])
    assert (row["name"], row["unit"], row["held_out"]) == (PROSE, "nats", False)
    own = [r for r in LANGUAGE if r["task"] == PROSE and r["steps"] == 8000]
    loss = {(r["heads"], r["seed"]): r["score"] for r in own}
    gaps = [loss[4, seed] - loss[1, seed] for seed in range(3)]
    mean, error = judge.mean_and_error(gaps)
    assert (row["best"], row["usual"]) == ([1, 256], [4, 64])
    assert (row["usual_regret"], row["usual_error"]) == (round(mean, 4), round(error, 4))


def test_a_shorter_training_and_a_worse_rate_do_not_count():
    one = next(r for r in LANGUAGE if r["task"] == PROSE and r["steps"] == 8000)
    rows = [one | {"score": 3.0}, one | {"score": 2.0, "steps": 4000}]
    rows += [one | {"score": 4.0, "rate": 0.1}, one | {"score": 1.0, "v_rank": 4}]
    assert list(width_scores(rows, PROSE).values()) == [{one["seed"]: -3.0}]


def test_recall_that_is_not_learned_is_no_evidence(tasks):
    assert RECALL not in [task.name for task in tasks]
    own = [row for row in LANGUAGE if row["task"] == RECALL]
    assert own and not is_learned(own, RECALL)
    assert max(row["accuracy"] for row in own) > 0.9  # one lucky seed of three
    longest = [row for row in own if row["steps"] == 4000]
    learned = [row | {"accuracy": 0.9} for row in longest if row["heads"] == 16]
    assert judged_names([*own, *learned]) == [RECALL]


def test_the_advice_for_a_task_does_not_see_its_own_result(tasks):
    """A second held-out next-token task makes it leave the usual geometry; its own does not."""
    prose = next(task for task in tasks if task.name == PROSE)
    own = from_row(*evidence_rows([prose]))
    assert advised_now(prose, []).qk_rank == 64
    better = replace(own, gain=1.0, held_out=True)
    assert advised_now(prose, [better]).qk_rank == 64  # one task is not enough
    both = [better, replace(better, name="another")]
    assert advised_now(prose, both).qk_rank == own.by_rank[1] < 64


def test_the_row_of_a_task_is_limited_by_the_other_tasks_alone(tasks):
    """On digits, pixel by pixel, tokens ask for rank 32; without other tasks nothing limits it."""
    pixels = next(task for task in tasks if task.name == "digits-pixels")
    (alone,) = evidence_rows([pixels])
    among = next(row for row in evidence_rows(tasks) if row["name"] == pixels.name)
    assert (alone["by_rank"], among["by_rank"]) == ([2, 32], [8, 8])
    assert alone["most"] == among["most"] == 4


def test_a_row_names_what_its_tokens_are_made_of_and_how_long_was_trained(tasks):
    rows = {row["name"]: row for row in evidence_rows(tasks)}
    known = {name: (row["data"], row["steps"]) for name, row in rows.items()}
    assert known["digits-pixels"] == ("images", 1200)
    assert known[PROSE] == ("text", 8000)
    assert known["next-window"] == ("sequences", 3000)
