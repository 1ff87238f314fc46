"""What every verb shares: where it prints, how JSON and errors look, progress when it is slow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


class UsageError(typer.TyperException):
    """The options given do not go together: exit code 2."""

    exit_code = 2


def complain(message: str) -> None:
    """One line on the error stream, whatever line breaks the message had."""
    typer.echo("headwise: " + " ".join(message.split()), err=True)


def screen() -> Console:
    """The console that people read; in a pipe it is as wide as a terminal and has no colour."""
    from rich.console import Console

    return Console(highlight=False)


def print_json(value: Any) -> None:
    """``value`` as JSON on the output stream, and nothing else."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def dtype_name(dtype: object) -> str:
    """``torch.float64`` as people say it.

    >>> dtype_name(torch.float64)
    'float64'
    """
    return str(dtype).removeprefix("torch.")
