"""How long work tells whoever waits: the share of the whole that is newly done."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float], None]


def silent(share: float) -> None:
    """No one is watching.

    >>> silent(0.5)
    """
