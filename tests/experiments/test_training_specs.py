"""Training as specs: rows, learned forms, what cannot be asked, and going on after a kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from headwise.experiments.kinds import Kinds
from headwise.experiments.learned_forms import form_angles
from headwise.experiments.train_incontext import TrainInContext
from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.experiments.train_pairs import TrainPairs
from headwise.runs import parsed_spec
from headwise.runs.attempt import attempt
from headwise.runs.provenance import computing_on
from headwise.runs.scratch import scratching_in

TINY = {"width": 4, "tokens": 3, "mlp_width": 8, "batch": 8, "sequences": 16, "evaluation": 8}


def tiny(**more):
    return TrainNeighbours(**(TINY | {"rank": 2, "steps": 6, "epoch": 2} | more))


@pytest.mark.parametrize(
    "spec",
    [
        tiny(),
        TrainPairs(width=4, heads=2, steps=3, batch=4, evaluation=8),
        TrainInContext(heads=2, width=4, steps=3, dimensions=2, points=3),
    ],
)
def test_kinds_read_back(spec):
    assert parsed_spec(Kinds, spec.content).key == spec.key


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tiny(rank=3), "expected a rank that divides the width 4, got 3"),
        (lambda: tiny(sequences=20), "a multiple of batch=8"),
        (lambda: tiny(seeds=()), "at least 1 item"),
        (
            lambda: TrainInContext(heads=5, width=48),
            "expected heads that divide the width 48, got 5",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before_training(make, words):
    with pytest.raises(ValidationError, match=words):
        make()


def test_a_precision_of_the_gpu_is_refused_where_there_is_none():
    outcome = attempt(tiny(dtype="tf32"))
    assert "tf32 needs a GPU" in outcome.reason


def test_one_row_per_seed_with_its_curve():
    rows = tiny(seeds=(3, 5)).ask()
    assert [row["seed"] for row in rows] == [3, 5]
    for row in rows:
        assert row["curve_step"] == [1, 2, 3, 4, 6]
        assert len(row["curve_train"]) == len(row["curve_test"]) == 5
        assert row["best_train_loss"] <= row["train_loss"]
        assert row["curve_test"][-1] == pytest.approx(row["test_loss"], rel=1e-5)
        assert row["heads"] == 2
        assert "angle" in row
    assert rows[0]["test_loss"] != rows[1]["test_loss"]


def test_a_seed_trains_the_same_alone_and_in_an_ensemble():
    alone, company = tiny(seeds=(5,)).ask()[0], tiny(seeds=(3, 5)).ask()[1]
    assert alone["test_loss"] == pytest.approx(company["test_loss"], rel=1e-4)


def test_protocols_differ_in_which_data_repeat():
    fixed, fresh = (tiny(protocol=p, steps=40).ask()[0] for p in ("fixed", "fresh"))
    assert fixed["train_loss"] != fresh["train_loss"]


def test_divergence_is_reported_and_not_raised():
    row = tiny(learning_rate=1e30, steps=20).ask()[0]
    assert row["diverged_at"] is not None
    assert row["test_loss"] is None


def test_deeper_models_have_no_single_form():
    assert "angle" not in tiny(layers=2).ask()[0]
    assert "angle" not in tiny(positions="additive").ask()[0]


def test_forms_against_the_matrices_themselves():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 5, 3, 7, generator=generator, dtype=torch.float64)
    angles, sizes = form_angles(q, k)
    for head in range(5):
        form = q[head].mT @ k[head]
        cosine = form.trace() / (form.norm() * 7**0.5)
        assert float(angles[head]) == pytest.approx(float(torch.rad2deg(torch.acos(cosine))))
        assert float(sizes[head]) == pytest.approx(float(form.norm() / 7**0.5))


def test_a_form_of_nothing_has_no_size():
    angles, sizes = form_angles(torch.zeros(1, 2, 3).double(), torch.zeros(1, 2, 3).double())
    assert angles.tolist() == [90.0]
    assert float(sizes[0]) < 1e-100


def test_pairs_come_no_lower_than_their_bound():
    from headwise.theory.harmonic_bound import error_lower_bound

    spec = TrainPairs(width=4, heads=4, steps=200, batch=64, evaluation=256, learning_rate=0.03)
    row = spec.ask()[0]
    assert error_lower_bound(4, 1, 4) - 4 * 256**-0.5 < row["test_loss"] < 0.6


def test_in_context_begins_near_its_baseline():
    spec = TrainInContext(
        dimensions=3, points=4, width=8, layers=1, heads=2, steps=2, batch=64, evaluation=512
    )
    row = spec.ask()[0]
    assert row["trivial"] == 3
    assert row["test_score"] == pytest.approx(3, rel=0.5)


KILLED = """
import sys
from pathlib import Path
from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.experiments import training_run
from headwise.runs.scratch import scratching_in
import headwise.training.checkpoint as checkpoint
import functools
training_run.Saving = functools.partial(checkpoint.Saving, seconds=0.0)
spec = TrainNeighbours.model_validate_json(sys.argv[1])
with scratching_in(Path(sys.argv[2])):
    spec.ask()
"""


def test_a_run_killed_midway_resumes_to_the_same_curve(tmp_path):
    spec = tiny(steps=600, protocol="fresh", epoch=10)
    folder = tmp_path / spec.key
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, spec.model_dump_json(), str(folder)], env=environment
    )
    deadline = time.monotonic() + 120
    while not (folder / "run.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    saved = torch.load(folder / "run.pt", weights_only=True)
    assert 0 < int(saved["state"]["step"]) < 600
    with scratching_in(folder):
        resumed = spec.ask()
    assert resumed == spec.ask()


def test_a_checkpoint_of_another_device_is_refused(tmp_path):
    spec = tiny()
    with scratching_in(tmp_path):
        spec.ask()
    assert [path.name for path in Path(tmp_path).iterdir()] == ["run.pt"]
    told = pytest.raises(ValueError, match=r"belongs to '.* on cpu', not '.* on cpu:0'")
    with scratching_in(tmp_path), computing_on("cpu:0"), told:
        spec.ask()
