"""The runs on real data at the smallest scale: packing, a run cut short, what is left to do."""

import time

import numpy as np
import pytest

from benchmarks import packed_data, real_data, real_ensemble, real_plans
from headwise.attention import HeadGeometry
from headwise.errors import UnreadableFileError

ARRAYS = {
    "x_train": np.random.default_rng(0).integers(0, 256, (80, 3, 32, 32), dtype=np.uint8),
    "x_test": np.random.default_rng(1).integers(0, 256, (20, 3, 32, 32), dtype=np.uint8),
    "y_train": np.arange(80, dtype=np.uint8) % 4,
    "y_test": np.arange(20, dtype=np.uint8) % 4,
}


@pytest.fixture
def packed(tmp_path, monkeypatch):
    monkeypatch.setattr(packed_data, "PER_FILE", 30)
    monkeypatch.setattr(packed_data, "PER_FOLDER", 2)
    for job in packed_data._files("cifar10", ARRAYS, tmp_path / "packed"):
        packed_data._write(job)
    return tmp_path / "packed"


def test_packing_loses_nothing(packed):
    found = packed_data.read("cifar10", packed)
    assert all(np.array_equal(found[key], array) for key, array in ARRAYS.items())


def test_a_folder_that_did_not_arrive_is_named(packed):
    for file in (packed / "cifar10-2").iterdir():
        file.unlink()
    with pytest.raises(UnreadableFileError, match="bring every folder cifar10-1"):
        packed_data.read("cifar10", packed)
    with pytest.raises(UnreadableFileError, match=r"found none; python -m benchmarks.packed_data"):
        packed_data.read("svhn", packed)


def test_a_damaged_file_is_one_line(packed):
    file = next((packed / "cifar10-1").glob("x_*"))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(UnreadableFileError, match="damaged or cut short"):
        packed_data.read("cifar10", packed)


def test_stacked_geometries_share_their_shapes():
    groups = real_plans.stackable(real_plans.RUNS["cifar10-heads"][1])
    assert [len(group) for group in groups] == [1, 2, 2, 2, 2, 1]
    assert all(len({g.heads * g.qk_rank for g in group}) == 1 for group in groups)


def test_an_interrupted_run_resumes(packed, tmp_path, monkeypatch):
    plan = real_plans.Plan(
        "cifar10", real_plans.VisionModel(width=8, depth=1, mlp_width=8), epochs=3, batch=16
    )
    group = [HeadGeometry.standard(8, heads=heads) for heads in (1, 2)]
    monkeypatch.setattr(real_ensemble, "STRETCH", 2)
    task = real_plans.load("cifar10", packed, "cpu")

    def run(name, deadline):
        words = ["--checkpoints", str(tmp_path / name), "--seeds", "0,1"]
        return real_ensemble.run_group(plan, group, task, real_data.arguments(words), deadline)

    whole = run("whole", np.inf)
    assert run("cut", time.monotonic()) is None
    assert list((tmp_path / "cut").iterdir())
    rest = run("cut", np.inf)
    assert not list((tmp_path / "cut").iterdir())
    told = ("heads", "seed", "test_accuracy", "validation_accuracy", "curve")
    assert [[row[name] for name in told] for row in rest] == [
        [row[name] for name in told] for row in whole
    ]
    assert [row["heads"] for row in whole] == [1, 1, 2, 2]


def test_rows_that_are_there_are_not_made_again(packed, tmp_path, monkeypatch, capsys):
    plan = real_plans.Plan("cifar10", real_plans.VisionModel(width=16), epochs=1)
    monkeypatch.setitem(
        real_plans.RUNS, "cifar10-192", (plan, [HeadGeometry.standard(16, heads=2)])
    )
    words = ["--data", str(packed), "--rows", str(tmp_path / "rows.jsonl"), "--tiny"]
    words += ["--checkpoints", str(tmp_path / "kept"), "--seeds", "0"]
    for _ in range(2):
        assert real_data.train_all(real_data.arguments(words)) == 0
    assert len(real_data.read_rows(tmp_path / "rows.jsonl")) == 1
    assert "all done" in capsys.readouterr().out


def test_an_unknown_run_is_refused(capsys):
    with pytest.raises(SystemExit):
        real_data.arguments(["--runs", "mnist"])
    assert "no run 'mnist'; there are cifar10-192" in capsys.readouterr().err


def test_parts_share_the_ensembles_of_a_run():
    assert real_data.arguments(["--part", "2/5"]).part == (2, 5)
    assert real_data.arguments([]).part == (1, 1)
    for wrong in ("0/5", "6/5", "2"):
        with pytest.raises(SystemExit):
            real_data.arguments(["--part", wrong])


def test_only_the_wanted_numbers_of_heads_are_trained(packed, tmp_path, monkeypatch):
    plan = real_plans.Plan("cifar10", real_plans.VisionModel(width=16), epochs=1)
    both = [HeadGeometry.standard(16, heads=heads) for heads in (1, 2)]
    monkeypatch.setitem(real_plans.RUNS, "cifar10-192", (plan, both))
    words = ["--data", str(packed), "--rows", str(tmp_path / "rows.jsonl"), "--tiny"]
    words += ["--checkpoints", str(tmp_path / "kept"), "--seeds", "0", "--heads", "2"]
    assert real_data.train_all(real_data.arguments(words)) == 0
    assert [row["heads"] for row in real_data.read_rows(tmp_path / "rows.jsonl")] == [2]


def test_another_learning_rate_is_another_row(packed, tmp_path, monkeypatch):
    plan = real_plans.Plan("cifar10", real_plans.VisionModel(width=16), epochs=1)
    monkeypatch.setitem(
        real_plans.RUNS, "cifar10-192", (plan, [HeadGeometry.standard(16, heads=2)])
    )
    words = ["--data", str(packed), "--rows", str(tmp_path / "rows.jsonl"), "--tiny"]
    words += ["--checkpoints", str(tmp_path / "kept"), "--seeds", "0"]
    for rate in ([], ["--rate", "3e-4"], ["--rate", "3e-4"]):
        assert real_data.train_all(real_data.arguments([*words, *rate])) == 0
    assert [row["rate"] for row in real_data.read_rows(tmp_path / "rows.jsonl")] == [1e-3, 3e-4]
