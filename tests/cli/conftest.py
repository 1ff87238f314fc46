"""The headwise command, run inside the test process and as a separate process."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from headwise.cli.app import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def one_line(self, code: int) -> str:
        """What a refusal said: one line, nothing else, and this exit code."""
        assert self.code == code
        assert self.out == ""
        assert self.err.startswith("headwise: ")
        assert self.err.count("\n") == 1
        return self.err


Command = Callable[..., Ran]


@pytest.fixture
def headwise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in this process, in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), out, err)

    return run


@pytest.fixture
def headwise_process() -> Command:
    """Run the command as a person would: a separate process."""

    def run(*arguments: object) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "headwise", *map(str, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=60,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def files(tmp_path):
    """A folder of inputs for ``headwise advise``, most of them bad."""
    np.save(tmp_path / "equal.npy", np.ones((2, 5, 4)))
    np.save(tmp_path / "nan.npy", np.full((2, 5, 4), np.nan))
    np.save(tmp_path / "one.npy", np.random.default_rng(0).random((2, 1, 4)))
    np.save(tmp_path / "ids.npy", np.arange(50).reshape(5, 10))
    np.save(tmp_path / "images.npy", np.zeros((5, 3, 8, 8), dtype=np.int64))
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY nothing")
    (tmp_path / "empty.txt").write_text(" ")
    (tmp_path / "small.json").write_text('{"hidden_size": 64, "n_head": 4}')
    (tmp_path / "word.txt").write_text("hello")
    (tmp_path / "conv.json").write_text('{"model_type": "resnet"}')
    return tmp_path
