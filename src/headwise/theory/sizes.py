"""Whole numbers, fractions and errors as people write them: checked once, with a remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from headwise.errors import ParameterError

#: One whole number; a float is welcome if it is whole (1e6).
Whole = int | float | np.integer


@runtime_checkable
class ArrayLike(Protocol):
    """Anything that numpy takes for an array, such as a tensor."""

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray:
        """The numbers as a numpy array."""
        ...


#: One whole number or many.
Wholes = int | float | np.integer | ArrayLike | Sequence[int] | Sequence[float]

#: A real number.
Real = int | float | np.floating


def whole(name: str, value: Whole, least: int = 1) -> int:
    """``value`` as an int that is at least ``least``, or a clear refusal."""
    if not math.isfinite(value) or value != int(value):
        raise ParameterError(
            f"expected a whole number for {name}, got {value!r}",
            hint=f"pass {least + 7} for example",
        )
    if value < least:
        raise ParameterError(
            f"expected {name} of at least {least}, got {int(value)}", hint=f"pass {least} or more"
        )
    return int(value)


def wholes(name: str, values: Wholes, least: int, most: int) -> np.ndarray:
    """``values`` as a float64 array of whole numbers from ``least`` to ``most``.

    >>> wholes("the length", [2, 5], 2, 10**12)
    array([2., 5.])
    """
    found = np.asarray(values, dtype=np.float64)
    wrong = ~(np.isfinite(found) & (found == np.round(found)))
    if wrong.any():
        raise ParameterError(
            f"expected a whole number for {name}, got {float(found[wrong][0])!r}",
            hint=f"pass {least + 7} for example",
        )
    outside = (found < least) | (found > most)
    if outside.any():
        raise ParameterError(
            f"expected {name} from {least} to {most:.0e}, got {found[outside][0]:.0f}",
            hint="pass a value in that range",
        )
    return found


def fraction(name: str, value: Real) -> float:
    """``value`` strictly between 0 and 1, or a clear refusal."""
    if not 0 < value < 1:
        raise ParameterError(
            f"expected {name} between 0 and 1, got {value!r}",
            hint="pass 0.9 for example",
        )
    return float(value)


def positive(name: str, value: Real) -> float:
    """``value`` finite and above zero, or a clear refusal."""
    if not (math.isfinite(value) and value > 0):
        raise ParameterError(
            f"expected {name} above zero, got {value!r}", hint="pass a positive number"
        )
    return float(value)
