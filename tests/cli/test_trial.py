"""headwise trial, at the smallest scale."""

import json

import numpy as np
import pytest

from headwise.cli.app import main

SMALL = ["--width", "8", "--depth", "1", "--steps", "16", "--seeds", "2"]


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
    assert "is best after 16 steps with probability" in out


def test_missing_labels_and_labels_that_do_not_match_are_one_line(capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((40, 1, 4, 4)))
    np.save(tmp_path / "y.npy", np.zeros(3, dtype=np.int64))
    code, _, err = said(capsys, str(tmp_path / "x.npy"))
    assert code == 2 and "expected --labels FILE" in err
    files = (str(tmp_path / "x.npy"), "--labels", str(tmp_path / "y.npy"))
    code, _, err = said(capsys, *files)
    assert code == 1 and "expected 40 class numbers" in err
    assert len(err.splitlines()) == 1
