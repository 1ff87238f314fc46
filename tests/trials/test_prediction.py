"""Predictions of learning curves: planted answers, calibration, degenerate cases."""

import numpy as np
import pytest

from headwise.errors import BadInputError
from headwise.trials import predict, prediction


def curve(*rows):
    return np.array(rows, dtype=float)


def test_the_lowest_curve_at_the_full_length_is_best():
    curves = {"a": curve([2, 2.1], [1, 1.1]), "b": curve([2.2, 2.3], [1.4, 1.5])}
    found = predict(curves, (10, 20), full=20)
    assert found["a"].probability > 0.99
    assert found["a"].score == pytest.approx(1.05)
    assert sum(one.probability for one in found.values()) == pytest.approx(1)


def test_the_less_is_trained_the_less_is_known():
    rng = np.random.default_rng(0)
    level = np.linspace(1, 0.5, 8)[:, None]
    curves = {n: level + 0.01 * k + 0.01 * rng.standard_normal((8, 3)) for k, n in enumerate("ab")}
    steps = [2**k for k in range(8)]
    near, far = (predict(curves, steps, full) for full in (128, 12_800))
    assert far["a"].error > near["a"].error
    assert far["a"].probability < near["a"].probability


def test_a_candidate_that_was_stopped_is_less_certain_than_the_finalists():
    rng = np.random.default_rng(1)
    curves = {n: rng.standard_normal((6, 3)) * 0.01 + 1 for n in "abc"}
    curves["c"] = curves["c"][:3]
    found = predict(curves, [2**k for k in range(6)], full=64)
    assert found["c"].error > found["a"].error == found["b"].error


def test_a_candidate_with_one_seed_is_compared_with_that_seed_of_the_others():
    """The second seed is easier for all; who lacks it must not look worse for that."""
    curves = {"a": curve([1, 0.6], [0.9, 0.5]), "b": curve([1.1, 0.7], [1.0, 0.6])}
    curves["stopped"] = curve([0.95])
    found = predict(curves, (10, 20), full=20)
    assert found["stopped"].score == pytest.approx(0.65)
    assert found["stopped"].error > found["a"].error


def test_one_seed_is_as_noisy_as_its_curve_jumps():
    rng = np.random.default_rng(3)
    steps = [2**k for k in range(8)]
    errors = []
    for noise in (0.001, 0.1):
        curves = {n: 1 + noise * rng.standard_normal((8, 1)) for n in "ab"}
        errors.append(prediction.predicted(curves, steps, full=128)["a"].error)
    assert 0.0003 < errors[0] < 0.003 and 0.03 < errors[1] < 0.3


def test_one_look_at_one_seed_makes_nobody_certain():
    found = prediction.predicted({n: curve([k]) for k, n in enumerate("abcd")}, (1,), full=8)
    assert 0.3 < found["a"].probability < 0.9


def test_a_run_that_diverged_counts_as_the_worst():
    curves = {"a": curve([1, 1], [0.5, 0.5]), "b": curve([1, 1], [np.nan, np.inf])}
    assert predict(curves, (1, 2), full=2)["a"].probability > 0.9


def test_nothing_finite_is_refused():
    with pytest.raises(BadInputError, match="expected a finite score"):
        predict({"a": curve([np.nan]), "b": curve([np.nan])}, (1,), full=2)


def test_equal_candidates_share_the_probability():
    alike = curve([1, 1], [0.5, 0.5])
    found = predict({"a": alike, "b": alike}, (1, 2), full=4)
    assert found["a"].probability == found["b"].probability == 0.5


def test_probabilities_are_calibrated_on_walks_like_those_that_are_assumed(monkeypatch):
    """The stated probability of the favourite is its share of wins, within 3 standard errors.

    Nothing is spread equally here: that is for real curves, which walks do not describe in full.
    """
    monkeypatch.setattr(prediction, "SURPRISE", 0.0)
    rng, stated, won = np.random.default_rng(2), [], []
    steps = [2**k for k in range(12)]
    for _ in range(300):
        walks = np.cumsum(0.05 * rng.standard_normal((12, 4, 1)), axis=0)
        seen = walks + 0.02 * rng.standard_normal((12, 4, 3))
        curves = {str(k): seen[:8, k] for k in range(4)}
        found = predict(curves, steps[:8], full=steps[-1])
        best = max(found, key=lambda name: found[name].probability)
        stated.append(found[best].probability)
        won.append(int(best) == walks[-1, :, 0].argmin())
    spread = np.sqrt(np.mean(np.array(stated) * (1 - np.array(stated))) / len(won))
    assert abs(np.mean(stated) - np.mean(won)) < 3 * spread


@pytest.mark.parametrize(("candidates", "seeds"), [(2, 2), (2, 3), (3, 2), (5, 3)])
def test_probabilities_at_the_full_length_are_calibrated(candidates, seeds, monkeypatch):
    """With two candidates and two seeds, 17 % of those called 80 to 95 % likely were not best."""
    monkeypatch.setattr(prediction, "DRAWS", 2000)
    rng, stated, won = np.random.default_rng(4), [], []
    for _ in range(2000):
        truth = 2 * rng.standard_normal(candidates)
        # All candidates of a seed share what makes it easy.
        seen = truth[:, None] + rng.standard_normal((candidates, seeds)) + rng.normal(0, 9, seeds)
        curves = {str(k): seen[None, k] for k in range(candidates)}
        found = predict(curves, (1,), full=1)
        best = max(found, key=lambda name: found[name].probability)
        stated.append(found[best].probability)
        won.append(int(best) == truth.argmin())
    stated, won = np.array(stated), np.array(won)
    for low, high in ((0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        own = (stated >= low) & (stated < high)
        allowed = 3 * np.sqrt(0.25 / own.sum())
        assert stated[own].mean() - won[own].mean() < allowed, (low, own.sum())


def test_a_stopped_candidate_and_finalists_tell_the_same_noise():
    """Distances of two finalists hold half of the noise of a run, those of others 1.5 times it."""
    rng, found = np.random.default_rng(5), []
    for _ in range(400):
        runs = {name: rng.standard_normal((2, 4)) for name in "abc"}
        runs["c"] = runs["c"][:1]
        found.append(prediction.predicted(runs, (1, 2), full=2)["a"].error ** 2)
    assert np.mean(found) == pytest.approx(1 / 4, rel=0.1)


def test_the_level_follows_a_power_law_down():
    steps = [2**k for k in range(4, 12)]
    fall = np.array([[0.3 + 2.0 * step**-0.5] * 2 for step in steps])
    found = predict({"a": fall, "b": fall + 0.1}, steps, full=2**14)
    assert found["a"].score == pytest.approx(0.3 + 2.0 * 2**-7, abs=5e-3)


def test_a_share_of_the_probability_is_spread_equally_until_training_is_over():
    curves = {"a": curve([1, 1.01], [0.5, 0.51]), "b": curve([2, 2.01], [1.5, 1.51])}
    assert predict(curves, (1, 2), full=2)["b"].probability == pytest.approx(0)
    share = prediction.SURPRISE / 2
    assert 0.05 <= share == pytest.approx(predict(curves, (1, 2), full=3)["b"].probability)


def test_a_prior_decides_where_curves_do_not():
    alike = curve([1, 1.1], [0.5, 0.6])
    found = predict({"a": alike, "b": alike}, (1, 2), full=2, prior={"b": 3.0})
    assert found["b"].probability == pytest.approx(0.75, abs=0.02)
    apart = {"a": alike, "b": alike + 1.0}
    assert predict(apart, (1, 2), full=2, prior={"b": 3.0})["a"].probability > 0.99
