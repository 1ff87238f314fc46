"""How a run looks: a bar in a terminal, lines in a log, one line when it is stopped."""

import io
import time

import pytest

from headwise.cli import run_progress
from headwise.cli.app import app, main
from headwise.errors import StoppedError
from headwise.runs import Plan
from headwise.runs.attempt import attempt, unasked
from headwise.runs.examples import Square

SPECS = tuple(Square(number=number) for number in range(7))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def go_through(watcher, *, pause, until=7):
    """Four answers and a failure for the third."""
    watcher.began(Plan(SPECS[:2], (), SPECS, SPECS))
    for spec in SPECS[:until]:
        watcher.started(spec)
        time.sleep(pause)
        failing = spec.number == 2
        watcher.finished(spec, unasked(spec, "cpu", "Tr\nE: no") if failing else attempt(spec))
    watcher.ended()


@pytest.fixture
def terminal(monkeypatch):
    """The error stream as a terminal of 100 columns, set in the test itself."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(run_progress, "PATIENCE", 0.05)

    def replaced():
        stream = Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return replaced


def test_a_terminal_gets_done_of_total_rate_time_left_and_the_spec(terminal):
    stream = terminal()
    go_through(run_progress.run_watcher(), pause=0.15, until=6)
    shown = stream.getvalue()
    assert "failed: square number=2.0: E: no" in shown
    assert "5/7" in shown
    assert "/s" in shown
    assert "0:00:0" in shown
    assert "square number=5.0" in shown
    assert "1 failed" in shown


def test_a_quick_run_shows_no_bar(terminal, monkeypatch):
    monkeypatch.setattr(run_progress, "PATIENCE", 5.0)
    stream = terminal()
    watcher = run_progress.run_watcher()
    watcher.began(Plan((), (), SPECS, SPECS))
    watcher.finished(SPECS[0], attempt(SPECS[0]))
    watcher.ended()
    assert stream.getvalue() == ""


def test_a_log_gets_plain_lines(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    monkeypatch.setattr(run_progress, "INTERVAL", 0.1)
    monkeypatch.setattr(run_progress, "PATIENCE", 0.2)
    go_through(run_progress.run_watcher(), pause=0.06)
    lines = log.getvalue().splitlines()
    assert lines[0] == "2 answered before, 7 to do"
    assert "failed: square number=2.0: E: no" in lines
    assert any(
        " per second, " in line and line.endswith("s left, at square number=3.0") for line in lines
    )
    assert lines[-1].startswith("7/7 done, 1 failed, ")
    assert "\x1b" not in log.getvalue()


def test_a_quick_run_leaves_a_log_alone():
    log = []
    watcher = run_progress.Lines(log.append)
    watcher.began(Plan((), (), SPECS, SPECS))
    watcher.finished(SPECS[0], attempt(SPECS[0]))
    watcher.ended()
    assert log == []


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
