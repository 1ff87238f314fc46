"""Where a function of one number crosses zero."""

from __future__ import annotations

from collections.abc import Callable


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """The zero between ``low`` and ``high``, where the function has opposite signs.

    >>> round(crossing(lambda x: x**2 - 2, 0.0, 2.0), 9)
    1.414213562
    """
    from scipy import optimize  # a fifth of a second, needed by the inverse bounds alone

    found = optimize.root_scalar(function, bracket=(low, high), method="brentq", xtol=1e-15)
    return float(found.root)
