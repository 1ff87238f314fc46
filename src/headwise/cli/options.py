"""Types of options that several commands share."""

from __future__ import annotations

import math

import typer

_SUFFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}


def number(text: str | int | float) -> float:
    """Read a number that may end in k, M, G or T.

    >>> number("1.5M"), number("2e3"), number(7)
    (1500000.0, 2000.0, 7.0)
    """
    if not isinstance(text, str):
        return float(text)
    factor = _SUFFIXES.get(text[-1:].lower(), 1.0)
    digits = text[:-1] if factor > 1 else text
    try:
        found = float(digits) * factor
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise typer.BadParameter(f"expected a number such as 4096, 20k or 1.5M, got {text!r}")
    return found


def whole(text: str | int | float) -> int:
    """Read a whole number that may end in k, M, G or T.

    >>> whole("20k"), whole("1.5M"), whole("1e6")
    (20000, 1500000, 1000000)
    """
    found = number(text)
    nearest = round(found) if math.isfinite(found) else 0
    if not math.isclose(found, nearest, rel_tol=1e-12, abs_tol=0):
        raise typer.BadParameter(f"expected a whole number such as 4096 or 20k, got {text!r}")
    return nearest
