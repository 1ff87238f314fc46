"""Classifiers as specs: the same training as the benchmark's, kill-safe, and honest about sets."""

import argparse
import math
import pickle

import numpy as np
import pytest
import torch

from benchmarks import real_ensemble, real_plans
from headwise.data.classification import first_of_each, image_source, image_task, text_source
from headwise.errors import BadInputError
from headwise.experiments.ensembles import ask_together, stackable
from headwise.experiments.train_classifier import TrainImages, TrainTexts
from headwise.models.classifiers import Images
from headwise.models.rank_paper import VisionModel
from headwise.runs.scratch import scratching_in


def write_cifar10(folder, labels):
    """Two images in every file, of these classes; the first file's pixels are returned."""
    inside = folder / "cifar-10-batches-py"
    inside.mkdir()
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    for seed, name in enumerate(names):
        data = np.random.default_rng(seed).integers(0, 256, (2, 3072), dtype=np.uint8)
        (inside / name).write_bytes(pickle.dumps({"data": data, "labels": list(labels)}))
    return np.random.default_rng(0).integers(0, 256, (2, 3072), dtype=np.uint8)


TINY = {"dataset": "digits", "patch": 4, "width": 8, "depth": 1, "mlp_width": 8, "batch": 100}


def spec(**changes):
    return TrainImages(**{**TINY, "heads": 2, "head_dim": 4, "epochs": 2, **changes})


def test_it_trains_as_the_benchmark_does(tmp_path):
    """One plan through the spec and through benchmarks.real_data, on the same samples."""
    ours = spec(seeds=(0, 1))
    model = VisionModel(8, 1, 8, 10, Images(size=8, patch=4, channels=1))
    plan = real_plans.Plan("digits", model, epochs=2, batch=100)
    task = image_task("digits", image_source("digits", ""))
    given = argparse.Namespace(
        seeds=(0, 1),
        device="cpu",
        precision="float32",
        execution=None,
        checkpoints=tmp_path,
        whole=False,
    )
    found = real_ensemble.run_group(plan, [ours.geometry], task, given, math.inf)
    assert found is not None
    for row, other in zip(ours.ask(), found, strict=True):
        assert row["test_accuracy"] == pytest.approx(other["test_accuracy"])
        assert row["validation_accuracy"] == pytest.approx(other["validation_accuracy"])
        assert row["parameters"] == other["parameters"]
        assert row["trained_on"] == other["trained_on"]


def test_geometries_of_one_shape_train_the_same_together_and_alone():
    specs = [spec(heads=1, head_dim=8), spec(heads=2, head_dim=4), spec(heads=2, head_dim=2)]
    groups = stackable(specs)
    assert [len(group) for group in groups] == [2, 1]
    together = ask_together(groups[0])
    for one, rows in zip(groups[0], together, strict=True):
        alone = one.ask()
        assert rows[0]["validation_accuracy"] == pytest.approx(
            alone[0]["validation_accuracy"], abs=0.02
        )
        assert rows[0]["curve_epoch"] == alone[0]["curve_epoch"]


def test_a_stopped_run_resumes(tmp_path):
    class StopError(Exception):
        pass

    whole = spec().ask()

    def stopping(row):
        if row.step >= 10:
            raise StopError

    one = spec()
    with scratching_in(tmp_path):
        from headwise.training import Saving

        saving = Saving(tmp_path / "run.pt", key=f"{one.key} on cpu", seconds=0)
        with pytest.raises(StopError):
            one.train_on("cpu", sink=stopping, saving=saving)
        assert saving.path.exists()
        assert one.ask() == whole


def test_words_of_digits_train():
    sizes = {"width": 8, "depth": 1, "mlp_width": 8, "batch": 100, "length": 64}
    (row,) = TrainTexts(dataset="digits", heads=1, head_dim=3, epochs=1, **sizes).ask()
    assert 0 <= row["test_accuracy"] <= 1
    assert row["curve_epoch"][-1] == 1.0
    with pytest.raises(BadInputError, match="expected 64 words of a digit, got length=32"):
        text_source("digits", "", length=32)


def test_a_part_of_a_set_is_not_taken_for_the_whole(tmp_path, monkeypatch):
    first = write_cifar10(tmp_path, labels=(3, 9))
    monkeypatch.setenv("HEADWISE_DATA", str(tmp_path))
    with pytest.raises(BadInputError, match=r"expected 50,000 training samples of cifar10, got 10"):
        spec(dataset="cifar10").settings("cpu")
    with pytest.raises(BadInputError, match="expected 6 samples of every class of cifar10, got 5"):
        image_source("cifar10", tmp_path, per_class=6)
    cut = image_source("cifar10", tmp_path, per_class=5)
    assert sorted(cut.train.labels.tolist()) == [3] * 5 + [9] * 5
    assert torch.equal(cut.train.inputs[0][:2].flatten(1), torch.from_numpy(first))


def test_the_first_of_every_class_in_their_order():
    labels = np.array([1, 0, 1, 0, 1, 0])
    assert first_of_each(labels, 2).tolist() == [0, 1, 2, 3]


def test_too_few_samples_for_a_batch_are_refused():
    with pytest.raises(BadInputError, match="expected at least 5000 samples to train on, got 1298"):
        spec(batch=5000).settings("cpu")
