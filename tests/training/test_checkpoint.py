"""Runs that stop and go on: the same to the last bit, whatever stopped them."""

import io
import os
import signal
import subprocess
import sys
import time
import zipfile
from functools import cache
from pathlib import Path

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

from headwise.data import FarthestNeighbour
from headwise.errors import CheckpointError, UnreadableFileError
from headwise.training import Saving, checkpoint, train
from headwise.training.ensemble import Ensemble
from headwise.training.loop import _Run
from training.small import PROTOCOLS, TASK, VARIANTS, run, settings


def same(one, other):
    assert one.rows == other.rows
    assert all(torch.equal(one.parameters[n], other.parameters[n]) for n in one.parameters)


def stopped_at(step, saving, **more):
    """A run that ends after ``step`` updates, as if its process had ended there."""
    ensemble = Ensemble(VARIANTS, TASK, settings(**more))
    going = _Run(ensemble, lambda row: None, saving)
    advance = going._advance()
    for number in range(step):
        ensemble.noise.prepare(number)
        advance()
        if number + 1 in (1, 2, 3, 4, 6, 7, 10, 13, 18, 24, 32, 40):
            for row in ensemble.rows():
                going._tell(row)
    going._save()


@cache
def undisturbed(protocol):
    return run(protocol, rows_per_decade=8)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("step", [0, 1, 5, 10, 39])
def test_a_run_resumes_to_the_same_curve_and_parameters(protocol, step, tmp_path):
    saving, whole = Saving(tmp_path / "run.pt", "small"), undisturbed(protocol)
    stopped_at(step, saving, protocol=protocol, rows_per_decade=8)
    told = []
    resumed = run(protocol, saving, told.append, rows_per_decade=8)
    same(resumed, whole)
    assert tuple(told) == whole.rows


def test_a_finished_run_is_not_run_again(tmp_path):
    saving = Saving(tmp_path / "run.pt", "small")
    whole = run(saving=saving)
    again = run(saving=saving)
    same(again, whole)
    assert again.steps_per_second == 0


def strike(path, protocol, steps, at_step):
    """Start the run in a process and kill it, with no warning, once it has reached a step."""
    script = Path(__file__).with_name("small.py")
    roots = [str(script.parents[2] / "src"), str(script.parents[1])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(roots), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, str(script), str(path), protocol, str(steps)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as process:
        for line in process.stdout:
            if int(line) >= at_step:
                break
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    return process.returncode


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["fresh", "shuffled"])
def test_a_killed_run_resumes_to_the_same_curve(protocol, tmp_path):
    path = tmp_path / "run.pt"
    assert strike(path, protocol, 250, at_step=25) == -signal.SIGKILL
    saved = torch.load(path, weights_only=True)
    assert 0 < int(saved["state"]["step"]) < 250
    resumed = run(protocol, Saving(path, "small", seconds=1e9), steps=250)
    same(resumed, run(protocol, steps=250))


def test_a_kill_while_saving_leaves_the_older_checkpoint(tmp_path, monkeypatch):
    """The process ends in the middle of a write: half a file is there, and the old one whole."""
    saving = Saving(tmp_path / "run.pt", "small")
    stopped_at(5, saving)
    before = saving.path.read_bytes()

    def half(content, file):
        file.write(b"half of a checkpoint")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(KeyboardInterrupt):
        stopped_at(7, saving)
    monkeypatch.undo()
    assert saving.path.read_bytes() == before
    same(run(saving=saving), run())


@pytest.mark.slow
def test_kills_at_random_moments_of_saving_never_leave_a_broken_file(tmp_path):
    """Saving without pause, so that kills fall into it; every file left can be read."""
    path = tmp_path / "run.pt"
    for attempt in range(4):
        strike(path, "fresh", 600, at_step=10 + 20 * attempt)
        if path.exists():
            assert int(torch.load(path, weights_only=True)["state"]["step"]) > 0
    assert path.exists()


def test_another_key_is_refused_and_nothing_overwritten(tmp_path):
    saving = Saving(tmp_path / "run.pt", "small")
    stopped_at(5, saving)
    before = saving.path.read_bytes()
    with pytest.raises(CheckpointError, match="belongs to 'small', not 'other'; save elsewhere"):
        run(saving=Saving(saving.path, "other"))
    assert saving.path.read_bytes() == before


def test_other_settings_are_refused_with_the_difference(tmp_path):
    saving = Saving(tmp_path / "run.pt", "small")
    stopped_at(5, saving)
    with pytest.raises(CheckpointError, match="steps=40 there, steps=50 here"):
        run(saving=saving, steps=50)


def test_another_task_is_refused_though_all_shapes_are_the_same(tmp_path):
    saving, told = Saving(tmp_path / "run.pt", "small"), settings(steps=2)
    tasks = FarthestNeighbour(8, 3), FarthestNeighbour(8, 5)
    train(VARIANTS, tasks[0], told, saving=saving)
    with pytest.raises(CheckpointError, match=r"task=.*tokens=3.* there, task=.*tokens=5.* here"):
        train(VARIANTS, tasks[1], told, saving=saving)


def refusal(content, path):
    """The error for a file with this content."""
    path.write_bytes(content)
    with pytest.raises(UnreadableFileError) as caught:
        checkpoint._read(path)
    return str(caught.value)


def one_line(words):
    """Whether a refusal is one line that says what to do."""
    return "\n" not in words and "remove it to start again" in words


@pytest.mark.parametrize(
    "content", [b"", b"no checkpoint", b"PK\x03\x04 damaged", b"\x80\x02K\x01"]
)
def test_a_damaged_file_is_refused_in_one_line(content, tmp_path):
    path = tmp_path / "run.pt"
    assert one_line(refusal(content, path))
    with pytest.raises(UnreadableFileError, match="remove it to start again"):
        run(saving=Saving(path, "small"))
    assert path.read_bytes() == content


#: How pickles of torch's older format, and files of its newer one, begin.
STARTS = (b"", b"\x80\x02", b"\x80\x02\x8a", b"PK\x03\x04")

common = hypothesis.settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


@common
@hypothesis.given(start=st.sampled_from(STARTS), rest=st.binary(max_size=64))
def test_random_bytes_are_refused_in_one_line(start, rest, tmp_path):
    assert one_line(refusal(start + rest, tmp_path / "run.pt"))


@pytest.fixture(scope="module")
def whole_file(tmp_path_factory):
    saving = Saving(tmp_path_factory.mktemp("whole") / "run.pt", "small")
    stopped_at(2, saving)
    return saving.path.read_bytes()


@common
@hypothesis.given(share=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_off_anywhere_is_refused_in_one_line(share, whole_file, tmp_path):
    cut = whole_file[: int(share * len(whole_file))]
    assert one_line(refusal(cut, tmp_path / "run.pt"))


@pytest.mark.parametrize("missing", range(1, 41))
def test_a_file_without_its_last_bytes_is_refused_in_one_line(missing, whole_file, tmp_path):
    assert one_line(refusal(whole_file[:-missing], tmp_path / "run.pt"))


@pytest.mark.parametrize("place", [-200, -4000, -20_000])
def test_a_changed_bit_is_refused(place, whole_file, tmp_path):
    """torch reads a tensor with a changed bit, and the run would end at other numbers."""
    path = tmp_path / "run.pt"
    with zipfile.ZipFile(io.BytesIO(whole_file)) as archive:
        largest = max(archive.infolist(), key=lambda part: part.file_size)
        start = whole_file.index(archive.read(largest))
    changed = bytearray(whole_file)
    changed[start + largest.file_size * (place % 7) // 7] ^= 4
    assert one_line(refusal(changed, path))


@pytest.mark.parametrize("lost", ["key", "identity", "state", "generators", "rows"])
def test_a_checkpoint_without_a_part_is_refused_in_one_line(lost, whole_file, tmp_path):
    path = tmp_path / "run.pt"
    content = torch.load(io.BytesIO(whole_file), weights_only=True)
    del content[lost]
    torch.save(content, path)
    with pytest.raises(UnreadableFileError, match="no checkpoint of such a run; remove it"):
        run(saving=Saving(path, "small"))


def test_a_disk_that_refuses_a_checkpoint_is_named_in_one_line(tmp_path):
    import resource

    saving = Saving(tmp_path / "run.pt", "small")
    stopped_at(2, saving)
    before, limits = saving.path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(CheckpointError, match=r"cannot be written \(.*\); free some space"):
            stopped_at(3, saving)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saving.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.pt"]


def test_another_file_of_torch_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    torch.save({"weights": torch.ones(2)}, path)
    with pytest.raises(UnreadableFileError, match="no checkpoint of this version"):
        run(saving=Saving(path, "small"))


def test_saves_are_as_far_apart_as_asked(tmp_path):
    path = tmp_path / "run.pt"
    start = time.monotonic()
    run(saving=Saving(path, "small", seconds=3600))
    assert time.monotonic() - start < 600
    assert int(torch.load(path, weights_only=True)["state"]["step"]) == 40
    assert not path.with_name("run.pt.partial").exists()
