"""Heavy work, one piece at a time: a queue, its progress, and a way to cancel."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Literal

from headwise.errors import BadInputError, HeadwiseError, StoppedError
from headwise.faces import spoken
from headwise.progress import NoProgress, Progress

State = Literal["waiting", "running", "done", "failed", "cancelled"]

#: Finished jobs that are remembered.
KEPT = 64

#: Jobs that may wait. More come from a program, not from a person.
MOST_WAITING = 16

#: Seconds between two looks at a job for its events.
LOOK = 0.2

Work = Callable[[Progress], Any]


@dataclass
class Job:
    """A piece of work and how far it is."""

    name: str
    work: Work
    key: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: State = "waiting"
    task: str = ""
    done: int = 0
    total: int = 0
    started: float | None = None
    result: Any = None
    error: str = ""
    cancelled: bool = False

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state not in ("waiting", "running")

    def as_json(self, ahead: int = 0) -> dict[str, Any]:
        """The state for the page; ``ahead`` is how many jobs come first."""
        return {
            "key": self.key,
            "name": self.name,
            "state": self.state,
            "stopping": self.cancelled and not self.over,
            "task": self.task,
            "done": self.done,
            "total": self.total,
            "seconds_left": self._seconds_left(),
            "ahead": ahead,
            "error": self.error,
        }

    def _seconds_left(self) -> float | None:
        if self.started is None or not self.done or not self.total or self.state != "running":
            return None
        passed = time.monotonic() - self.started
        return round(passed * (self.total - self.done) / self.done, 1)


class _Reported(NoProgress):
    """Writes progress into a job, and ends the work when the job is cancelled."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def start(self, task: str, total: int) -> None:
        self._job.task, self._job.done, self._job.total = task, 0, total
        self._job.started = time.monotonic()
        self._stop_if_cancelled()

    def show(self, item: str) -> None:
        self._stop_if_cancelled()

    def advance(self, steps: int = 1) -> None:
        self._job.done += steps
        self._stop_if_cancelled()

    def _stop_if_cancelled(self) -> None:
        if self._job.cancelled:
            raise StoppedError("the work was cancelled", hint="start it again")


class Jobs:
    """Run queued jobs in one background thread, the first one first.

    Example:
        >>> jobs = Jobs()
        >>> job = jobs.add("answer", lambda progress: 42)
        >>> async def last():
        ...     return [state async for state in jobs.events(job.key)][-1]
        >>> asyncio.run(last())["result"]
        42
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[Job] = SimpleQueue()
        self._known: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="headwise jobs", daemon=True).start()

    def add(self, name: str, work: Work) -> Job:
        """Queue a piece of work; raise BadInputError if too many wait already."""
        job = Job(name, work)
        with self._lock:
            if sum(not other.over for other in self._known.values()) > MOST_WAITING:
                raise BadInputError(
                    f"{MOST_WAITING} pieces of work are waiting already",
                    hint="wait until one is done, or cancel some",
                )
            self._known[job.key] = job
            finished = [k for k, j in self._known.items() if j.over]
            for key in finished[: max(0, len(self._known) - KEPT)]:
                del self._known[key]
        self._queue.put(job)
        return job

    def get(self, key: str) -> Job | None:
        """Return a job, or None if there is none with this key."""
        return self._known.get(key)

    def all(self) -> list[dict[str, Any]]:
        """Return every job that is remembered, the latest first."""
        with self._lock:
            jobs = list(self._known.values())
        return [job.as_json(self._ahead(job)) for job in reversed(jobs)]

    def cancel(self, key: str) -> bool:
        """Cancel a job; False if it is not there or over."""
        job = self.get(key)
        if job is None or job.over:
            return False
        job.cancelled = True
        if job.state == "waiting":
            job.state = "cancelled"
        return True

    async def events(self, key: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the state of a job whenever it changes, until it is over; the last has the result.

        A listener costs no thread, so however many there are, requests are still answered.
        """
        job, last = self.get(key), None
        while job is not None:
            over = job.over  # before the rest is read, so that the last state is whole
            now = job.as_json(self._ahead(job))
            if over:
                yield now | {"result": job.result if job.state == "done" else None}
                return
            if now != last:
                yield now
                last = now
            await asyncio.sleep(LOOK)

    def _ahead(self, job: Job) -> int:
        if job.state != "waiting":
            return 0
        with self._lock:
            before = list(self._known.values())
        before = before[: before.index(job)] if job in before else []
        return sum(not other.over for other in before)

    def _run(self) -> None:
        while True:
            job = self._queue.get()
            if not job.cancelled:
                self._do(job)
            job.work = _nothing  # lets go of what was uploaded

    def _do(self, job: Job) -> None:
        job.state, job.started = "running", time.monotonic()
        try:
            job.result = job.work(_Reported(job))
            job.state = "done"
        except HeadwiseError as error:
            job.error = spoken(str(error), "page")
            job.state = "cancelled" if job.cancelled else "failed"
        except Exception as error:  # the page must not lose its only worker
            job.error = f"{type(error).__name__}: {error}"
            job.state = "failed"


def _nothing(progress: Progress) -> None:
    """Stand in for work that is over."""


def as_event(state: dict[str, Any]) -> str:
    """A state as a server-sent event."""
    return f"data: {json.dumps(state)}\n\n"
