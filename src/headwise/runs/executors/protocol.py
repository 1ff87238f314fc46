"""Executor: takes specs and yields their outcomes in any order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from headwise.runs.outcome import Outcome
from headwise.runs.spec import Spec

#: A spec fails if its worker died this often, the last time while computing only this spec.
DEATHS = 3


def processors() -> int:
    """Return how many processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@runtime_checkable
class Executor(Protocol):
    """Compute specs: exactly one outcome for every spec, even if workers die.

    Example:
        >>> from headwise.runs.executors import LocalExecutor
        >>> def ended(executor: Executor) -> None:
        ...     executor.close()
        >>> ended(LocalExecutor(workers=1))
    """

    def outcomes(self, specs: Sequence[Spec], started: Callable[[Spec], None]) -> Iterator[Outcome]:
        """Yield each outcome as it arrives; call ``started`` when a spec is handed out.

        It may be called again for the same spec while that is computed. If it raises, the run ends.
        """
        ...

    def close(self) -> None:
        """Kill every worker."""
