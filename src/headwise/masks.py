"""The names of masks: one vocabulary for functions, configs and commands.

A mask is named by a text: ``"none"``, ``"causal"``, ``"window:128"``, or several joined by ``+``
(``"causal+window:128"``). ``headwise.attention.as_mask`` turns such a text into a mask. The laws in
``headwise.theory`` know the two masks of ``MaskName``. This module imports nothing heavy.
"""

from __future__ import annotations

from typing import Literal, get_args

from headwise.errors import ParameterError

#: The masks that have a law: every token attends to all, or to itself and those before it.
MaskName = Literal["none", "causal"]


def checked_mask(mask: str) -> MaskName:
    """Return ``mask`` if it names a mask that has a law.

    >>> checked_mask("causal")
    'causal'
    """
    for known in get_args(MaskName):
        if mask == known:
            return known
    raise ParameterError(f"expected mask 'none' or 'causal', got {mask!r}", hint="pass one of them")
