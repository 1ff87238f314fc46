"""What every verb shares: where it prints, how JSON and errors look, progress when it is slow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

#: Seconds of work before a progress bar, or a line, appears.
PATIENCE = 2.0


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


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time left, for work that takes longer than two seconds.

    The function received tells how many of ``total`` steps are newly done. The bar goes to
    the error stream, so that it never mixes with a result, and is gone when the work is. Where
    that is no terminal, one line says what is being done.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    out = Console(stderr=True)
    bar = Progress(
        *columns,
        Elapsed(),
        Remaining(),
        console=out,
        transient=True,
        disable=not out.is_terminal,
    )
    task = bar.add_task(description, total=total)
    # A timer and not a check between steps: one step alone may be the slow one.
    timer = Timer(PATIENCE, bar.start if out.is_terminal else _say_still(description))
    timer.start()
    try:
        yield lambda done: bar.advance(task, done)
    finally:
        timer.cancel()
        timer.join()
        # Stopping a bar that never started would print an empty line.
        if bar.live.is_started:
            bar.stop()


def _say_still(doing: str) -> Callable[[], None]:
    return lambda: complain(f"still {doing}")
