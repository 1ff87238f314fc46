"""ClusterExecutor: Dask workers, started here or already running elsewhere.

Dask moves specs to workers and notices deaths. This module decides what to do about a death, as
the local executor does, because Dask blames every spec that was on the dead worker.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from headwise.devices import cluster_address
from headwise.errors import ExecutorError, MissingExtraError, needs_extra
from headwise.runs.attempt import attempt, traceback_text, unasked
from headwise.runs.executors.interrupts import interrupts_later
from headwise.runs.executors.protocol import processors
from headwise.runs.executors.turns import Turns
from headwise.runs.executors.worker import limit_torch
from headwise.runs.outcome import Outcome
from headwise.runs.spec import Spec

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

#: Seconds to wait for a scheduler to answer, and for a cluster without workers to get one.
PATIENCE = 10.0

#: Seconds that the workers of a local cluster may take to end.
CLOSING = 3.0

#: Seconds between two checks of the cluster while nothing arrives.
LOOK = 1.0

#: How often a local cluster may fail to start before the run gives up.
FALSE_STARTS = 3

LOOPBACK = "127.0.0.1"


class ClusterExecutor:
    """Compute on the workers of a Dask cluster.

    Args:
        address: "local", "local:4", or the address of a scheduler such as "tcp://host:8786"
            or, encrypted, "tls://host:8786".
        device: Where workers compute: "cpu" or "cuda".
        host: The interface that a local cluster listens on.
        dashboard: The address of the dashboard, such as "127.0.0.1:8787"; None for no dashboard.
        scratch: The folder for checkpoints. Only a local cluster uses it.

    Raises:
        ParameterError: If the address is none of these.

    Example:
        >>> ClusterExecutor("local:2").close()
    """

    def __init__(
        self,
        address: str = "local",
        *,
        device: str = "cpu",
        host: str = LOOPBACK,
        dashboard: str | None = None,
        scratch: Path | None = None,
    ) -> None:
        self._address, self._device = cluster_address(address), device
        # Workers elsewhere may not share our disk, so a long spec starts again there.
        self._scratch = scratch if address.startswith("local") else None
        self._host, self._dashboard = host, dashboard
        self._client: Client | None = None
        self._cluster: LocalCluster | None = None

    def outcomes(self, specs: Sequence[Spec], started: Callable[[Spec], None]) -> Iterator[Outcome]:
        """Yield one outcome per spec, as they arrive."""
        if not specs:
            return
        turns = Turns(specs)
        asking = _Asking(self._connected(), self._address, self._device, self._scratch)
        while turns.left:
            for spec in turns.next_specs(asking.capacity()):
                asking.submit(spec)
                started(spec)
            for spec, found in asking.done():
                outcome = self._judged(turns, spec, found)
                if outcome is not None:
                    yield outcome

    def close(self) -> None:
        """Kill local workers, or disconnect from a cluster that runs elsewhere."""
        if self._cluster is not None:
            self._cluster.sync(_end_workers, self._cluster)
        if self._client is not None:
            self._client.close(timeout=1)
        if self._cluster is not None:
            # A starting worker may take longer; it ends with this process at the latest.
            with suppress(TimeoutError, AssertionError):
                self._cluster.close(timeout=1)
        self._client = self._cluster = None

    def _judged(self, turns: Turns, spec: Spec, found: Outcome | Exception) -> Outcome | None:
        """Return the outcome, or None if a worker died and the spec must be asked again."""
        from distributed.scheduler import KilledWorker

        if isinstance(found, KilledWorker):
            deaths = turns.mourn(spec, found.allowed_failures + 1)
            if deaths is None:
                return None
            return unasked(spec, self._device, f"the worker died {deaths} times")
        turns.finish(spec)
        if isinstance(found, Exception):
            return unasked(spec, self._device, traceback_text(found))
        return found

    def _connected(self) -> Client:
        if find_spec("distributed") is None:
            raise needs_extra("dask[distributed]", "cluster")
        if self._client is None:
            address: Any = self._address
            if address.startswith("local"):
                # Importing Dask takes seconds and Ctrl-C may stop it, so import it before Ctrl-C
                # is held back.
                import distributed  # noqa: F401

                # A half-started cluster could not be closed; its workers inherit this.
                with interrupts_later():
                    self._cluster = _started_cluster(address, self._host, self._dashboard)
                address = self._cluster
            self._client = _client(address)
        return self._client


class _Asking:
    """The cluster, and the specs that were submitted to it."""

    def __init__(self, client: Client, address: str, device: str, scratch: Path | None) -> None:
        self._client, self._address = client, address
        self._device, self._scratch = device, scratch
        self._specs: dict[str, Spec] = {}
        self._arrived: SimpleQueue[Future] = SimpleQueue()
        self._submitted = 0
        self._threads, self._looked, self._seen = 0, 0.0, time.monotonic()

    def submit(self, spec: Spec) -> None:
        # Dask remembers the result of a name, so use a new one each time.
        name = f"headwise-{spec.key}-{self._submitted}"
        self._submitted += 1
        place = (self._device, self._scratch)
        future = self._client.submit(ask_there, spec, *place, key=name, pure=False)
        self._specs[name] = spec
        future.add_done_callback(self._arrived.put)

    def done(self) -> list[tuple[Spec, Outcome | Exception]]:
        """Return what has arrived; empty if nothing arrives within LOOK seconds."""
        try:
            future = self._arrived.get(timeout=LOOK)
        except Empty:
            self._looked = 0.0
            return []
        try:
            found = future.result()
        except Exception as error:
            found = error
            self._looked = 0.0
        return [(self._specs.pop(str(future.key)), self._not_lost(found))]

    def capacity(self) -> int:
        """Return how many specs the cluster can compute at once: one per thread."""
        now = time.monotonic()
        if now - self._looked > LOOK:
            self._threads, self._looked = self._count_threads(), now
            self._seen = now if self._threads else self._seen
        if now - self._seen > PATIENCE:
            raise self._gone("has no worker left")
        return self._threads

    def _count_threads(self) -> int:
        if self._client.status != "running":
            return 0
        try:
            threads: Any = self._client.nthreads()
            return sum(threads.values())
        except (OSError, TimeoutError):
            return 0

    def _not_lost(self, found: Outcome | Exception) -> Outcome | Exception:
        """Raise if the cluster went away, which is not a failure of the spec."""
        from concurrent.futures import CancelledError

        from distributed.client import FutureCancelledError

        if isinstance(found, FutureCancelledError | CancelledError | OSError):
            raise self._gone("went away")
        return found

    def _gone(self, how: str) -> ExecutorError:
        return ExecutorError(
            f"the cluster at {self._address} {how}",
            hint="what it had answered is stored: start it again, and run the same command",
        )


def ask_there(spec: Spec, device: str, scratch: Path | None = None) -> Outcome:
    """Ask a spec inside a Dask worker."""
    limit_torch()
    return attempt(spec, device, scratch)


def _started_cluster(address: str, host: str, dashboard: str | None) -> LocalCluster:
    """Return a local cluster; start again if its workers are killed meanwhile.

    Raises:
        ExecutorError: If it does not start.
    """
    for _ in range(FALSE_STARTS):
        # Dask closes what it had started before it raises.
        with suppress(RuntimeError, OSError, TimeoutError):
            return _local_cluster(address, host, dashboard)
    raise ExecutorError(
        f"the workers of the local cluster ended {FALSE_STARTS} times while they started",
        hint="free some memory or use fewer workers; run the same again to continue",
    )


def _local_cluster(address: str, host: str, dashboard: str | None) -> LocalCluster:
    import logging

    from dask import config
    from distributed import LocalCluster

    # This module reports dead workers; Dask would print each one too.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    if dashboard and find_spec("bokeh") is None:
        raise MissingExtraError(
            "the dashboard needs the package bokeh", hint="install it with: pip install bokeh"
        )
    _, _, workers = address.partition(":")
    settings = {
        # Report the first death of a worker: this module decides what to do.
        "distributed.scheduler.allowed-failures": 0,
        # The server of the dashboard starts in any case; without a dashboard it serves nothing.
        **({} if dashboard else {"distributed.scheduler.http.routes": []}),
        "distributed.worker.http.routes": [],
    }
    with config.set(settings):
        return LocalCluster(
            n_workers=int(workers or processors()),
            threads_per_worker=1,
            host=host,
            dashboard_address=dashboard or f"{LOOPBACK}:0",
            scheduler_kwargs={"dashboard": dashboard is not None},
            worker_dashboard_address=None,
            memory_limit=0,
            preload=["headwise.runs.executors.worker"],
            silence_logs=logging.CRITICAL,
        )


def _client(address: LocalCluster | str) -> Client:
    from distributed import Client

    if isinstance(address, str) and address.startswith("tls://"):
        _refuse_without_certificates()
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError):
        raise ExecutorError(
            f"no cluster answers at {address}",
            hint="check that the scheduler runs and that the address is right",
        ) from None


def _refuse_without_certificates() -> None:
    """Dask takes the certificates of a tls:// address from its own configuration."""
    from dask import config

    needed = ("ca-file", "client.cert", "client.key")
    missing = [name for name in needed if not config.get(f"distributed.comm.tls.{name}", None)]
    if missing:
        names = [f"DASK_DISTRIBUTED__COMM__TLS__{_variable(name)}" for name in missing]
        raise ExecutorError(
            "expected certificates for a tls:// cluster, got none",
            hint=f"set the paths of PEM files in {', '.join(names)}",
        )


def _variable(name: str) -> str:
    return name.upper().replace("-", "_").replace(".", "__")


async def _end_workers(cluster: LocalCluster) -> None:
    """Kill the workers: Dask would let each one finish its spec first."""
    nannies = list(cluster.workers.values())
    if nannies:
        await asyncio.wait([asyncio.ensure_future(_end(one)) for one in nannies], timeout=CLOSING)


async def _end(nanny: Any) -> None:
    from distributed.core import Status

    starting = nanny.process is not None and nanny.process.status == Status.starting
    # Dask waits for a starting worker, for ever if it was killed before it started.
    if nanny.pid and not starting:
        os.kill(nanny.pid, signal.SIGKILL)
    # No pause in between: a nanny that is closing does not restart its worker.
    await nanny.close(timeout=1)
