import io
import time

import pytest
from rich.console import Console

from headwise.cli import console


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    """Puts a stream in place of the error stream, before a tool that loses patience fast.

    Called inside the test, because pytest sets its own streams between fixture and test.
    """
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(console, "PATIENCE", 0.05)

    def replaced_by(stream):
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return replaced_by


def test_slow_work_shows_how_far_it_is(stderr):
    terminal = stderr(Terminal())
    with console.progress("counting", 7) as advance:
        advance(3)
        time.sleep(0.4)
    assert "counting" in terminal.getvalue()
    assert "3/7" in terminal.getvalue()


def test_quick_work_shows_nothing(stderr, monkeypatch):
    monkeypatch.setattr(console, "PATIENCE", 2.0)
    terminal = stderr(Terminal())
    with console.progress("counting", 7) as advance:
        advance(7)
    assert terminal.getvalue() == ""


def test_a_log_file_gets_one_plain_line_and_no_bar(stderr):
    log = stderr(io.StringIO())
    with console.progress("counting", 7) as advance:
        advance(3)
        time.sleep(0.2)
    assert log.getvalue() == "headwise: still counting\n"


def test_a_log_file_hears_nothing_of_quick_work(stderr, monkeypatch):
    monkeypatch.setattr(console, "PATIENCE", 2.0)
    log = stderr(io.StringIO())
    with console.progress("counting", 7) as advance:
        advance(7)
    assert log.getvalue() == ""


def test_the_bar_ends_with_the_work_even_if_it_fails(stderr):
    terminal = stderr(Terminal())
    with pytest.raises(KeyError), console.progress("counting", 7):
        time.sleep(0.2)
        raise KeyError
    written = len(terminal.getvalue())
    time.sleep(0.3)
    assert written > 0
    assert len(terminal.getvalue()) == written


def test_complaints_are_one_line(capsys):
    console.complain("a\n  b\tc")
    assert capsys.readouterr().err == "headwise: a b c\n"


def test_json_never_writes_nan():
    with pytest.raises(ValueError, match="JSON"):
        console.print_json({"x": float("nan")})


def test_the_screen_is_the_output_stream(capsys):
    assert isinstance(console.screen(), Console)
    console.screen().print("hello")
    assert capsys.readouterr().out == "hello\n"
