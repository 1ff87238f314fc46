"""Trials of built-in and of own models, at the smallest scale."""

import json
import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from headwise.advice import advise
from headwise.data import Batch, Samples
from headwise.errors import BadInputError, ParameterError
from headwise.geometry import HeadGeometry
from headwise.models import EncoderStack
from headwise.training import Settings
from headwise.trials import splits, trial, trial_of, usual
from headwise.trials.constants import constant_error, constant_loss
from headwise.trials.ensembles import EnsembleRunner
from headwise.trials.prediction import SURPRISE, predict
from headwise.trials.result import Entrant, Trial

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.rand(40, 1, 4, 4, generator=GENERATOR)
LABELS = (IMAGES.mean((1, 2, 3)) > 0.5).long()
PAIR = splits(8)
SMALL = {"width": 8, "depth": 1, "steps": 16, "batch": 8, "seeds": (0, 1), "candidates": PAIR}


def test_a_trial_ranks_its_candidates_and_is_json():
    found = trial(IMAGES, LABELS, **SMALL)
    assert {e.geometry for e in found.entrants} == set(PAIR)
    assert sum(e.probability for e in found.entrants) == pytest.approx(1)
    assert json.loads(json.dumps(found.as_json()))["full_steps"] == 16
    assert any(e.on_front for e in found.entrants)


def test_candidates_that_stopped_early_come_with_a_warning():
    whole = Entrant(PAIR[0], 20, 0.1, 0.1, 0.01, 0.9, 256, 32, True)
    stopped = Entrant(PAIR[1], 10, 0.3, 0.2, 0.05, 0.1, 256, 32, False)
    curves = (((0.1, 0.1), (0.1, 0.1)), ((0.3, 0.3),))
    found = Trial((whole, stopped), "error rate", 20, (10, 20), curves, True)
    assert "Geometries that stopped early are predicted" in str(found)
    alone = Trial((whole,), "error rate", 20, (10, 20), curves[:1], True)
    assert "predicted from" not in str(alone) and "not reliable" not in str(alone)


def test_a_trial_that_learns_nothing_names_no_winner():
    entrant = Entrant(PAIR[0], 20, 0.7040, 0.7040, 0.01, 0.9, 256, 32, True)
    rest = ("loss", 20, (20,), (((0.7040, 0.7040),),), True)
    guessed = Trial((entrant,), *rest, constant=0.6931)
    assert str(guessed).startswith("Nothing was learned: no geometry has a lower loss after 20 ")
    assert "a constant prediction, 0.6931" in str(guessed) and "belong" in str(guessed)
    assert repr(guessed) == "Trial(nothing learned by 1 after 20 steps)"
    for constant in (0.71, None):
        assert "has the lowest loss" in str(Trial((entrant,), *rest, constant=constant))


def test_a_trial_knows_what_a_constant_prediction_scores():
    assert constant_error(torch.tensor([1, 1, 0, 1])) == 0.25
    assert constant_loss([torch.tensor([0, 1, -100])]) == pytest.approx(math.log(2))
    numbers = torch.tensor([[0.0, 3.0], [1.0, 0.0]])
    assert constant_loss([numbers[:1], numbers[1:]]) == pytest.approx(1.5)
    assert trial(IMAGES, LABELS, **SMALL).constant == constant_error(LABELS)


def test_an_answer_before_a_quarter_of_the_training_comes_with_a_warning():
    early = Entrant(PAIR[0], 10, 0.1, 0.1, 0.01, 0.9, 256, 32, True)
    for full, warned in ((41, True), (40, False)):
        found = Trial((early,), "error rate", full, (10,), (((0.1,),),), False)
        assert ("before a quarter of the training are not reliable" in str(found)) is warned
        assert "Time ran out at step 10" in str(found)


def test_time_that_ends_before_the_other_seeds_is_told():
    whole = Entrant(PAIR[0], 20, 0.1, 0.1, 0.01, 0.9, 256, 32, True)
    found = Trial((whole,), "error rate", 20, (20,), (((0.1,),),), False)
    assert "the answer rests on the first seed" in str(found)


def test_candidates_come_from_advise_and_cost_no_more_than_the_usual_geometry():
    found = trial(IMAGES, LABELS, **{**SMALL, "candidates": None, "width": 16})
    geometries = [e.geometry for e in found.entrants]
    advised = advise(IMAGES, width=16, task="classify", patch=1).best.geometry
    assert usual(16) in geometries and advised in geometries
    assert all(g.parameters <= usual(16).parameters for g in geometries)


def test_those_that_are_left_have_all_seeds_and_can_be_drawn(tmp_path):
    found = trial(IMAGES, LABELS, **{**SMALL, "candidates": splits(16, 2), "width": 16})
    seeds = [len(curve[-1]) for curve in found.curves]
    trained = [one.steps for one in found.entrants]
    assert sorted(seeds) == [1, 1, 2, 2] and [s == 16 for s in trained] == [s == 2 for s in seeds]
    found.plot(tmp_path / "curves.svg")


def resumed_after(dying, folder, monkeypatch):
    """Interrupt a trial by this way of training, then let it go on."""
    with monkeypatch.context() as patch:
        patch.setattr(EnsembleRunner, "train", dying)
        with pytest.raises(KeyboardInterrupt):
            trial(IMAGES, LABELS, folder=folder, **SMALL)
    return trial(IMAGES, LABELS, folder=folder, **SMALL)


def test_a_trial_that_is_killed_among_the_other_seeds_resumes(tmp_path, monkeypatch):
    whole = trial(IMAGES, LABELS, **SMALL)
    usual_train = EnsembleRunner.train

    def dying(self, names, until):
        if self.settings.seeds == (1,) and until > 8:
            raise KeyboardInterrupt
        return usual_train(self, names, until)

    assert resumed_after(dying, tmp_path, monkeypatch) == whole


def test_ids_are_classified_too():
    ids = torch.randint(5, (40, 6), generator=GENERATOR)
    assert len(trial(ids, LABELS, **SMALL).entrants) == 2


def test_a_killed_trial_resumes_to_the_same_result(tmp_path, monkeypatch):
    whole = trial(IMAGES, LABELS, **SMALL)
    usual_train, calls = EnsembleRunner.train, []

    def dying(self, names, until):
        calls.append(until)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return usual_train(self, names, until)

    assert resumed_after(dying, tmp_path, monkeypatch) == whole


def task():
    data = Batch((torch.rand(20, 3, 8, generator=GENERATOR),), (torch.arange(20) % 8,))
    return _Mean(data, data)


class _Mean(Samples):
    """Classes from the mean over tokens."""

    def loss(self, outputs, *targets):
        return super().loss(outputs.mean(-2), *targets)

    def score(self, outputs, *targets):
        return super().score(outputs.mean(-2), *targets)


def build(geometry, seed):
    torch.manual_seed(seed)
    return EncoderStack(geometry, depth=1, mlp_width=8)


def test_a_candidate_that_leaves_changes_nothing_for_those_that_stay():
    entrants = {"2 x 4": splits(8)[0], "1 x 8": splits(8)[1]}
    runner = partial(EnsembleRunner, build=build, task=task())
    settings = Settings(steps=8, batch=4, seeds=(0, 1), evaluation=20)
    alone = runner({"1 x 8": entrants["1 x 8"]}, settings=settings)
    both = runner(entrants, settings=settings)
    both.train(["2 x 4", "1 x 8"], 4)
    alone.train(["1 x 8"], 4)
    both.train(["1 x 8"], 8)
    alone.train(["1 x 8"], 8)
    ((_, one),), ((_, other),) = both.stacks.items(), alone.stacks.items()
    torch.testing.assert_close(one.state.flat, other.state.flat)


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (IMAGES, LABELS[:5], "expected 40 class numbers"),
        (IMAGES, LABELS.float(), "type float32"),
        (IMAGES[0, 0], LABELS, "expected images"),
        (IMAGES, torch.zeros(40, dtype=torch.int64), "2 classes"),
        (IMAGES * torch.nan, LABELS, "expected a finite score"),
    ],
)
def test_odd_data_is_refused_in_one_line(inputs, labels, message):
    with pytest.raises(BadInputError, match=message):
        trial(inputs, labels, **SMALL)


class Own(nn.Module):
    """A low-rank map: learns the identity only if the rank suffices."""

    def __init__(self, geometry):
        super().__init__()
        inner = geometry.heads * geometry.qk_rank
        self.map = nn.Sequential(nn.Linear(8, inner, bias=False), nn.Linear(inner, 8, bias=False))

    def forward(self, x):
        return self.map(x)


def batches(seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(100):
        x = torch.randn(32, 8, generator=generator)
        yield x, x


GEOMETRIES = [HeadGeometry.free(8, 1, rank) for rank in (1, 2, 8)]
HOW = {"steps": 120, "rate": 3e-2}


def test_own_models_are_ranked_by_what_they_can_learn():
    found = trial_of(Own, batches, GEOMETRIES, **HOW)
    assert found.best.geometry.qk_rank == 8
    # Others were stopped early, so a share of the probability stays with them.
    assert 0.75 < found.best.probability <= 1 - SURPRISE * 2 / 3
    assert found.measure == "loss"


def test_candidates_may_be_a_text_and_come_from_the_width_without_one():
    """The command read the text and chose the splits; Python could do neither."""
    few = {"steps": 4, "rate": 3e-2}
    written = trial_of(Own, batches, "1x1,1x2,1x8", width=8, **few)
    assert written == trial_of(Own, batches, GEOMETRIES, **few)

    def thin(geometry):
        return nn.Sequential(nn.Linear(8, geometry.qk_rank), nn.Linear(geometry.qk_rank, 8))

    chosen = trial_of(thin, batches, width=8, **few)
    assert {entrant.geometry for entrant in chosen.entrants} == set(splits(8))
    small = {"width": 8, "depth": 1, "steps": 4, "seeds": 2}
    assert trial("digits", candidates="2x4,1x8/8", **small) == trial(
        "digits", candidates=[HeadGeometry.free(8, 2, 4), HeadGeometry.free(8, 1, 8)], **small
    )


def test_own_models_go_on_after_a_kill(tmp_path):
    whole = trial_of(Own, batches, GEOMETRIES, **HOW)

    def dying(seed):
        for number, pair in enumerate(batches(seed)):
            if number > 19:
                raise KeyboardInterrupt
            yield pair

    with pytest.raises(KeyboardInterrupt):
        trial_of(Own, dying, GEOMETRIES, **HOW, folder=tmp_path)
    assert trial_of(Own, batches, GEOMETRIES, **HOW, folder=tmp_path) == whole


def test_a_model_that_ignores_its_geometry_is_found_out():
    with pytest.raises(BadInputError, match="parameters for 1 x 1 and for 1 x 2"):
        trial_of(lambda geometry: nn.Linear(8, 8), batches, GEOMETRIES, **HOW)


class Ignoring(nn.Module):
    """Take a geometry and ignore it."""

    def __init__(self, geometry):
        super().__init__()
        self.map = nn.Linear(8, 8)

    def forward(self, x):
        return self.map(x)


def test_a_model_that_ignores_splits_of_equal_size_is_found_out_by_its_losses():
    with pytest.raises(BadInputError, match="got the same loss for all 2 candidates"):
        trial_of(Ignoring, batches, splits(8), **HOW)


def test_a_loss_that_is_nan_in_every_candidate_is_one_line():
    def nothing(seed):
        for x, y in batches(seed):
            yield x * torch.nan, y

    with pytest.raises(BadInputError, match="expected a finite score"):
        trial_of(Own, nothing, GEOMETRIES, **HOW)


def test_a_budget_too_small_for_one_round_is_one_line():
    with pytest.raises(BadInputError, match="expected time for one round of 2 candidates"):
        trial(IMAGES, LABELS, **{**SMALL, "steps": 4000}, minutes=1e-4)


def test_no_batches_are_refused():
    with pytest.raises(BadInputError, match="expected batches"):
        trial_of(Own, lambda seed: [], GEOMETRIES, **HOW)


def test_one_seed_is_refused():
    with pytest.raises(ParameterError, match="expected at least 2 different seeds, got 1"):
        trial_of(Own, batches, GEOMETRIES, steps=4, seeds=1)
    with pytest.raises(ParameterError, match="expected at least 2 different seeds, got 1"):
        predict({"a": np.ones((2, 1)), "b": np.zeros((2, 1))}, (1, 2), full=2)
