"""Progress on the error stream: a bar in a terminal, lines in a log, nothing for quick work."""

import io
import signal
import time
from contextlib import suppress

import pytest

from headwise.cli import progress_bar
from headwise.cli.app import app, main
from headwise.errors import StoppedError
from headwise.progress import NoProgress, Progress, tracked


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    """Replace the error stream inside the test, after pytest has set its own."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(progress_bar, "PATIENCE", 0.05)

    def replaced_by(stream):
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return replaced_by


def count_to(steps, *, pause, total=7):
    with tracked(progress_bar.progress_bar(), "counting", total) as progress:
        for step in range(steps):
            progress.show(f"number [/{step}]")
            time.sleep(pause)
            if step == 2:
                progress.log("failed: number [/2]")
            progress.advance()


def test_a_terminal_gets_steps_time_and_the_current_item(stderr):
    terminal = stderr(Terminal())
    count_to(6, pause=0.15)
    shown = terminal.getvalue()
    for part in ("counting", "5/7", "0:00:0", "number [/5]", "failed: number [/2]"):
        assert part in shown


def test_a_log_gets_plain_lines(stderr, monkeypatch):
    monkeypatch.setattr(progress_bar, "INTERVAL", 0.1)
    log = stderr(io.StringIO())
    count_to(7, pause=0.07)
    lines = log.getvalue().splitlines()
    assert lines[0] == "headwise: counting: 0/7 done, number [/0]"
    assert "headwise: failed: number [/2]" in lines
    assert any("/7 done, " in line and " left, number" in line for line in lines)
    assert lines[-1].startswith("headwise: counting: 7/7 done in ")
    assert "\x1b" not in log.getvalue()


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_quick_work_shows_nothing(stderr, monkeypatch, stream):
    monkeypatch.setattr(progress_bar, "PATIENCE", 5.0)
    shown = stderr(stream())
    with tracked(progress_bar.progress_bar(), "counting", 7) as progress:
        progress.advance(7)
    assert shown.getvalue() == ""


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_nothing_is_written_after_a_failure(stderr, stream):
    shown = stderr(stream())
    with pytest.raises(KeyError), tracked(progress_bar.progress_bar(), "counting", 7):
        time.sleep(0.2)
        raise KeyError
    written = len(shown.getvalue())
    time.sleep(0.3)
    assert 0 < written == len(shown.getvalue())


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_tasks_nest(stderr, stream):
    shown = stderr(stream())
    with tracked(progress_bar.progress_bar(), "outer", 2) as progress:
        with tracked(progress, "inner", 3):
            time.sleep(0.2)
            progress.advance(3)
        progress.advance(2)
        time.sleep(0.2)
    assert "inner" in shown.getvalue()
    assert "2/2" in shown.getvalue()


def test_a_bar_can_be_used_twice(stderr):
    log = stderr(io.StringIO())
    progress = progress_bar.progress_bar()
    for task in ("first", "second"):
        with tracked(progress, task, 1):
            time.sleep(0.1)
            progress.advance()
    assert "first: 1/1 done" in log.getvalue()
    assert "second: 1/1 done" in log.getvalue()


@pytest.mark.parametrize(
    "progress", [NoProgress(), progress_bar.Lines(print), progress_bar.progress_bar()]
)
def test_each_implements_the_protocol(progress):
    assert isinstance(progress, Progress)


def test_a_stopped_command_exits_as_ctrl_c_does(capsys):
    def stopped() -> None:
        """Raise what a run raises on Ctrl-C."""
        raise StoppedError("stopped with 3 of 7 left", hint="run it again")

    app.command("stopped")(stopped)
    try:
        with pytest.raises(SystemExit) as left:
            main(["stopped"])
    finally:
        app.registered_commands.pop()
    assert left.value.code == 130
    assert capsys.readouterr().err == "headwise: stopped with 3 of 7 left; run it again\n"


def test_ctrl_c_that_a_library_swallows_still_stops_the_command(capsys):
    def swallowed() -> None:
        """Lose Ctrl-C as an import in machine code does, then fail for another reason."""
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise RecursionError("half of a library")

    before = list(app.registered_commands)
    app.command("swallowed")(swallowed)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as left:
            main(["swallowed"])
    finally:
        app.registered_commands[:] = before
        signal.signal(signal.SIGINT, previous)
    assert left.value.code == 130
    assert capsys.readouterr().err == "headwise: stopped\n"
