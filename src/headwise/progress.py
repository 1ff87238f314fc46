"""Report the progress of long work: one protocol for the library and the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

__all__ = ["SILENT", "NoProgress", "Progress", "tracked"]


@runtime_checkable
class Progress(Protocol):
    """Receive news of long work.

    Functions that can take long accept a ``progress`` argument. Pass any object with these
    methods to show a bar, write a log or count steps. Calls come from the caller's own thread.
    A task may start inside another one; ``advance`` and ``stop`` then concern the inner task.

    Example:
        >>> class Steps(NoProgress):
        ...     done = 0
        ...
        ...     def advance(self, steps: int = 1) -> None:
        ...         self.done += steps
        >>> steps = Steps()
        >>> with tracked(steps, "squaring", total=3) as progress:
        ...     for number in range(3):
        ...         progress.advance()
        >>> steps.done
        3
    """

    def start(self, task: str, total: int) -> None:
        """Start a task of ``total`` steps; ``task`` names it, for example "measuring ranks"."""

    def show(self, item: str) -> None:
        """Show what the task is working on now."""

    def advance(self, steps: int = 1) -> None:
        """Add to the number of steps done."""

    def log(self, line: str) -> None:
        """Write one line, such as the reason of a failure."""

    def stop(self) -> None:
        """End the task, whether it is done, interrupted or failed."""


class NoProgress:
    """A Progress that shows nothing; derive from it to override only what you need.

    Example:
        >>> isinstance(NoProgress(), Progress)
        True
    """

    def start(self, task: str, total: int) -> None:
        """Do nothing."""

    def show(self, item: str) -> None:
        """Do nothing."""

    def advance(self, steps: int = 1) -> None:
        """Do nothing."""

    def log(self, line: str) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


#: The default of every ``progress`` argument.
SILENT = NoProgress()


@contextmanager
def tracked(progress: Progress, task: str, total: int) -> Iterator[Progress]:
    """Start a task and stop it at the end of the block, even if the block fails.

    Args:
        progress: Where to report.
        task: What is being done, for example "measuring ranks".
        total: The number of steps.

    Yields:
        ``progress`` itself.

    Example:
        >>> with tracked(SILENT, "counting", total=2) as progress:
        ...     progress.advance(2)
    """
    progress.start(task, total)
    try:
        yield progress
    finally:
        progress.stop()
