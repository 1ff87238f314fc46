"""Rows of the benchmark become answers of the specs they trained, and of no other."""

from dataclasses import asdict

import pytest

from benchmarks import real_plans, real_records
from headwise.papers.exhibit import Scale
from headwise.runs import Store


@pytest.fixture
def spec():
    found = real_records.questions(Scale.GPU)
    return next(one for one in found if one.content["dataset"] == "imdb" and one.head_dim == 4)


def rows_of(spec, **changes):
    content = spec.content
    settings = {name: content[field] for name, field in real_records.SETTINGS.items()}
    numbers = {"test_accuracy": 0.85, "validation_accuracy": 0.86, "parameters": 9}
    numbers |= {"attention_parameters": 4, "trained_on": 22_500, "validated_on": 2_500}
    made = {"code": "0.1.0+abc", "torch": "2.11.0", "device": "NVIDIA H200", "command": "python"}
    row = {**settings, **numbers, "tested_on": 25_000, **made}
    row |= {"seconds": 18.0, "members": 6, "diverged": False, "curve": [[1.0, 0.75, 0.6]]}
    return [row | {"seed": seed} | changes for seed in spec.seeds]


def test_rows_of_every_seed_answer_their_spec(spec, tmp_path):
    rows = rows_of(spec)
    mine = real_records.answers(spec, rows)
    assert [row["seed"] for row in mine] == [0, 1, 2]
    with Store.open(tmp_path / "rows.db") as store:
        store.put(spec, real_records.answer(spec, mine))
        (record,) = store.records_of([spec]).values()
    assert record.rows[2]["seed"] == 2
    assert record.rows[0]["curve_accuracy"] == [0.75]
    assert record.rows[0]["diverged_at"] is None
    assert record.provenance.device == "cuda (NVIDIA H200)"
    assert record.provenance.seconds == 9.0


@pytest.mark.parametrize(
    "change", [{"epochs": 9}, {"rate": 1e-3}, {"dtype": "float32"}, {"trained_on": 100}]
)
def test_rows_of_other_settings_answer_nothing(spec, change):
    assert real_records.answers(spec, rows_of(spec, **change)) == []


def test_every_run_trains_what_an_exhibit_asks():
    asked = {
        tuple(spec.content[field] for field in real_records.SETTINGS.values())
        for spec in real_records.questions(Scale.GPU)
    }
    for name, (plan, geometries) in real_plans.RUNS.items():
        if name.endswith(real_plans.ADVISED):
            continue
        known = asdict(plan) | asdict(plan.model) | {"dtype": "bf16"}
        for own in geometries:
            sizes = {"width": own.width, "heads": own.heads, "head_dim": own.qk_rank}
            settings = known | sizes
            assert tuple(settings[name] for name in real_records.SETTINGS) in asked


def test_a_missing_seed_gives_no_answer(spec):
    assert real_records.answers(spec, rows_of(spec)[:2]) == []


def test_runs_that_judge_the_advice_have_the_recipe_of_the_exhibits():
    judging = [name for name in real_plans.RUNS if name.endswith(real_plans.ADVISED)]
    assert len(judging) == 3
    for name in judging:
        plan, splits = real_plans.RUNS[name]
        assert plan == real_plans.RUNS[name.replace(real_plans.ADVISED, "-192")][0]
        assert [(g.heads, g.qk_rank) for g in splits] == [(3, 64), (24, 8), (48, 4)]
