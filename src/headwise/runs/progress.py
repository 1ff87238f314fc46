"""Watcher: whoever wants to know how far a run is. Nothing here draws."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from headwise.runs.outcome import Outcome
from headwise.runs.plan import Plan
from headwise.runs.spec import Spec


@runtime_checkable
class Watcher(Protocol):
    """What a run tells while it goes on, from the driver's own thread.

    >>> def watched(watcher: Watcher) -> None:
    ...     watcher.began(Plan((), (), (), ()))
    >>> watched(Silent())
    """

    def began(self, plan: Plan) -> None:
        """The run starts: so much is stored, so much is left."""

    def started(self, spec: Spec) -> None:
        """A worker has been given this spec."""

    def finished(self, spec: Spec, outcome: Outcome) -> None:
        """An outcome is in the store."""

    def ended(self) -> None:
        """The run is over, whether done, stopped or failed."""


class Silent:
    """A watcher that says nothing.

    >>> Silent().ended()
    """

    def began(self, plan: Plan) -> None:
        """Say nothing."""

    def started(self, spec: Spec) -> None:
        """Say nothing."""

    def finished(self, spec: Spec, outcome: Outcome) -> None:
        """Say nothing."""

    def ended(self) -> None:
        """Say nothing."""
