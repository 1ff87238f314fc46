"""Threads for work on small tensors: one inside an operation, several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


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


def side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Apply a function to each item, on as many threads as torch may use, one torch thread each.

    Torch operations release the interpreter's lock, so this keeps all cores busy with operations
    that are too small to share. An exception ends the work that has not started.

    Args:
        function: What to apply; it must not depend on the order of the calls.
        items: What to apply it to.

    Yields:
        The results, in the order of the items.

    >>> list(side_by_side(abs, [-1, 2]))
    [1, 2]
    """
    threads = torch.get_num_threads()
    with one_thread():
        if threads == 1:
            yield from map(function, items)
            return
        pool = ThreadPoolExecutor(threads)
        try:
            yield from pool.map(function, items)
        finally:
            pool.shutdown(cancel_futures=True)
