"""Run small torch operations on one thread: starting a second one costs more than it saves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread inside the block, then restore the former number.

    On a busy machine, an operation on a few thousand numbers would otherwise wait milliseconds
    for a second thread: forty times the cost of one L(n, d_h).

    Yields:
        Nothing.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
