"""Committed rows: written from a store, recomputed, and a changed one noticed."""

import csv
import sys
from importlib import import_module
from random import Random

import pytest

from headwise.papers.beyond.uncentred_inputs import UNCENTRED_INPUTS
from headwise.papers.catalogue import chosen
from headwise.papers.exhibit import Scale
from headwise.runs import Store, read_records
from headwise.runs.attempt import attempt


@pytest.fixture(scope="module")
def store_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "results.db"
    with Store.open(path) as store:
        for spec in UNCENTRED_INPUTS.specs(Scale.MINIATURE):
            store.put(spec, attempt(spec))
    return path


@pytest.fixture
def folder(store_path, tmp_path, monkeypatch):
    run(
        monkeypatch, "record_exhibits", store_path, "all", "--scale", "miniature", "--out", tmp_path
    )
    return tmp_path


def run(monkeypatch, script, *arguments) -> int:
    """The exit code of a script."""
    monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
    try:
        import_module(script).main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0


def path_in(folder):
    return folder / "beyond" / "uncentred_inputs_miniature.csv"


def rewrite(path, change) -> None:
    """Apply ``change`` to every line of a CSV file."""
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows([line | change(line) for line in lines])


def test_what_is_whole_is_recorded_and_the_rest_is_not(folder, store_path):
    assert [path.name for path in folder.rglob("*.csv")] == ["uncentred_inputs_miniature.csv"]
    with Store.open(store_path) as store:
        assert dict(read_records(path_in(folder))) == dict(store.records())


def test_a_part_is_added_to_what_was_recorded_before(tmp_path, monkeypatch):
    """A store with new rows alone must not remove the recorded ones."""
    (exhibit,) = chosen(["rank2026/figure_4"])
    specs = exhibit.specs(Scale.MINIATURE)
    for number, own in enumerate((specs[:1], specs[1:2])):
        with Store.open(tmp_path / f"{number}.db") as store:
            for spec in own:
                store.put(spec, attempt(spec))
    words = ("rank2026/figure_4", "--scale", "miniature", "--part", "--out", tmp_path)
    for number, keys in enumerate((specs[:1], specs[:2])):
        assert run(monkeypatch, "record_exhibits", tmp_path / f"{number}.db", *words) == 0
        found = read_records(tmp_path / "rank2026" / "figure_4_miniature.csv")
        assert set(found) == {spec.key for spec in keys}


def test_miniatures_are_not_recorded_unless_asked_for(store_path, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, "record_exhibits", store_path, "--out", tmp_path) == 0
    assert "0 records written" in capsys.readouterr().out


def test_a_store_that_is_not_there_is_said(tmp_path, monkeypatch):
    assert run(monkeypatch, "record_exhibits", tmp_path / "none.db") == 1
    assert not (tmp_path / "none.db").exists()


def verify(monkeypatch, folder, *options) -> int:
    return run(monkeypatch, "verify_records", "--records", folder, "--seed", 1, *options)


def test_rows_that_were_not_touched_agree(folder, monkeypatch, capsys):
    assert verify(monkeypatch, folder, "--sample", 3) == 0
    out = capsys.readouterr().out
    assert "3 of 12 recorded answers, seed 1" in out
    assert "3 agrees" in out


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("row.mean", lambda cell: repr(float(cell) * (1 + 1e-6))),
        ("row.count", lambda cell: str(int(cell) + 1)),
        ("row.logit_size", lambda cell: repr(float(cell) + 0.001)),
    ],
)
def test_a_planted_change_is_noticed(column, change, folder, monkeypatch, capsys):
    rewrite(path_in(folder), lambda line: {column: change(line[column])})
    assert verify(monkeypatch, folder, "--sample", 2) == 1
    assert f"{column.partition('.')[2]}: " in capsys.readouterr().out


def test_how_an_answer_was_found_may_change(folder, monkeypatch):
    rewrite(path_in(folder), lambda line: {"row.methods": '{"svd": 9}'})
    assert verify(monkeypatch, folder, "--sample", 2) == 0


def test_long_rows_of_an_absent_device_are_counted(folder, monkeypatch, capsys):
    device = {"provenance.device": "cuda:0 (Imaginary 9000)", "provenance.seconds": "3.0"}
    rewrite(path_in(folder), lambda line: device)
    assert verify(monkeypatch, folder, "--sample", 4) == 0
    assert "4 not recomputed: Imaginary 9000 is absent" in capsys.readouterr().out


@pytest.mark.parametrize(("shift", "code"), [(0.5, 0), (40.0, 1)])
def test_short_rows_of_an_absent_device_may_differ_by_luck_alone(shift, code, folder, monkeypatch):
    def elsewhere(line):
        moved = float(line["row.mean"]) + shift * float(line["row.stderr"])
        device = {"provenance.device": "cuda:0 (Imaginary 9000)", "provenance.seconds": "0.01"}
        return device | {"row.mean": repr(moved)}

    rewrite(path_in(folder), elsewhere)
    assert verify(monkeypatch, folder, "--sample", 2) == code


def test_rows_that_take_too_long_are_counted(folder, monkeypatch, capsys):
    rewrite(path_in(folder), lambda line: {"provenance.seconds": "31.0"})
    assert verify(monkeypatch, folder, "--sample", 1) == 0
    assert "1 not recomputed: takes too long" in capsys.readouterr().out


def test_an_empty_folder_is_said(tmp_path, monkeypatch, capsys):
    assert verify(monkeypatch, tmp_path) == 0
    assert "nothing there" in capsys.readouterr().out


@pytest.mark.parametrize(("agreeing", "difference"), [(3, ""), (5, "mean")])
def test_counted_noise_may_differ_and_certified_counts_may_not(agreeing, difference):
    verify_records = import_module("verify_records")
    row = {"mean": 0.9, "stderr": 0.01, "count": 5, "agreeing": agreeing}
    other = row | {"mean": 0.89}
    found = verify_records.first_difference((row,), (other,), verify_records._exactly)
    assert found.partition(":")[0] == difference


def test_a_sample_has_a_training_run_of_a_device_that_is_here():
    """However few are drawn: of thousands of answers, hardly any are trained ones."""
    verify = import_module("verify_records")
    records = verify.all_records(verify.RECORDS)
    for seed in range(5):
        sample = verify.drawn(records, 3, Random(seed))
        assert "curve_step" in sample[0][1].rows[0]
        assert verify.family(sample[0][1].provenance.device) in verify.devices_here()
        assert len({id(record) for _, record in sample}) == 3
    assert verify.drawn([], 3, Random(0)) == []
