"""The examples of docs/trial.md run as they stand."""

import json
import re
from pathlib import Path

import pytest

from headwise.cli.app import main
from headwise.geometry import HeadGeometry
from headwise.trials import trial_of

PAGE = (Path(__file__).parents[2] / "docs/trial.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


OWN = next(block for block in blocks("python") if "def build" in block)


def test_the_python_example_prints_what_is_true(capsys):
    (example,) = (block for block in blocks("python") if "headwise.trial(" in block)
    exec(compile(example, "trial.md", "exec"), {})
    assert capsys.readouterr().out == "True True\n"


@pytest.mark.parametrize("command", blocks("sh")[0].splitlines())
def test_build_and_batches_run_as_commands(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)
    words = command.split()
    assert words[:2] == ["headwise", "trial"] and len(blocks("sh")[0].splitlines()) == 2
    with pytest.raises(SystemExit) as ended:
        main([*words[1:], "--json"])
    out, err = capsys.readouterr()
    assert not ended.value.code, err
    found = json.loads(out)
    assert {(e["heads"], e["qk_rank"]) for e in found["entrants"]} == {(2, 16), (8, 4)}
    assert found["entrants"][0]["predicted"] < found["constant"]


def test_build_and_batches_run_in_python():
    space = {}
    exec(compile(OWN, "mine.py", "exec"), space)
    candidates = [HeadGeometry.free(32, heads, 32 // heads) for heads in (2, 8)]
    found = trial_of(space["build"], space["batches"], candidates, steps=60)
    assert found.measure == "loss" and found.learned
