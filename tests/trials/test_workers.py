"""Trials survive a kill -9, and give the same answer on a cluster."""

import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from headwise.errors import BadInputError, ExecutorError, ParameterError
from headwise.geometry import HeadGeometry
from headwise.trials import trial, trial_of
from headwise.trials.workers import TrainOwn, WorkerRunner

PAIR = [HeadGeometry.free(8, heads, 8 // heads) for heads in (1, 2)]
SMALL = {"width": 8, "depth": 1, "batch": 8, "seeds": (0, 1), "candidates": PAIR}

SCRIPT = """
import sys
from headwise.geometry import HeadGeometry
from headwise.trials import trial
pair = [HeadGeometry.free(8, heads, 8 // heads) for heads in (1, 2)]
trial("digits", width=8, depth=1, batch=8, seeds=(0, 1), candidates=pair, steps=600,
      folder=sys.argv[1])
"""


def test_a_trial_resumes_after_kill_9(tmp_path):
    standing = tmp_path / "trial.json"
    child = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)])
    deadline = time.monotonic() + 120
    while not standing.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL, "the trial ended before it was killed"
    before = json.loads(standing.read_text())["steps"]
    assert 0 < max(before) < 600
    whole = trial("digits", **SMALL, steps=600)
    assert trial("digits", **SMALL, steps=600, folder=tmp_path) == whole


@pytest.mark.slow
def test_a_cluster_gives_the_same_answer(tmp_path):
    pytest.importorskip("distributed")
    here = trial("digits", **SMALL, steps=16)
    there = trial("digits", **SMALL, steps=16, folder=tmp_path, cluster="local:2")
    for one, other in zip(here.entrants, there.entrants, strict=True):
        assert one.geometry == other.geometry
        assert one.score == pytest.approx(other.score, abs=0.02)


class Here:
    """An executor that computes in this process."""

    def outcomes(self, specs, started):
        from headwise.runs.attempt import attempt

        for spec in specs:
            started(spec)
            yield attempt(spec)

    def close(self):
        pass


def test_workers_give_what_one_process_gives(tmp_path, monkeypatch):
    monkeypatch.setattr("headwise.trials.settle.cluster_of", lambda *given: Here())
    here = trial("digits", **SMALL, steps=16)
    assert trial("digits", **SMALL, steps=16, folder=tmp_path, cluster="local") == here


def test_own_models_train_on_workers_too(tmp_path, monkeypatch):
    monkeypatch.setattr("headwise.trials.settle.cluster_of", lambda *given: Here())
    names = ("tests.trials.test_trial:Own", "tests.trials.test_trial:batches")
    candidates = [HeadGeometry.free(8, 1, rank) for rank in (1, 8)]
    how = {"steps": 40, "rate": 3e-2}
    here = trial_of(*names, candidates, **how)
    assert trial_of(*names, candidates, **how, folder=tmp_path, cluster="local") == here


def test_a_failure_on_a_worker_is_one_line(tmp_path):
    made = {"folder": str(tmp_path), "seeds": (0, 1), "steps": 4, "rate": 0.1, "validation": 1}

    def spec(**more):
        return TrainOwn(build="absent:build", batches="absent:batches", **made, **more)

    runner = WorkerRunner({"1 x 8": PAIR[0]}, spec, Here())
    with pytest.raises(ExecutorError, match="training 1 x 8 failed on its worker"):
        runner.train(["1 x 8"], 2)


def test_a_cluster_needs_a_folder_and_named_functions(tmp_path):
    with pytest.raises(BadInputError, match="expected a folder for a trial on cluster"):
        trial("digits", **SMALL, steps=16, cluster="local")
    from tests.trials.test_trial import GEOMETRIES, Own, batches

    with pytest.raises(ParameterError, match="as PACKAGE:FUNCTION"):
        trial_of(Own, batches, GEOMETRIES, steps=4, folder=tmp_path, cluster="local")


def test_the_standing_is_never_half_written(tmp_path):
    trial("digits", **SMALL, steps=8, folder=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"trial.json", "models.pt"}
    assert pathlib.Path(tmp_path / "models.pt").stat().st_size > 0
