"""Every command behaves in pipes, in old encodings and with odd paths."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headwise.cli.app import app, main

#: One call of every command that prints for people; A.npy lies in the folder.
CALLS = {
    "advise": ["advise", "--length", "64", "--width", "32"],
    "rank": ["rank", "A[/x].npy"],
    "law": ["law", "--length", "64"],
    "bound": ["bound", "--width", "64", "--rank", "8", "--error", "0.1"],
    "reproduce": ["reproduce", "rank2026/table_2", "--from-records", "--out", "o[/x]"],
    "report": ["report", "--help"],
    "demo": ["demo"],
    "help": ["--help"],
    "wrong": ["rank", "no[/such].npy"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    matrix = np.random.default_rng(0).random((7, 7))
    (tmp_path / "A[").mkdir()
    np.save(tmp_path / "A[/x].npy", matrix)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_is_called():
    ours = {command.name for command in app.registered_commands}
    missing = ours - CALLS.keys()
    assert missing <= {"trial", "scan", "data", "reduce", "serve"}, missing


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("name", CALLS)
def test_output_in_any_encoding(folder, monkeypatch, name, encoding, form):
    if form and name in {"report", "help", "wrong"}:
        return
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    with pytest.raises(SystemExit) as left:
        main([*CALLS[name], *form])
    out.flush()
    said = out.buffer.getvalue().decode(encoding)
    assert left.value.code == (1 if name == "wrong" else 0)
    assert said or name == "wrong"


@pytest.mark.parametrize("name", ["demo", "help"])
def test_a_reader_that_leaves_early(folder, name):
    """What ``| head -1`` does, made certain: the reader is gone before the first line."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "headwise", *CALLS[name]],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("name", ["rank", "law", "help"])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["words", "json"])
def test_output_to_a_full_disk_is_one_line(folder, name, form):
    if form and name == "help":
        return
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "headwise", *CALLS[name], *form],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = "headwise: the output cannot be written (No space left on device); send it elsewhere\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(folder, closed):
    command = f"{sys.executable} -m headwise rank 'A[/x].npy' --json {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_completion_script_is_there(capfd, monkeypatch):
    monkeypatch.setenv("_HEADWISE_COMPLETE", "source_bash")
    done = subprocess.run(
        [sys.executable, "-m", "headwise"], capture_output=True, text=True, check=False
    )
    assert "_headwise_completion" in done.stdout + done.stderr
