"""Where commands print, and how."""

import pytest
from rich.console import Console

from headwise.cli import console


def test_complaints_are_one_line(capsys):
    console.complain("a\n  b\tc")
    assert capsys.readouterr().err == "headwise: a b c\n"


def test_help_names_arguments_as_sentences_do(headwise):
    out = headwise("scan", "--help").out
    assert "Usage: headwise scan [OPTIONS] MODEL\n" in out
    assert "  MODEL  Folder" in out and "<str>  Folder" not in out
    assert "EXHIBIT  Names such as" in headwise("report", "--help").out


def test_json_never_writes_nan():
    with pytest.raises(ValueError, match="JSON"):
        console.print_json({"x": float("nan")})


def test_the_screen_is_the_output_stream(capsys):
    assert isinstance(console.screen(), Console)
    console.screen().print("hello")
    assert capsys.readouterr().out == "hello\n"


def test_complaints_hold_no_commands_to_the_terminal(capsys):
    console.complain("there is no file \x1b]0;title\x07\x1b[31mred\u202e.npy, σ ≥ ε")
    assert capsys.readouterr().err == "headwise: there is no file ?]0;title??[31mred?.npy, σ ≥ ε\n"
