"""headwise trial, at the smallest scale."""

import json

import numpy as np
import pytest

from headwise.cli.app import main

SMALL = ["--width", "8", "--depth", "1", "--steps", "16", "--seeds", "2"]
SMALL += ["--candidates", "2x4,1x8"]


def said(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main(["trial", *words])
    heard = capsys.readouterr()
    return ended.value.code or 0, heard.out, heard.err


def test_the_digits_are_tried_in_json(capsys):
    code, out, _ = said(capsys, "digits", *SMALL, "--json")
    found = json.loads(out)
    assert code == 0
    assert {(e["heads"], e["qk_rank"]) for e in found["entrants"]} == {(2, 4), (1, 8)}


def test_files_of_images_and_labels_are_read_and_the_best_is_named(capsys, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.random((40, 1, 4, 4)))
    np.save(tmp_path / "y.npy", rng.integers(2, size=40))
    files = (str(tmp_path / "x.npy"), "--labels", str(tmp_path / "y.npy"))
    code, out, _ = said(capsys, *files, *SMALL)
    assert code == 0
    assert "lowest error rate after 16 steps" in out


def test_the_answer_fits_100_columns(capsys):
    sizes = ["--width", "8", "--depth", "1", "--steps", "16", "--seeds", "2"]
    code, out, err = said(capsys, "digits", *sizes, "--candidates", "128x16/128,1x8/8,2x4/8")
    assert code == 0, err
    assert "128 x 16/128" in out and "Pareto front" in out
    assert max(map(len, out.splitlines())) <= 100


def test_missing_labels_and_labels_that_do_not_match_are_one_line(capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((40, 1, 4, 4)))
    np.save(tmp_path / "y.npy", np.zeros(3, dtype=np.int64))
    code, _, err = said(capsys, str(tmp_path / "x.npy"))
    assert code == 1 and "expected 40 class numbers, got none" in err
    files = (str(tmp_path / "x.npy"), "--labels", str(tmp_path / "y.npy"))
    code, _, err = said(capsys, *files)
    assert code == 1 and "expected 40 class numbers" in err
    assert len(err.splitlines()) == 1


def test_the_figure_and_the_report_are_written(capsys, tmp_path):
    files = ("--html", str(tmp_path / "t.html"), "--plot", str(tmp_path / "t.svg"))
    code, out, err = said(capsys, "digits", *SMALL, *files)
    assert code == 0 and "probability best" in out and "report:" in err
    text = (tmp_path / "t.html").read_text()
    assert "<svg" in text and "2 x 4" in text and "<script" not in text
    assert (tmp_path / "t.svg").read_text().count("<svg") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected SOURCE, or --build with --batches, got neither; pass"),
        (["digits", "--build", "a:b", "--batches", "a:c"], "--batches, got both; pass one"),
        (["--batches", "a:c"], "got --batches alone; pass --build too"),
        (["digits", "--candidates", "4x16"], "two different candidates, got 1; pass more"),
        (["--build", "a:b"], "got --build alone; pass --batches too"),
        (["digits", "--candidates", "4by8"], "got '4by8'"),
        (["digits", "--plot", "curves.txt"], "ending in .png"),
        (
            ["digits", "--task", "translate"],
            "'--task': 'translate' is not one of 'classify', 'regress', 'next-token'",
        ),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(capsys, words, message):
    code, _, err = said(capsys, *words)
    assert code == 2 and message in err


def test_an_own_model_is_named_by_its_functions(capsys, tmp_path, monkeypatch):
    (tmp_path / "own_for_trial.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    words = ("--build", "own_for_trial:build", "--batches", "own_for_trial:batches")
    sizes = ("--width", "8", "--steps", "40", "--seeds", "2", "--candidates", "1x1,1x8")
    code, out, _ = said(capsys, *words, *sizes, "--rate", "0.03", "--json")
    assert code == 0
    assert json.loads(out)["entrants"][0]["qk_rank"] == 8


OWN = """
import torch
from torch import nn


def build(geometry):
    inner = geometry.heads * geometry.qk_rank
    return nn.Sequential(nn.Linear(8, inner, bias=False), nn.Linear(inner, 8, bias=False))


def batches(seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(100):
        x = torch.randn(32, 8, generator=generator)
        yield x, x
"""


def test_an_empty_folder_and_a_report_that_is_a_folder_are_one_line(capsys, tmp_path):
    code, _, err = said(capsys, str(tmp_path))
    assert (code, len(err.splitlines())) == (1, 1)
    assert f"expected images or texts in {tmp_path}, got an empty folder" in err
    code, _, err = said(capsys, "digits", *SMALL, "--html", str(tmp_path))
    assert (code, len(err.splitlines())) == (1, 1)
    assert "it is a folder; pass the name" in err


def test_a_file_of_vectors_is_tried_as_it_is_advised(capsys, tmp_path):
    vectors = np.random.default_rng(0).standard_normal((60, 5, 3))
    np.save(tmp_path / "sensors.npy", vectors)
    np.save(tmp_path / "labels.npy", (vectors[:, 2, 0] > 0).astype(int))
    np.save(tmp_path / "numbers.npy", vectors[:, 2, 0])
    for labels, measure in (("labels.npy", "error rate"), ("numbers.npy", "relative error")):
        files = (str(tmp_path / "sensors.npy"), "--labels", str(tmp_path / labels))
        code, out, err = said(capsys, *files, "--width", "8", "--steps", "8", "--json")
        assert code == 0, err
        assert json.loads(out)["measure"] == measure
