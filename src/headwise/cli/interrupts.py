"""Remember that Ctrl-C came, for libraries that lose it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noted_interrupts() -> Iterator[Callable[[], bool]]:
    """Tell whether Ctrl-C came inside the block; it still raises KeyboardInterrupt.

    A library that is being imported may swallow the interrupt and fail later for another reason:
    torch imports numpy this way, and half of numpy then ends in a RecursionError.

    Yields:
        A function that returns whether Ctrl-C came.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    # An ignored SIGINT stays ignored, and only the main thread may set a handler.
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(came)
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
