"""Name masks the same way in functions, configs and commands.

A mask has a text name: ``"none"``, ``"causal"``, ``"window:128"``, or several joined by ``+``
(``"causal+window:128"``). ``headwise.attention.as_mask`` makes the mask. The predictions in
``headwise.theory`` cover the two masks of ``MaskName``. This module imports nothing heavy.
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Literal, cast, get_args

from headwise.checks import one_of

__all__ = ["MASK_NAME", "MaskName", "names_mask_file"]

# Nine digits: distances are 64-bit integers, and longer numbers would overflow in their sums.
_PART = r"(none|causal(:[0-9]{1,9})?|window:[1-9][0-9]{0,8})"

#: What the name of a mask looks like.
MASK_NAME = re.compile(rf"{_PART}(\+{_PART})*")

#: The masks that have a law: every token attends to all, or to itself and those before it.
MaskName = Literal["none", "causal"]


def names_mask_file(mask: str | PathLike[str]) -> bool:
    """Return whether this is meant as a file with a mask, whether or not it is there.

    Args:
        mask: The name of a mask, or a path.

    Returns:
        True for a path, for an existing file, and for a text with a dot or a slash.

    Example:
        >>> [names_mask_file(mask) for mask in ("causal", "casual", "mask.npy")]
        [False, False, True]
    """
    if isinstance(mask, PathLike) or any(mark in mask for mark in "./\\"):
        return True
    try:
        return Path(mask).exists()
    except OSError:  # longer than a name may be
        return False


def checked_mask(mask: str) -> MaskName:
    """Return ``mask`` if it is one of the masks that ``headwise.theory`` predicts for."""
    return one_of("`mask`", cast("MaskName", mask), get_args(MaskName))
