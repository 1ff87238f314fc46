"""Show progress on the error stream: a bar in a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Timer
from typing import TYPE_CHECKING

from headwise.cli.console import complain
from headwise.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

#: Seconds of work before a bar, or a line, appears.
PATIENCE = 2.0

#: Seconds between two lines in a log.
INTERVAL = 10.0


def progress_bar() -> Progress:
    """Return a bar if the error stream is a terminal, else lines for a log."""
    from rich.console import Console

    out = Console(stderr=True, highlight=False)
    return Bar(out) if out.is_terminal else Lines(complain)


@dataclass
class _Task:
    """One task that has started: its name, its steps, what it works on."""

    name: str
    total: int
    done: int = 0
    item: str = ""
    start: float = field(default_factory=time.monotonic)

    def summary(self) -> str:
        seconds = time.monotonic() - self.start
        parts = [f"{self.name}: {self.done}/{self.total} done"]
        if 0 < self.done < self.total:
            parts.append(f"{_clock(seconds * (self.total / self.done - 1))} left")
        return ", ".join([*parts, self.item] if self.item else parts)


class Lines:
    """Write a line after two seconds, then every ten, then one at the end.

    A task that ends within two seconds writes nothing.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._tasks: list[_Task] = []
        self._timer: Timer | None = None
        self._last = time.monotonic()

    def start(self, task: str, total: int) -> None:
        """Start a task; a line appears if it takes longer than two seconds."""
        self._tasks.append(_Task(task, total))
        if self._timer is None:
            self._timer = _after_patience(self._report)

    def show(self, item: str) -> None:
        """Name what is worked on in the next line."""
        self._tasks[-1].item = item

    def advance(self, steps: int = 1) -> None:
        """Count steps, and write a line if the last one is ten seconds old."""
        self._tasks[-1].done += steps
        if time.monotonic() - self._last >= INTERVAL:
            self._report()

    def log(self, line: str) -> None:
        """Write the line now."""
        self._write(line)

    def stop(self) -> None:
        """End the innermost task."""
        if len(self._tasks) > 1:
            self._tasks.pop()
            return
        _cancel(self._timer)  # before the last task goes: the timer reads it
        self._timer, task = None, self._tasks.pop()
        seconds = time.monotonic() - task.start
        if seconds >= PATIENCE and 0 < task.done >= task.total:
            self._write(f"{task.name}: {task.done}/{task.total} done in {_clock(seconds)}")

    def _report(self) -> None:
        self._last = time.monotonic()
        self._write(self._tasks[-1].summary())


class Bar:
    """Draw a bar with the steps done, the time left and the current item.

    The bar appears after two seconds and leaves nothing behind.
    """

    def __init__(self, out: Console) -> None:
        self._bar = _rich_bar(out)
        self._ids: list = []
        self._timer: Timer | None = None

    def start(self, task: str, total: int) -> None:
        """Start a task; the bar appears if it takes longer than two seconds."""
        self._ids.append(self._bar.add_task(task, total=total, item=""))
        if self._timer is None:
            self._timer = _after_patience(self._bar.start)

    def show(self, item: str) -> None:
        """Show the current item beside the bar."""
        self._bar.update(self._ids[-1], item=item)

    def advance(self, steps: int = 1) -> None:
        """Move the bar."""
        self._bar.advance(self._ids[-1], steps)

    def log(self, line: str) -> None:
        """Write a line above the bar."""
        self._bar.console.print(line, markup=False)

    def stop(self) -> None:
        """Remove the innermost task, and the bar with the last one."""
        self._bar.remove_task(self._ids.pop())
        if self._ids:
            return
        _cancel(self._timer)
        self._timer = None
        # Stopping a bar that never started would print an empty line.
        if self._bar.live.is_started:
            self._bar.stop()


def _after_patience(act: Callable[[], None]) -> Timer:
    """Start a timer: a check between steps is not enough where one step is the slow one."""
    timer = Timer(PATIENCE, act)
    timer.daemon = True
    timer.start()
    return timer


def _cancel(timer: Timer | None) -> None:
    if timer is not None:
        timer.cancel()
        timer.join()


def _rich_bar(out: Console) -> RichProgress:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as RichProgress
    from rich.table import Column

    # The current item takes what is left of the line and is cut where the terminal ends.
    rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    return RichProgress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[item]}", markup=False, table_column=rest),
        console=out,
        transient=True,
        expand=True,
    )


def _clock(seconds: float) -> str:
    """Write seconds for people.

    >>> _clock(7.4), _clock(125.0), _clock(7300.0)
    ('7 s', '2 min 05 s', '2 h 01 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
