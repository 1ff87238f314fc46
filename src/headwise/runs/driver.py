"""Run a plan: give specs to an executor, store what comes back, report progress."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace

from headwise.errors import StoppedError, StoreAwayError
from headwise.progress import SILENT, Progress, tracked
from headwise.runs.executors.protocol import Executor
from headwise.runs.outcome import Answer, Outcome
from headwise.runs.plan import Plan
from headwise.runs.spec import Spec
from headwise.runs.store import Store

#: Seconds to wait for a database that went away in the middle of a run.
DATABASE_PATIENCE = 60.0

#: Characters of a reason that was printed before.
REASON_LENGTH = 80


@dataclass(frozen=True)
class Tally:
    """The number of specs of a run that were answered and that failed.

    Args:
        answered: Specs with an answer.
        failed: Specs that failed.

    Example:
        >>> print(Tally(answered=12, failed=1))
        12 answered, 1 failed
    """

    answered: int
    failed: int

    def __str__(self) -> str:
        return f"{self.answered} answered, {self.failed} failed"


def run(
    plan: Plan,
    executor: Executor,
    store: Store,
    *,
    progress: Progress = SILENT,
    command: str = "",
) -> Tally:
    """Compute the work of a plan and store each outcome as it arrives.

    Args:
        plan: The specs, sorted by what the store holds; ``plan.work`` is computed.
        executor: Where to compute. It is closed at the end.
        store: Where outcomes go.
        progress: Receives news of the run.
        command: The command to record with the rows.

    Returns:
        How many specs were answered and how many failed.

    Raises:
        StoppedError: If Ctrl-C ended the run. Finished answers are stored; make the same plan
            again to compute the rest.

    Example:
        >>> import os, tempfile
        >>> from headwise.runs.examples import Square
        >>> from headwise.runs.executors import LocalExecutor
        >>> with Store.open(os.path.join(tempfile.mkdtemp(), "results.db")) as store:
        ...     plan = store.plan([Square(number=number) for number in range(3)])
        ...     print(run(plan, LocalExecutor(workers=1), store))
        ...     len(store.plan(plan.work).work)
        3 answered, 0 failed
        0
    """
    specs = {spec.key: spec for spec in plan.work}
    answered, reasons = 0, Counter[str]()
    if plan.work and plan.answered:
        progress.log(f"{len(plan.answered)} stored already, {len(plan.work)} to run")
    try:
        with tracked(progress, "running", len(plan.work)), closing(executor):
            for outcome in executor.outcomes(plan.work, lambda spec: progress.show(spec.label)):
                outcome = _signed(outcome, command)
                spec = specs[outcome.key]
                _put(store, spec, outcome, progress)
                if isinstance(outcome, Answer):
                    answered += 1
                else:
                    _log_failure(reasons, spec, outcome.reason, progress)
                progress.advance()
    except KeyboardInterrupt:
        left = len(plan.work) - answered - reasons.total()
        raise StoppedError(
            f"stopped with {left} of {len(plan.work)} left; the others are in {store.place}",
            hint="run the same command again to go on",
        ) from None
    _log_repeated(reasons, progress)
    return Tally(answered, reasons.total())


def _log_failure(reasons: Counter[str], spec: Spec, reason: str, progress: Progress) -> None:
    """Log a reason once: a damaged file fails every spec that reads it."""
    reasons[reason] += 1
    if reasons[reason] == 1:
        progress.log(f"failed: {spec.label}: {reason}")


def _log_repeated(reasons: Counter[str], progress: Progress) -> None:
    """Log how many more specs failed for the same reason."""
    for reason, count in reasons.items():
        if count > 1:
            progress.log(f"{count - 1} more failed for the same reason: {_short(reason)}")


def _short(reason: str) -> str:
    """The beginning of a reason that was printed before."""
    return reason if len(reason) <= REASON_LENGTH else reason[:REASON_LENGTH].rstrip() + " …"


def _put(store: Store, spec: Spec, outcome: Outcome, progress: Progress) -> None:
    """Store an outcome; if the database does not answer, wait for it up to a minute."""
    deadline, told = time.monotonic() + DATABASE_PATIENCE, False
    while True:
        try:
            store.put(spec, outcome)
        except StoreAwayError:
            if time.monotonic() > deadline:
                raise
            if not told:
                wait = f"waiting up to {DATABASE_PATIENCE:.0f} s for it"
                progress.log(f"the database does not answer; {wait}")
                told = True
            time.sleep(1)
        else:
            return


def _signed(outcome: Outcome, command: str) -> Outcome:
    """Add the command to an outcome; workers do not know it."""
    return replace(outcome, provenance=replace(outcome.provenance, command=command))
