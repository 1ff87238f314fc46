"""How a run looks while it goes on: a bar in a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Timer
from typing import TYPE_CHECKING

from headwise.cli.console import PATIENCE
from headwise.runs.outcome import Failure, Outcome
from headwise.runs.plan import Plan
from headwise.runs.progress import Watcher
from headwise.runs.spec import Spec

if TYPE_CHECKING:
    from rich.progress import Progress

#: Seconds between two lines in a log.
INTERVAL = 10.0


def run_watcher() -> Watcher:
    """A bar where the error stream is a terminal, lines where it is not.

    >>> type(run_watcher()).__name__
    'Lines'
    """
    return Bar() if sys.stderr.isatty() else Lines(_on_the_error_stream)


def _on_the_error_stream(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Lines:
    """A line every ten seconds, and one at the end of anything that took two.

    >>> from headwise.runs.examples import Square
    >>> one, two = Square(number=1), Square(number=2)
    >>> Lines(print).began(Plan.of([one, two], answered=[one.key]))
    1 answered before, 1 to do
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._total = self._done = self._failed = 0
        self._start = self._told = time.monotonic()
        self._at = ""

    def began(self, plan: Plan) -> None:
        """Count from here."""
        self._total = len(plan.work)
        self._start = self._told = time.monotonic()
        if self._total and plan.answered:
            self._say(f"{len(plan.answered)} answered before, {self._total} to do")

    def started(self, spec: Spec) -> None:
        """Remember what is being asked."""
        self._at = spec.label

    def finished(self, spec: Spec, outcome: Outcome) -> None:
        """Count, tell of a failure at once, and of progress now and then."""
        self._done += 1
        if isinstance(outcome, Failure):
            self._failed += 1
            self._say(f"failed: {spec.label}: {outcome.reason}")
        if time.monotonic() - self._told >= INTERVAL:
            self._told = time.monotonic()
            self._say(f"{self._progress()}, at {self._at}")

    def ended(self) -> None:
        """Tell how it went, unless it was over at once."""
        if self._done and time.monotonic() - self._start >= PATIENCE:
            self._say(self._progress())

    def _progress(self) -> str:
        seconds = time.monotonic() - self._start
        rate = self._done / max(seconds, 1e-9)
        parts = [f"{self._done}/{self._total} done"]
        parts += [f"{self._failed} failed"] if self._failed else []
        parts += [f"{rate:.3g} per second"]
        left = (self._total - self._done) / rate if rate else None
        parts += [f"{_clock(left)} left"] if left else [f"{_clock(seconds)} in all"]
        return ", ".join(parts)


class Bar:
    """Done of total, rate, time left and the spec at hand, for runs of more than two seconds.

    >>> Bar().ended()
    """

    def __init__(self) -> None:
        self._bar = _rich_bar()
        self._task = self._bar.add_task("", total=None, failed="", rate="")
        # A timer and not a check between specs: one spec alone may be the slow one.
        self._timer = Timer(PATIENCE, self._bar.start)
        self._timer.daemon = True
        self._done = self._failed = 0
        self._start = time.monotonic()

    def began(self, plan: Plan) -> None:
        """Count from here."""
        self._start = time.monotonic()
        self._bar.reset(self._task, total=len(plan.work), description="starting")
        self._timer.start()

    def started(self, spec: Spec) -> None:
        """Show what is being asked."""
        self._bar.update(self._task, description=spec.label)

    def finished(self, spec: Spec, outcome: Outcome) -> None:
        """Move on."""
        if isinstance(outcome, Failure):
            self._failed += 1
            self._bar.console.print(f"failed: {spec.label}: {outcome.reason}", markup=False)
            self._bar.update(self._task, failed=f"{self._failed} failed")
        self._done += 1
        rate = self._done / max(time.monotonic() - self._start, 1e-9)
        self._bar.update(self._task, advance=1, rate=f"{rate:.3g}/s")

    def ended(self) -> None:
        """Leave the terminal as it was."""
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()
        # Stopping a bar that never started would print an empty line.
        if self._bar.live.is_started:
            self._bar.stop()


def _rich_bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    return Progress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}", style="red"),
        # What is left of the line: the spec, cut where the terminal ends.
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        console=Console(stderr=True, highlight=False),
        transient=True,
        expand=True,
    )


def _clock(seconds: float) -> str:
    """Seconds as people say them.

    >>> _clock(7.4), _clock(125.0), _clock(7300.0)
    ('7 s', '2 min 05 s', '2 h 01 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
