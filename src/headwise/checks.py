"""Check parameters: each function returns the value, or says what was expected.

Every refusal is a ParameterError of the form "expected X, got Y; do Z".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeVar

from headwise.errors import ParameterError

__all__ = ["one_of", "positive", "share", "whole"]

Choice = TypeVar("Choice")


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return ``value`` as an int if it is a whole number in a range.

    Args:
        name: The parameter, for the error.
        value: A whole number; a float such as 1e6 is fine if it is whole.
        least: The smallest value allowed.
        most: The largest value allowed, if there is one.

    Returns:
        The value as an int.

    Raises:
        ParameterError: If it is not a whole number or not in the range.

    Example:
        >>> whole("length", 1e3)
        1000
        >>> whole("heads", 0)
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected heads of at least 1, got 0; pass 1 or more
    """
    if not _is_number(value) or not math.isfinite(value) or value != int(value):
        raise ParameterError(
            f"expected a whole number for {name}, got {value!r}", hint=f"pass {least} or more"
        )
    if most is not None and not least <= value <= most:
        raise ParameterError(
            f"expected {name} from {least:,} to {most:,}, got {int(value):,}",
            hint="pass a value in that range",
        )
    if value < least:
        raise ParameterError(
            f"expected {name} of at least {least:,}, got {int(value):,}",
            hint=f"pass {least:,} or more",
        )
    return int(value)


def positive(name: str, value: Any, example: float = 1.0) -> float:
    """Return ``value`` as a float if it is finite and above zero.

    Args:
        name: The parameter, for the error.
        value: A number.
        example: A value that would work, for the error.

    Returns:
        The value as a float.

    Raises:
        ParameterError: If it is not a positive number.

    Example:
        >>> positive("temperature", 8)
        8.0
        >>> positive("temperature", -1)
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected a positive temperature, got -1; ...
    """
    if not _is_number(value) or not (math.isfinite(value) and value > 0):
        raise ParameterError(
            f"expected a positive {name}, got {value!r}", hint=f"pass {example!r} for example"
        )
    return float(value)


def share(name: str, value: Any) -> float:
    """Return ``value`` as a float if it lies strictly between 0 and 1.

    Args:
        name: The parameter, for the error.
        value: A number.

    Returns:
        The value as a float.

    Raises:
        ParameterError: If it is not between 0 and 1.

    Example:
        >>> share("collapse", 0.5)
        0.5
    """
    if not _is_number(value) or not 0 < value < 1:
        raise ParameterError(
            f"expected {name} between 0 and 1, got {value!r}", hint="pass 0.9 for example"
        )
    return float(value)


def one_of(name: str, value: Choice, choices: Iterable[Choice]) -> Choice:
    """Return ``value`` if it is one of the choices.

    Args:
        name: The parameter, for the error.
        value: The value received.
        choices: The values allowed.

    Returns:
        The value.

    Raises:
        ParameterError: If it is not among the choices.

    Example:
        >>> one_of("mask", "casual", ["none", "causal"])
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected mask 'none' or 'causal', got 'casual'; ...
    """
    allowed = list(choices)
    if value not in allowed:
        *others, last = map(repr, allowed)
        listed = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(f"expected {name} {listed}, got {value!r}", hint="pass one of them")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
