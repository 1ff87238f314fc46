"""Check parameters: each function returns the value, or says what was expected.

Every refusal has the form "expected X, got Y; do Z". It is a ParameterError, unless it depends on
the data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from numbers import Real
from typing import Any, TypeVar

from headwise.errors import BadInputError, ParameterError

__all__ = [
    "dividing_patch",
    "fraction",
    "of_type",
    "one_of",
    "positive",
    "quantity",
    "spelled_number",
    "whole",
]

#: Suffixes of numbers, as powers of ten; capitals are read alike.
POWERS = {"k": 3, "m": 6, "g": 9, "b": 9, "t": 12}

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
    if not _is_number(value) or not _is_whole(value):
        raise ParameterError(
            f"expected a whole number for {name}, got {value!r}", hint=f"pass {least} or more"
        )
    if most is not None and not least <= value <= most:
        raise ParameterError(
            f"expected {name} from {least:,} to {most:,}, got {_counted(int(value))}",
            hint="pass a value in that range",
        )
    if value < least:
        raise ParameterError(
            f"expected {name} of at least {least:,}, got {_counted(int(value))}",
            hint=f"pass {least:,} or more",
        )
    return int(value)


def spelled_number(text: str) -> int | float | None:
    """Return the number that a text holds, as people write numbers.

    Args:
        text: Digits such as 4096, 1e6, 1,000 or 1_000. They may end in k, M, G or B, or T.

    Returns:
        The number, or None if the text holds no finite one.

    Example:
        >>> [spelled_number(text) for text in ("20k", "1.5M", "1,000", "1,5")]
        [20000, 1500000.0, 1000, None]
    """
    digits = text.strip().lower()
    power = POWERS.get(digits[-1:], 0)
    digits = digits[:-1].rstrip() if power else digits
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", digits):
        digits = digits.replace(",", "")
    try:
        found = float(f"{digits}e{power}" if power else digits)
    except ValueError:
        return None
    if not math.isfinite(found):
        return None
    # A float has no more than 53 bits, which is too little for some seeds.
    return int(digits) * 10**power if re.fullmatch(r"[+-]?[\d_]+", digits) else found


def quantity(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return ``value`` as an int if it is, or as a text holds, a whole number in a range.

    Args:
        name: The parameter, for the error.
        value: A whole number, or a text such as "20k", "1.5M" or "1,000".
        least: The smallest value allowed.
        most: The largest value allowed, if there is one.

    Returns:
        The value as an int.

    Raises:
        ParameterError: If it is not a whole number or not in the range.

    Example:
        >>> quantity("length", "20k"), quantity("length", 1e3)
        (20000, 1000)
    """
    found = spelled_number(value) if isinstance(value, str) else None
    return whole(name, value if found is None else found, least, most)


def dividing_patch(patch: int, height: int, width: int) -> int:
    """Return ``patch`` if patches of that side tile images of this size.

    Args:
        patch: Side of a patch.
        height: Height of the images.
        width: Width of the images.

    Returns:
        The side.

    Raises:
        BadInputError: If the patches do not tile the images.

    Example:
        >>> dividing_patch(4, 32, 32)
        4
    """
    fits = [
        side for side in range(1, min(height, width) + 1) if not (height % side or width % side)
    ]
    if patch not in fits:
        raise BadInputError(
            f"expected a patch that divides images of {height} × {width}, got {patch}",
            hint=f"choose a patch from {', '.join(map(str, fits))}",
        )
    return patch


def positive(name: str, value: Any, example: float | int = 1.0) -> float:
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
    if not _is_number(value) or not 0 < _float(value) < math.inf:
        long = isinstance(value, int) and abs(value) > 10**40
        shown = _counted(value) if long else repr(value)
        raise ParameterError(
            f"expected a positive {name}, got {shown}", hint=f"pass {example!r} for example"
        )
    return float(value)


def fraction(name: str, value: Any, example: float = 0.9) -> float:
    """Return ``value`` as a float if it lies strictly between 0 and 1.

    Args:
        name: The parameter, for the error.
        value: A number.
        example: A value that would work, for the error.

    Returns:
        The value as a float.

    Raises:
        ParameterError: If it is not between 0 and 1.

    Example:
        >>> fraction("collapse", 0.5)
        0.5
    """
    if not _is_number(value) or not 0 < value < 1:
        raise ParameterError(
            f"expected {name} between 0 and 1, got {value!r}", hint=f"pass {example!r} for example"
        )
    return float(value)


def of_type(name: str, value: Any, kinds: Any, wanted: str) -> Any:
    """Return ``value`` if it is an instance of one of the types.

    Args:
        name: The parameter, for the error.
        value: The value received.
        kinds: The types allowed, as ``isinstance`` takes them.
        wanted: What is expected, in words.

    Returns:
        The value.

    Raises:
        ParameterError: If it is of another type.

    Example:
        >>> of_type("folder", 5, str, "a path")
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected a path for folder, got 5; pass a path
    """
    if not isinstance(value, kinds):
        raise ParameterError(f"expected {wanted} for {name}, got {value!r}", hint=f"pass {wanted}")
    return value


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


def _float(value: Any) -> float:
    """A number as a float; one above every float as infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _is_whole(value: Any) -> bool:
    # An int may be too large for a float, which isfinite would need.
    return isinstance(value, int) or (math.isfinite(value) and bool(value == int(value)))


def _counted(value: int) -> str:
    """A number with commas; one of very many digits in short."""
    return f"{value:,}" if abs(value) < 10**40 else f"about 10^{math.log10(abs(value)):.0f}"
