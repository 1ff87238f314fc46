"""The headwise command, run inside the test process and as a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

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
    """Run the command as a person would: a process of its own."""

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
