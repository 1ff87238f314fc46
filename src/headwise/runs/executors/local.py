"""LocalExecutor: processes on this machine, one spec each; a dead one is replaced.

The pool of the standard library breaks as a whole when one process dies. This one keeps a pipe to
every worker and knows what each is computing.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from headwise.checks import whole
from headwise.errors import ExecutorError
from headwise.runs.attempt import unasked
from headwise.runs.executors.interrupts import interrupts_later
from headwise.runs.executors.protocol import DEATHS, processors
from headwise.runs.executors.worker import ONE_THREAD, READY, serve
from headwise.runs.outcome import Outcome
from headwise.runs.spec import Spec

#: How many starting workers may be killed in a row before the run gives up.
FALSE_STARTS = 10

#: The exit code of a worker whose fork server was killed.
LOST = 255

#: Seconds before another start through a killed fork server; each pause is twice the one before,
#: up to the longest. The system takes a while to end a process that has loaded torch, and until
#: then every start fails.
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0

#: Seconds without news after which the caller hears again what is computed, and may stop it.
PULSE = 0.5


@dataclass(eq=False)
class _Worker:
    """A process, the pipe to it, and the spec that it computes."""

    process: BaseProcess
    connection: Connection
    spec: Spec | None = None
    ready: bool = False

    def give(self, spec: Spec) -> None:
        self.spec = spec
        self.connection.send_bytes(pickle.dumps(spec))

    def take(self) -> Outcome | str:
        """Return what it sent; raise EOFError if it died."""
        return pickle.loads(self.connection.recv_bytes())

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class LocalExecutor:
    """A pool of processes on this machine, each with one torch thread.

    Args:
        workers: The number of processes; by default one per processor.
        device: Where workers compute, such as "cpu" or "cuda".
        scratch: The folder for checkpoints, from which a killed spec resumes.

    Raises:
        ParameterError: If the number of workers is less than one.

    Example:
        >>> from headwise.runs.examples import Square
        >>> executor = LocalExecutor(workers=1)
        >>> [outcome.rows for outcome in executor.outcomes([Square(number=3)], lambda spec: None)]
        [({'square': 9.0},)]
        >>> executor.close()
    """

    def __init__(
        self, workers: int | None = None, device: str = "cpu", scratch: Path | None = None
    ) -> None:
        self._size = processors() if workers is None else whole("`workers`", workers)
        self._device, self._scratch = device, scratch
        self._workers: list[_Worker] = []
        self._false_starts = 0  # deaths of starting workers since the last that was ready

    def outcomes(self, specs: Sequence[Spec], started: Callable[[Spec], None]) -> Iterator[Outcome]:
        """Yield one outcome per spec, as they arrive."""
        _refuse_inside_worker()
        waiting, deaths = deque(specs), Counter[str]()
        self._start(specs, min(self._size, len(specs)))
        while waiting or any(worker.spec for worker in self._workers):
            for worker in self._workers:
                if waiting and worker.ready and worker.spec is None:
                    self._hand_out(worker, waiting, started)
            stirring = self._stirring()
            if not stirring:
                self._tell_again(started)
            for worker in stirring:
                try:
                    outcome = self._heard(worker)
                except (EOFError, OSError):
                    outcome = self._buried(worker, waiting, deaths)
                if outcome is not None:
                    yield outcome

    def close(self) -> None:
        """Kill every worker."""
        while self._workers:
            self._workers.pop().end()

    def _tell_again(self, started: Callable[[Spec], None]) -> None:
        busy = [worker.spec for worker in self._workers if worker.spec is not None]
        if busy:
            started(busy[-1])

    def _start(self, specs: Sequence[Spec], workers: int) -> None:
        context = _context({type(spec).__module__ for spec in specs})
        while len(self._workers) < workers:
            self._add_worker(context)

    def _add_worker(self, context: ForkServerContext | SpawnContext) -> None:
        """Start a worker; start again if the process that forks workers is killed meanwhile."""
        while True:
            try:
                self._workers.append(_started(context, self._device, self._scratch))
            except (EOFError, ConnectionError):
                self._false_starts += 1
                _refuse_false_start(None, self._false_starts)
                time.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._false_starts))
            else:
                return

    def _hand_out(
        self, worker: _Worker, waiting: deque[Spec], started: Callable[[Spec], None]
    ) -> None:
        spec = waiting.popleft()
        try:
            worker.give(spec)
        except OSError:
            # It died while idle, so no spec is to blame. The next check finds it dead.
            worker.spec = None
            waiting.appendleft(spec)
        else:
            started(spec)

    def _stirring(self) -> list[_Worker]:
        """Return the workers that have sent something or have died, if any soon does."""
        heard: dict[Any, _Worker] = {worker.connection: worker for worker in self._workers}
        heard |= {worker.process.sentinel: worker for worker in self._workers}
        return list({id(heard[found]): heard[found] for found in wait(list(heard), PULSE)}.values())

    def _heard(self, worker: _Worker) -> Outcome | None:
        """Return the outcome that a worker sent, if any; raise EOFError if the worker has died."""
        if not worker.connection.poll():
            raise EOFError
        if not worker.ready:
            worker.ready = worker.connection.recv_bytes() == READY
            self._false_starts = 0
            return None
        found, spec = worker.take(), worker.spec
        worker.spec = None
        assert spec is not None
        return unasked(spec, self._device, found) if isinstance(found, str) else found

    def _buried(
        self, worker: _Worker, waiting: deque[Spec], deaths: Counter[str]
    ) -> Outcome | None:
        """Replace a dead worker; ask its spec again, or let it fail."""
        worker.end()
        self._workers.remove(worker)
        if not worker.ready:
            self._false_starts += 1
            _refuse_false_start(worker.process.exitcode, self._false_starts)
        self._add_worker(_context(set()))
        spec = worker.spec
        if spec is None:
            return None
        deaths[spec.key] += 1
        if deaths[spec.key] < DEATHS:
            waiting.appendleft(spec)
            return None
        return unasked(
            spec, self._device, f"the worker died {DEATHS} times ({_cause(worker.process)})"
        )


def _refuse_inside_worker() -> None:
    """Raise if this process may not start others.

    Raises:
        ExecutorError: If it is a worker itself.
    """
    if multiprocessing.current_process().daemon:
        raise ExecutorError(
            "a worker process (a daemon) cannot start workers of its own",
            hint="run specs from the main process, or from one with daemon=False",
        )


def _refuse_false_start(code: int | None, deaths: int) -> None:
    """Raise if starting another worker cannot help.

    A process that was killed has a negative exit code, or 255 if the process that forks workers
    was killed with it. Any other code comes from the program itself.

    Raises:
        ExecutorError: If workers die while they start.
    """
    if code is not None and 0 <= code < LOST:
        raise ExecutorError(
            f"a worker process ended with exit code {code} while it started",
            hint="see the lines above; a script that runs specs must do so under "
            'if __name__ == "__main__"',
        )
    if deaths >= FALSE_STARTS:
        raise ExecutorError(
            f"{deaths} worker processes in a row were killed while they started",
            hint="free some memory or use fewer workers; run the same again to continue",
        )


def _context(modules: set[str]) -> ForkServerContext | SpawnContext:
    """Return a context that forks workers from a clean process with the needed modules loaded.

    Forking the driver would copy its threads' locks. Starting each worker from scratch would import
    torch again after every death.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    if modules:
        context.set_forkserver_preload(["__main__", "headwise.runs.executors.worker", *modules])
    return context


def _started(
    context: ForkServerContext | SpawnContext, device: str, scratch: Path | None
) -> _Worker:
    ours: Any
    ours, theirs = Pipe()
    process = context.Process(target=serve, args=(theirs, device, scratch), daemon=True)
    # The process that forks workers must find the driver's own modules.
    wanted = {**ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        with _environment(wanted), interrupts_later():
            process.start()
    except (EOFError, OSError):
        ours.close()
        theirs.close()
        raise
    # Only the worker may hold this end, so that its death closes the stream.
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    """Set what the process that forks workers inherits."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cause(process: BaseProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        return f"the last time by {signal.Signals(-code).name}"
    return f"the last time with exit code {code}"
