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


#: Each public function and class refuses a parameter that it does not have.
FUNCTIONS = [name for name in headwise.__all__ if callable(getattr(headwise, name))]
FUNCTIONS = [name for name in FUNCTIONS if name not in ("HeadwiseError", "Progress")]
WRONG += "".join(f"headwise.{name}(no_such_parameter=1)\n" for name in FUNCTIONS)

#: Large libraries that mypy need not read to see headwise's own types; pyright reads them.
UNREAD = "torch numpy scipy matplotlib transformers pandas sqlalchemy pydantic rich jaxtyping"


def mypy(folder: Path, *scripts: Path) -> subprocess.CompletedProcess[str]:
    unread = ",".join(f"{name}.*" for name in UNREAD.split())
    (folder / "mypy.ini").write_text(f"[mypy]\n[mypy-{unread}]\nfollow_imports = skip\n")
    # --follow-imports=silent: report on the scripts, not on what they import.
    options = ["--strict", "--follow-imports=silent", f"--cache-dir={folder / 'mypy'}"]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, *scripts],
        cwd=folder,
        env={"MYPYPATH": str(SOURCE), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def pyright(folder: Path, *scripts: Path) -> subprocess.CompletedProcess[str]:
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(SOURCE)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    return subprocess.run(
        [
            Path(sys.executable).with_name("basedpyright"),
            *("--project", folder / "pyrightconfig.json"),
            *("--pythonpath", sys.executable, *scripts),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checkers_accept_a_users_script_and_refuse_a_wrong_one(checker, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    done = checker(tmp_path, SCRIPT, wrong)
    refused = re.findall(r"(\w+\.py):(\d+):.*error: ", done.stdout)
    lines = range(4, 1 + WRONG.count("\n"))
    assert {(name, int(line)) for name, line in refused} == {("wrong.py", n) for n in lines}


def test_the_script_uses_every_public_name():
    text = SCRIPT.read_text()
    assert not [name for name in headwise.__all__ if not re.search(rf"\b{name}\b", text)]
    assert len(FUNCTIONS) > 15
