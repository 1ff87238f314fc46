"""Keep Ctrl-C from workers: a terminal sends it to every process, but only the driver reacts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Delay Ctrl-C until the block ends; processes and threads started in it never receive it.

    They inherit the signal mask, so Ctrl-C is blocked from their first instruction on.

    Yields:
        Nothing.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The tracker lifts the mask when it starts its process, so it must be running already.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
