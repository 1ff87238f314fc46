"""Own models: how much time scores take, and which functions give batches."""

import pytest
import torch
from tests.trials.test_trial import GEOMETRIES, HOW, Own, batches

from headwise.data.named_functions import as_function, seeded
from headwise.data.sources import read_source
from headwise.errors import BadInputError, ParameterError
from headwise.trials import trial_of
from headwise.trials.halving import looks
from headwise.trials.own_models import OwnRunner, OwnTraining


def test_scores_of_a_short_training_take_no_more_passes_than_its_steps():
    passes = {True: 0, False: 0}

    class Counted(Own):
        """Own, with a count of forward passes with and without gradient."""

        def forward(self, x):
            passes[torch.is_grad_enabled()] += 1
            return super().forward(x)

    training = OwnTraining(steps=40)
    runner = OwnRunner({"a": GEOMETRIES[0], "b": GEOMETRIES[2]}, Counted, batches, training)
    for step, _ in looks(40):
        runner.train(["a", "b"], step)
    trained, scored = passes[True], passes[False]
    assert trained == 40 * 2 * 2
    assert trained / 2 < scored <= trained


def test_every_candidate_is_scored_on_the_same_batches_in_every_look():
    training = OwnTraining(steps=40, validation=8)
    runner = OwnRunner({"a": GEOMETRIES[0], "b": GEOMETRIES[2]}, Own, batches, training)
    expected = list(batches(1))[: training.scored]
    assert len(expected) == 40 // len(looks(40)) == 2
    runner.train(["a", "b"], 2)
    for run in (runner.runs["a", 1], runner.runs["b", 1]):
        for (seen, _), (wanted, _) in zip(run.aside, expected, strict=True):
            torch.testing.assert_close(seen, wanted, rtol=0, atol=0)


def test_batches_set_aside_are_never_trained_on_and_long_trainings_score_all():
    training = OwnTraining(steps=40, validation=8)
    runner = OwnRunner({"a": GEOMETRIES[0], "b": GEOMETRIES[2]}, Own, batches, training)
    runner.train(["a", "b"], 0)
    first = next(runner.runs["a", 0].data)[0]
    torch.testing.assert_close(first, list(batches(0))[8][0], rtol=0, atol=0)
    assert OwnTraining(steps=128).scored == 8
    assert OwnTraining(steps=1).scored == 1


@pytest.mark.parametrize(("count", "aside"), [(2, 1), (5, 2), (8, 4), (9, 8), (12, 8)])
def test_batches_that_end_are_never_trained_on_where_they_are_scored(count, aside):
    def few(seed):
        for number in range(count):
            yield torch.full((4, 8), float(number)), torch.zeros(4, 8)

    training = OwnTraining(steps=200, validation=8)
    runner = OwnRunner({"a": GEOMETRIES[0], "b": GEOMETRIES[2]}, Own, few, training)
    runner.train(["a", "b"], 0)
    stream = runner.runs["a", 0].data
    assert {float(next(stream)[0][0, 0]) for _ in range(3 * count)} == set(range(aside, count))
    assert [float(x[0, 0]) for x, _ in runner.aside[0]] == list(range(aside))


def test_one_batch_is_refused():
    with pytest.raises(BadInputError, match="at least 2, got 1; yield pairs"):
        trial_of(Own, lambda seed: [(torch.zeros(4, 8), torch.zeros(4, 8))], GEOMETRIES, **HOW)


def test_batches_that_cannot_be_started_again_are_refused():
    once = iter([(torch.zeros(4, 8), torch.zeros(4, 8))] * 12)
    pair = {"a": GEOMETRIES[0], "b": GEOMETRIES[2]}
    runner = OwnRunner(pair, Own, lambda seed: once, OwnTraining(steps=40), seeds=(0,))
    with pytest.raises(BadInputError, match="got fewer; return a new iterable"):
        runner.train(["a", "b"], 2)


def test_batches_without_parameters_train_too():
    found = trial_of(Own, lambda: batches(3), GEOMETRIES, **HOW)
    assert found.best.geometry.qk_rank == 8


def test_a_function_gets_a_seed_only_if_it_takes_one():
    assert seeded(lambda seed: seed, "f")(5) == 5
    assert seeded(lambda start=1: start, "f")(5) == 5
    assert seeded(lambda start=1: start, "f", optional=False)(5) == 1
    assert seeded(lambda *, seed: seed, "f", optional=False)(5) == 5
    assert seeded(lambda: "none", "f")(5) == "none"


def test_one_function_is_a_source_and_gives_batches(tmp_path, monkeypatch):
    (tmp_path / "both_for_trial.py").write_text(BOTH)
    monkeypatch.chdir(tmp_path)
    found = read_source("both_for_trial:batches")
    assert found.values.shape == (16, 8) and found.labels.tolist() == [0, 1] * 8
    with pytest.raises(ParameterError, match=r"take a seed or nothing, got .*:two\(seed, size\)"):
        read_source("both_for_trial:two")
    with pytest.raises(ParameterError, match=r"expected two to take a seed or nothing"):
        trial_of(Own, two, GEOMETRIES, **HOW)


def two(seed, size):
    """Needs more than a seed."""


BOTH = """
import torch


def batches(seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(2):
        yield torch.randint(5, (8, 8), generator=generator), torch.arange(8) % 2


def two(seed, size):
    pass
"""


def test_what_builds_no_model_is_refused_in_one_line():
    """Numbers for functions ended in a TypeError, and other results in an AttributeError."""
    with pytest.raises(ParameterError, match="PACKAGE:FUNCTION as `build`, got 3"):
        as_function("build", 3)
    with pytest.raises(BadInputError, match=r"torch module from build\(geometry\), got dict"):
        trial_of(lambda geometry: {}, batches, GEOMETRIES, steps=10)
