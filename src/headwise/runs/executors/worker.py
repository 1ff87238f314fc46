"""The loop of a local worker: receive a spec, ask it, send the outcome back."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path

from headwise.runs.attempt import attempt, traceback_text

#: The first message of a worker: it has started and can take work.
READY = b"ready"

#: Environment variables that the libraries behind torch read when they load.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def serve(connection: Connection, device: str, scratch: Path | None = None) -> None:
    """Answer specs until the driver closes the connection."""
    become_worker()
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    # Without its driver a worker has nobody to tell.
    with suppress(EOFError, OSError):
        connection.send_bytes(READY)
        while True:
            message = connection.recv_bytes()
            connection.send_bytes(_answer(message, device, scratch))


def become_worker() -> None:
    """Use one torch thread, ignore Ctrl-C, and send what specs print to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(ONE_THREAD)
    os.dup2(2, 1)
    limit_torch()


def limit_torch() -> None:
    """Limit torch to one thread if it is loaded; later it reads the environment."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def _answer(message: bytes, device: str, scratch: Path | None) -> bytes:
    """Return the outcome, or the traceback if the spec could not be loaded."""
    try:
        spec = pickle.loads(message)
        limit_torch()
    except Exception as error:
        return pickle.dumps(traceback_text(error))
    return pickle.dumps(attempt(spec, device, scratch))


def _end_with_the_driver() -> None:
    """End this worker if its driver was killed."""
    driver = parent_process()
    if driver is not None:
        wait([driver.sentinel])
        os._exit(1)


def dask_setup(worker: object) -> None:
    """Prepare a Dask worker that was started here, before its first spec."""
    become_worker()
