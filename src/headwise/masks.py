"""Name masks the same way in functions, configs and commands.

A mask has a text name: ``"none"``, ``"causal"``, ``"window:128"``, or several joined by ``+``
(``"causal+window:128"``). ``headwise.attention.as_mask`` makes the mask. The predictions in
``headwise.theory`` cover the two masks of ``MaskName``. This module imports nothing heavy.
"""

from __future__ import annotations

from typing import Literal, get_args

from headwise.errors import ParameterError

__all__ = ["MaskName"]

#: The masks that have a law: every token attends to all, or to itself and those before it.
MaskName = Literal["none", "causal"]


def checked_mask(mask: str) -> MaskName:
    """Return ``mask`` if it is one of the masks that ``headwise.theory`` predicts for."""
    for known in get_args(MaskName):
        if mask == known:
            return known
    raise ParameterError(
        f"expected `mask` 'none' or 'causal', got {mask!r}", hint="pass one of them"
    )
