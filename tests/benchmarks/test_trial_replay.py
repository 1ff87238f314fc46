"""Trials replayed on planted curves: costs, choices, Brier scores, reliability."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.advice import trial_against_optuna as against
from benchmarks.advice import trial_calibration as calibration
from benchmarks.advice import trial_plans as plans
from benchmarks.advice.recorded_curves import RECORDS, Recorded, Replay, recorded_tasks

from headwise.geometry import HeadGeometry
from headwise.trials import halving
from headwise.trials.candidates import name_of

STEPS = (10, 20, 40, 80, 160)


def planted(gap=0.1, noise=0.001):
    """Three candidates on a falling curve, a gap apart from the first look on; the middle wins."""
    geometries = [HeadGeometry.free(64, 64 // rank, rank) for rank in (16, 32, 64)]
    rng = np.random.default_rng(0)
    level = np.array([step**-0.5 for step in STEPS])
    shift = gap * np.array([1.0, 0.0, 2.0])
    scores = level[None, :, None] + shift[:, None, None] + noise * rng.standard_normal((3, 5, 4))
    names = {name_of(g): g for g in geometries}
    return Recorded("planted", "nats", 64, names, STEPS, scores, scores[:, -1])


def test_a_replay_counts_the_steps_it_was_asked_for():
    runner = Replay(planted(), [0, 1])
    runner.train(["4 x 16", "2 x 32"], 20)
    runner.train(["2 x 32"], 40)
    assert runner.spent() == 2 * (20 + 40)


def test_regret_is_the_distance_to_the_best_at_the_end():
    task = planted()
    assert task.best == "2 x 32" and task.regret("2 x 32") == 0
    assert task.regret("1 x 64") == pytest.approx(0.2, abs=0.01)
    assert task.sweep_cost == 3 * 4 * 160


@pytest.mark.parametrize("name", ["headwise trial", "random search"])
def test_methods_find_a_clear_winner_when_they_may_spend_everything(name):
    task = planted()
    assert against.METHODS[name](task, task.sweep_cost, 0) == "2 x 32"


@pytest.mark.parametrize("name", ["Optuna, ASHA + TPE", "Optuna, Hyperband + TPE"])
def test_optuna_finds_a_clear_winner_too(name):
    pytest.importorskip("optuna")
    task = planted()
    assert against.METHODS[name](task, task.sweep_cost, 0) == "2 x 32"


def test_probabilities_of_a_replay_sum_to_one_and_name_the_winner():
    found = calibration.replayed(planted(), (0, 1), 0.4, prior=1.0)
    assert sum(found.values()) == pytest.approx(1)
    assert max(found, key=lambda name: found[name]) == "2 x 32"


def test_brier_and_reliability_of_known_answers():
    told = [calibration.Told("t", 0.1, p, best) for p, best in ((1.0, True), (0.0, False))]
    assert calibration.brier(told) == 0
    wrong = [calibration.Told("t", 0.1, 0.8, False), calibration.Told("t", 0.1, 0.8, True)]
    assert calibration.brier(wrong) == pytest.approx((0.64 + 0.04) / 2)
    assert calibration.reliability(wrong) == [
        {"stated": pytest.approx(0.8), "true": 0.5, "count": 2}
    ]


def test_the_setting_for_a_task_is_chosen_without_its_own_family():
    good, bad = ([calibration.Told("t", 0.1, p, True)] for p in (1.0, 0.0))
    grid = {
        (1.0, 1.0): {"a-1": good, "a-2": good, "b-1": bad},
        (2.0, 1.0): {"a-1": bad, "a-2": bad, "b-1": good},
    }
    assert calibration.left_out(grid) == {"a-1": (2.0, 1.0), "a-2": (2.0, 1.0), "b-1": (1.0, 1.0)}


def test_each_seed_of_a_task_comes_first_in_one_replay():
    assert list(calibration.seed_pairs(planted())) == [(0, 1), (1, 2), (2, 3), (3, 0)]


def test_a_replay_of_all_seeds_at_once_costs_more_than_of_one_first():
    task = planted(gap=0.0)
    looks = plans.looks_of(task, 1 / 4)
    assert [step for step, ends in looks if ends] == [20, 40, 80, 160]
    one, both = (
        calibration.raced(task, (0, 1), 3 * 2 * 20, 1.0, plan=looks, first=first)
        for first in (1, 2)
    )
    assert one.steps[-1] == 40 and both.steps[-1] == 20


def test_probabilities_are_spread_until_someone_has_trained_to_the_end():
    early = calibration.Told("t", 0.1, 1.0, True, reached=0.5, equal=0.25)
    ended = calibration.Told("t", 0.1, 1.0, True, reached=1.0, equal=0.25)
    assert calibration._spread(early, 0.2).probability == pytest.approx(0.85)
    assert calibration._spread(ended, 0.2) == ended
    rows = calibration.by_share([early, ended])
    assert [row["stopped_at"] for row in rows][1:] == [
        "50 to 100 % of the length",
        "the full length",
    ]


def test_a_plan_is_chosen_without_the_family_of_the_task():
    tasks = [replace(planted(), name=name) for name in ("a-1", "a-2", "b-1")]
    good, bad = [0.0] * len(plans.BUDGETS), [1.0] * len(plans.BUDGETS)
    for_a, for_b = ("one first", 0.25), ("together", 0.25)
    found = {
        for_a: {"a-1": good, "a-2": good, "b-1": bad},
        for_b: {"a-1": bad, "a-2": bad, "b-1": good},
    }
    assert plans.by_family(tasks, found) == {"a-1": for_b, "a-2": for_b, "b-1": for_a}
    assert plans.left_out(tasks, found, (0.1,))["mean_regret"]["nats"]["0.1"] == 1


def test_a_threshold_is_tried_and_put_back():
    usual = halving.HOPELESS
    assert plans.regrets_below(planted(), 0.5) == [0.0] * len(plans.BUDGETS)
    assert usual == halving.HOPELESS
    assert plans.IN_USE[1] == halving.ROUNDS[1]


def test_every_recorded_task_is_whole():
    tasks = recorded_tasks(RECORDS)
    assert {"prose-next-token-w256-n512", "cifar10-w192", "imdb-w128"} <= {t.name for t in tasks}
    for task in tasks:
        assert task.scores.shape == (len(task.candidates), len(task.steps), task.scores.shape[2])
        assert np.isfinite(task.truth).all()
        assert calibration.advised_name(task) in task.candidates
