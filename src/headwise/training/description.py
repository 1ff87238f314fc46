"""Describe a value in one line that is the same in every process."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: A longer description is cut, and ends in a checksum of the whole.
LONGEST = 160


def described(value: object) -> str:
    """Return a line that describes a value; different values have different lines.

    Tensors are described by shape and checksum, on any device.

    Example:
        >>> from headwise.data import FarthestNeighbour
        >>> described(FarthestNeighbour(4, 3))
        'FarthestNeighbour(width=4, tokens=3, points=Uniform())'
        >>> described(torch.ones(2, 3))
        'float32[2, 3]:f4691328'
    """
    bare = type(value).__repr__ is object.__repr__ and hasattr(value, "__dict__")
    whole = _parts(value, vars(value)) if bare else _told(value)
    if len(whole) <= LONGEST and whole.isprintable():
        return whole
    start = "".join(letter for letter in whole[: LONGEST // 2] if letter.isprintable())
    return f"{start}…:{_checksum(whole.encode())}"


def _told(value: object) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return _numbers(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _parts(value, {part.name: getattr(value, part.name) for part in fields(value)})
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_told, value))})"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_told, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_told(key)}: {_told(own)}' for key, own in value.items())}}}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _parts(value: object, parts: Mapping[str, Any]) -> str:
    told = (f"{name}={_told(own)}" for name, own in parts.items())
    return f"{type(value).__name__}({', '.join(told)})"


def _numbers(array: Tensor | np.ndarray) -> str:
    kind, shape = str(array.dtype).removeprefix("torch."), list(array.shape)
    if isinstance(array, Tensor):
        array = array.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    return f"{kind}{shape}:{_checksum(np.ascontiguousarray(array).data)}"


def _checksum(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
