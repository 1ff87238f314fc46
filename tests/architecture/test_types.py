"""Type checkers see real types behind every public name."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headwise

SCRIPT = Path(__file__).with_name("user_script.py")
SOURCE = Path(headwise.__file__).parents[1]

#: Uses that a checker must refuse; each line is wrong.
WRONG = """
import headwise

headwise.advise(widht=3)
headwise.measrue
geometry: int = headwise.HeadGeometry.free(width=64, heads=2, rank=4)
"""


def mypy(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    # --follow-imports=silent: report on the script, not on what it imports.
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={folder / 'mypy'}"]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, script],
        cwd=folder,
        env={"MYPYPATH": str(SOURCE), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def pyright(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(SOURCE)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return subprocess.run(
        [
            Path(sys.executable).with_name("basedpyright"),
            *("--project", folder / "pyrightconfig.json"),
            *("--pythonpath", sys.executable, script),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def refused_lines(done: subprocess.CompletedProcess[str]) -> set[int]:
    return {int(line) for line in re.findall(r"wrong\.py:(\d+):.*error: ", done.stdout)}


@pytest.mark.slow
def test_mypy_accepts_a_users_script_and_refuses_a_wrong_one(tmp_path):
    done = mypy(SCRIPT, tmp_path)
    assert done.returncode == 0, done.stdout
    (tmp_path / "wrong.py").write_text(WRONG)
    assert refused_lines(mypy(tmp_path / "wrong.py", tmp_path)) == {4, 5, 6}


def test_pyright_accepts_a_users_script_and_refuses_a_wrong_one(tmp_path):
    done = pyright(SCRIPT, tmp_path)
    assert "0 errors" in done.stdout, done.stdout
    (tmp_path / "wrong.py").write_text(WRONG)
    assert refused_lines(pyright(tmp_path / "wrong.py", tmp_path)) == {4, 5, 6}
