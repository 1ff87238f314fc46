"""Accuracy and rank: planted rows are judged rightly, and what is not trained is named."""

import math

import pytest

from accuracy_verdict import (
    CONSTANT,
    OUR_RULE,
    PAPER_RULES,
    our_rule,
    paper_rule,
    setting_of,
    with_constant,
)
from headwise.experiments.train_classifier import TrainClassifier
from headwise.papers.catalogue import chosen
from headwise.papers.exhibit import Answers, Scale
from headwise.papers.rank2026.accuracy_and_rank import trained_of
from headwise.papers.rank2026.recipes import (
    HEADS,
    RECIPES,
    REVIEWS,
    Study,
    printed_accuracies,
)
from headwise.papers.reproduction import Wanted, _part
from headwise.runs import Provenance, Record, Records

FOUND = Provenance("0.1.0", "2.13.0", "cpu", "float32", 0.1, "headwise reproduce", 0)
TRAINED = {
    name: chosen([f"rank2026/{name}"])[0]
    for name in ("figure_3a", "figure_4", "figure_7", "figure_10", "figure_12", "table_3")
}


def planted(specs, accuracy, rank):
    """Records as if every seed reached ``accuracy(spec, seed)`` and every rank ``rank(spec)``."""
    records = []
    for spec in specs:
        if isinstance(spec, TrainClassifier):
            rows = tuple(trained_row(spec, seed, accuracy(spec, seed)) for seed in spec.seeds)
        else:
            rows = (rank_row(spec, rank(spec)),)
        records.append(Record(spec.key, spec.content, rows, FOUND))
    return records


def trained_row(spec, seed, accuracy):
    return {
        "seed": seed,
        "test_accuracy": accuracy,
        "validation_accuracy": accuracy,
        "diverged_at": None,
        "curve_epoch": [1.0, float(spec.epochs)],
        "curve_accuracy": [accuracy / 2, accuracy],
        "parameters": 1000 * spec.heads * spec.head_dim,
        "attention_parameters": 10,
        "trained_on": 900,
        "validated_on": 100,
        "tested_on": 100,
    }


def rank_row(spec, mean):
    row = {"layer": 1, "mean": mean, "std": 0.01, "count": 8, "stderr": 0.002}
    return row if "tokens" in spec.content else row | {"tokens": 64}


def rising(spec):
    """Rank that is saturated at 8 in the model's own reading, at 2 with N(0, 1) weights."""
    if spec.start == "normal(0,1)":
        return 0.4
    return {2: 0.3, 3: 0.4, 4: 0.6}.get(spec.head_dim, 0.99)


def improving_to_8(spec, seed):
    level = {2: 0.70, 3: 0.74, 4: 0.80}.get(spec.head_dim, 0.90)
    return level + 0.002 * seed


def presented(name, accuracy, rank=rising):
    exhibit = TRAINED[name]
    records = planted(exhibit.specs(Scale.GPU), accuracy, rank)
    return exhibit.present(Answers(Scale.GPU, tuple(records)))


def test_table_3_compares_only_whole_sets():
    known = printed_accuracies()

    def as_printed(spec, seed):
        return known[spec.dataset, spec.width, spec.heads] + 0.001 * (2 * seed - 1)

    shown = presented("table_3", as_printed)
    assert len(shown.cells) == 10
    assert all(cell.agrees for cell in shown.cells)
    assert all("CIFAR-10," in cell.name for cell in shown.cells)
    (table,) = shown.tables
    assert [row[9] for row in table.rows[10:12]] == [0.6316, 0.6435]
    wrong = presented("table_3", lambda spec, seed: as_printed(spec, seed) - 0.03)
    assert not any(cell.agrees for cell in wrong.cells)


def test_more_heads_do_better_beyond_the_spread_or_not():
    def by_heads(gain):
        return lambda spec, seed: 0.8 + gain * math.log2(spec.heads) + 0.002 * seed

    def first(shown):
        return next(claim for claim in shown.claims if "8 heads do better" in claim.words)

    assert first(presented("figure_4", by_heads(0.01))).holds
    assert not first(presented("figure_4", by_heads(0.0))).holds
    assert not first(presented("figure_4", by_heads(-0.01))).holds


def test_saturated_rank_is_judged_for_each_reading():
    claims = presented("figure_10", lambda spec, seed: 0.9 + 0.001 * seed).claims
    assert [c.holds for c in claims if "rank is saturated" in c.words] == [True, True]
    steep = presented("figure_10", improving_to_8, lambda spec: 0.02 * spec.head_dim).claims
    assert [c.holds for c in steep if "rank is saturated" in c.words] == [False, False]


def test_only_what_the_paper_prints_counts_as_printed():
    """Ranks are published for CIFAR-10: width 384 (Figure 4b) and 8 heads (Figure 10b)."""

    def sources(name):
        shown = presented(name, lambda spec, seed: 0.9 + 0.001 * seed)
        told = [c for c in shown.claims if "saturated" in c.words or "stops" in c.words]
        return {
            claim.words.split(",")[0] + claim.words.split(",")[1]: claim.printed[:4]
            for claim in told
        }

    assert sources("figure_7") == {"CIFAR-10 width 192": "", "CIFAR-10 width 384": "§4.2"}
    assert set(sources("figure_12").values()) == {""}
    assert set(sources("figure_10").values()) == {"§C.3"}
    assert set(sources("figure_3a").values()) == {"§4.1"}


def test_the_printed_stop_is_judged_by_the_interval():
    def stop(shown):
        return next(claim for claim in shown.claims if "stops improving" in claim.words)

    holds = stop(presented("figure_3a", improving_to_8))
    assert holds.holds
    assert "found: 8 (8 to 8)" in holds.words
    assert not stop(presented("figure_3a", lambda s, seed: 0.9 + 0.001 * seed)).holds


def test_what_is_not_trained_is_named():
    exhibit = TRAINED["figure_7"]
    specs = exhibit.specs(Scale.GPU)
    narrow = [spec for spec in specs if spec.width == 192 and spec.heads > 1]
    records = Records(planted(narrow, lambda spec, seed: 0.85, rising))
    found = _part(Wanted(exhibit, Scale.GPU), records, specs, "some missing")
    (table,) = found.shown.tables
    missing = [(row[1], row[2]) for row in table.rows if row[7] == "not trained"]
    assert missing == [(192, 1), *((384, heads) for heads in (1, 2, 4, 8, 16))]
    assert any(
        words.startswith("Not trained: CIFAR-10, width 192, 1 of 192;")
        for words in found.shown.remarks
    )
    assert [panel.y_label for panel in found.shown.panels] == [
        "validation accuracy",
        "test accuracy",
        "rank / length",
        "rank / length",
    ]


def test_a_diverged_run_counts_in_no_mean():
    exhibit = TRAINED["figure_3a"]
    records = planted(exhibit.specs(Scale.GPU), improving_to_8, rising)
    first = records[0]
    lost = {**first.rows[0], "test_accuracy": None, "diverged_at": 7}
    records[0] = Record(first.key, first.spec, (lost, *first.rows[1:]), FOUND)
    shown = exhibit.present(Answers(Scale.GPU, tuple(records)))
    assert "1 runs diverged; they count in no mean." in shown.remarks
    assert shown.tables[0].rows[0][6] == pytest.approx(0.703)


def test_subsets_are_said_to_be_subsets():
    shown = presented("figure_12", lambda spec, seed: 0.5)
    assert "(a subset of 50,000)" in shown.remarks[0]


def test_printed_values_are_drawn_beside_whole_sets_alone():
    whole = presented("figure_4", lambda spec, seed: 0.85).panels[0]
    assert len(whole.curves[0].printed) == 5
    exhibit = chosen(["rank2026/figure_8"])[0]
    records = planted(exhibit.specs(Scale.GPU), lambda spec, seed: 0.4, rising)
    panels = exhibit.present(Answers(Scale.GPU, tuple(records))).panels
    (end,) = (panel for panel in panels if panel.title == "After training")
    assert [len(curve.mean) for curve in end.curves] == [5, 5]
    assert [len(curve.printed) for curve in end.curves] == [0, 0]


def test_unstable_training_is_said():
    exhibit = TRAINED["figure_10"]
    records = planted(exhibit.specs(Scale.GPU), improving_to_8, rising)
    first = records[0]
    fell = {**first.rows[0], "curve_accuracy": [0.5, 0.3]}
    records[0] = Record(first.key, first.spec, (fell, *first.rows[1:]), FOUND)
    shown = exhibit.present(Answers(Scale.GPU, tuple(records)))
    (told,) = (words for words in shown.remarks if "unstable" in words)
    assert told.startswith("CIFAR-10, 8 heads, width 192: training is unstable in 1 of 10 runs;")


def test_the_gpu_schedule_is_what_was_run():
    runs = RECIPES[Scale.GPU]
    assert (runs["cifar10"].epochs, runs["cifar10"].seeds) == (58, ((0, 1),))
    assert (runs["imdb"].epochs, runs["imdb"].seeds) == (10, ((0, 1, 2),))


def planted_setting(study, accuracy, rank=rising):
    records = planted(study.specs(Scale.GPU), accuracy, rank)
    found = trained_of(study, Answers(Scale.GPU, tuple(records)))
    return setting_of(found, study.families[-1])


def test_a_rule_that_predicts_the_stop_agrees_and_one_that_does_not_differs():
    one = planted_setting(REVIEWS, improving_to_8)
    assert one.stop.head_dim == 8
    assert one.rules[OUR_RULE] == 8
    assert one.rules[PAPER_RULES["model"]] == 8
    assert one.rules[PAPER_RULES["normal(0,1)"]] == 2
    assert one.verdict(OUR_RULE) == "agrees"
    assert one.verdict(PAPER_RULES["normal(0,1)"]) == "differs"
    assert one.distance(PAPER_RULES["normal(0,1)"]) == -2.0
    best = max(one.predictors, key=lambda name: one.predictors[name].best)
    assert best == "rank, the model's own initialisation"


def test_ranks_that_never_saturate_lie_above_the_grid():
    one = planted_setting(REVIEWS, improving_to_8, lambda spec: 0.05 * spec.head_dim)
    assert one.rules[PAPER_RULES["model"]] == math.inf
    assert one.verdict(PAPER_RULES["model"]) == "differs"
    assert one.distance(PAPER_RULES["model"]) is None


def test_without_ranks_rules_give_no_verdict():
    specs = [s for s in REVIEWS.specs(Scale.GPU) if isinstance(s, TrainClassifier)]
    records = planted(specs, improving_to_8, rising)
    found = trained_of(REVIEWS, Answers(Scale.GPU, tuple(records)))
    one = setting_of(found, REVIEWS.families[0])
    assert one.rules[OUR_RULE] is None
    assert one.verdict(OUR_RULE) == "undecided"
    assert "rank, N(0, 1) weights" not in one.predictors
    empty = trained_of(REVIEWS, Answers(Scale.GPU, ()))
    assert setting_of(empty, REVIEWS.families[0]) is None


def test_the_constant_is_that_of_the_other_settings():
    settings = [planted_setting(Study(n, HEADS), improving_to_8) for n in ("cifar10", "svhn")]
    early = planted_setting(
        Study("cifar100", HEADS), lambda s, seed: (0.5 if s.head_dim == 2 else 0.9) + 0.001 * seed
    )
    found = with_constant([*settings, early])
    assert [one.rules[CONSTANT] for one in found] == [6, 6, 8]
    assert with_constant([early])[0].rules[CONSTANT] is None


def test_rules_need_two_points():
    assert paper_rule({}) is None
    assert our_rule([]) is None


def test_our_rule_asks_for_more_where_seeds_scatter():
    """It goes by the lower confidence limit and the highest point, as ``advise`` does."""
    means = {2: 0.5, 4: 0.93, 8: 1.0, 16: 0.98}

    def rows(scatter):
        return [
            {"head_dim": d, "seed": s, "tokens": 64, "mean": mean + scatter * (s - 1.5) * (d == 4)}
            for d, mean in means.items()
            for s in range(4)
        ]

    assert our_rule(rows(0.001)) == 4
    assert our_rule(rows(0.05)) == 8
