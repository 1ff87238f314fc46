"""headwise bound: its JSON, its words, and its refusals."""

from __future__ import annotations

import json

import pytest

import headwise
from headwise.cli.app import main
from headwise.cli.bound import counted


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["bound", *arguments])
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


def test_heads_give_an_error(capsys):
    size = ("--width", "64", "--rank", "8", "--heads", "8")
    code, out, _ = run(capsys, *size, "--values", "identity", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["error_lower_bound"] == pytest.approx(0.1780, abs=6e-5)
    assert answer["inputs"] == {"width": 64, "rank": 8, "heads": 8, "values": "identity"}
    assert len(answer) == 2


def test_values_of_any_form_are_the_default(capsys):
    out = run(capsys, "--width", "64", "--rank", "8", "--heads", "8", "--json")[1]
    assert json.loads(out)["error_lower_bound"] == pytest.approx(0.1768, abs=6e-5)


def test_an_error_gives_heads(capsys):
    out = run(capsys, "--width", "64", "--rank", "32", "--error", "0.1", "--json")[1]
    inputs = {"width": 64, "rank": 32, "error": 0.1, "values": "any"}
    assert json.loads(out) == {"heads": 12, "inputs": inputs}


def test_astronomic_numbers_pass(capsys):
    size = ("--width", "1000000", "--rank", "1")
    out = run(capsys, *size, "--heads", "1e300", "--json")[1]
    assert 0 < json.loads(out)["error_lower_bound"] < 0.1
    out = run(capsys, *size, "--error", "0.1", "--json")[1]
    assert json.loads(out)["heads"] == pytest.approx(2.2e37, rel=0.02)


@pytest.mark.parametrize(
    ("heads", "words"),
    [
        (1, "1 head"),
        (999_999, "999,999 heads"),
        (7_739_990, "7.74 million heads"),
        (999_999_999, "1 billion heads"),
        (1.5e14, "150 trillion heads"),
        (9.999e14, "1·10¹⁵ heads"),
        (2.2e37, "2.2·10³⁷ heads"),
    ],
)
def test_numbers_of_heads_are_readable(heads, words):
    assert counted(heads) == words


def test_millions_are_printed_as_such(capsys):
    out = run(capsys, "--width", "64", "--rank", "1", "--error", "0.1")[1]
    found = headwise.bound(64, 1, error=0.1)
    assert f"{counted(found.heads)} of rank 1" in " ".join(out.split())
    assert "million heads" in out


@pytest.mark.parametrize(
    ("option", "words"),
    [(("--heads", "8"), "have an error of at least"), (("--error", "0.1"), "needs at least")],
)
def test_the_answer_is_a_sentence(capsys, option, words):
    code, out, _ = run(capsys, "--width", "64", "--rank", "8", *option)
    assert code == 0
    assert words in " ".join(out.split())
    assert "mean squared error; without attention it is 0.5." in " ".join(out.split())


def test_the_help_has_an_example(capsys):
    assert "headwise bound --width 64 --rank 8 --error 0.1" in run(capsys, "--help")[1]
