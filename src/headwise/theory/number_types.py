"""Types of numbers in signatures, the range of sizes, and a check of arrays of them."""

from __future__ import annotations

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

#: The longest sequence and the largest head dimension that the law takes.
MAX_LENGTH, MAX_HEAD_DIM = 10**12, 10**5

#: A real number.
Real = int | float | np.floating


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


def cells(length: Wholes, head_dim: Wholes, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths from ``least`` on and head dimensions, in range and of one shape."""
    n = wholes("`length`", length, least, MAX_LENGTH)
    d = wholes("`head_dim`", head_dim, 1, MAX_HEAD_DIM)
    n, d = np.broadcast_arrays(n, d)
    return n, d
