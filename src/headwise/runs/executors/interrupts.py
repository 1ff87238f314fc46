"""Ctrl-C belongs to the driver alone, though a terminal sends it to every process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Hold Ctrl-C back until the block ends; processes and threads it starts never get any.

    A signal mask is inherited, so what is started here is deaf to Ctrl-C from its first
    instruction on, before it could ask for that itself.

    >>> with interrupts_later():
    ...     signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    True
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # It lifts the mask when it starts its own process, so that must have happened.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
