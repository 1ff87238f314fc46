"""Check the parameters of ``rank``. The command does so before it imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwise.checks import fraction, positive, spelled_number
from headwise.errors import ParameterError

__all__ = ["refuse_mixtures", "tolerance_parts"]


def tolerance_parts(text: str) -> tuple[str, float | None]:
    """Return the kind of a tolerance and its number.

    Args:
        text: A number such as "1e-8" or "absolute:1e-8", "relative:1e-6" or "dtype".

    Returns:
        The kind, "absolute", "relative" or "dtype", and the number that the first two have.

    Raises:
        ParameterError: If the text names no tolerance, or its number is out of range.

    Example:
        >>> tolerance_parts("relative:1e-6"), tolerance_parts("1e-8"), tolerance_parts("dtype")
        (('relative', 1e-06), ('absolute', 1e-08), ('dtype', None))
    """
    if text == "dtype":
        return text, None
    kind, _, digits = text.rpartition(":")
    number = spelled_number(digits)
    if number is None or kind not in ("", "absolute", "relative"):
        raise ParameterError(
            f"expected `tolerance` 1e-8, relative:1e-6 or dtype, got {text!r}",
            hint="pass one of these",
        )
    if kind == "relative":
        return kind, fraction("a relative tolerance", number, example=1e-6)
    return "absolute", positive("absolute tolerance", number, example=1e-8)


def refuse_mixtures(given: Mapping[str, Any]) -> None:
    """Refuse parameters of ``rank`` that do not go together.

    Args:
        given: The parameters by name. Those that are missing, None, False or "none" were not given.

    Raises:
        ParameterError: If there is neither a source nor a pair of queries and keys, or something
            that only the other one uses.

    Example:
        >>> refuse_mixtures({"source": "a.npy", "temperature": 2.0})
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: `temperature` does not go with a `source`; ...
    """
    present = {name for name, value in given.items() if _is_given(value)}
    if "source" in present:
        _refuse_beside_source(present)
    elif not {"queries", "keys"} <= present:
        got = [f"`{name}` alone" for name in ("queries", "keys") if name in present] or ["neither"]
        raise ParameterError(
            f"expected a `source`, or `queries` and `keys`, got {got[0]}",
            hint="pass both" if present & {"queries", "keys"} else "pass one or the other",
        )
    elif "logits" in present:
        raise ParameterError(
            "`logits` goes with a `source`, not with `queries` and `keys`", hint="leave it out"
        )
    elif "name" in present:
        raise ParameterError(
            "`name` goes with a `source`", hint="pass `queries_name` or `keys_name` instead"
        )


def _is_given(value: Any) -> bool:
    return (
        value is not None
        and value is not False
        and not (isinstance(value, str) and value == "none")
    )


def _refuse_beside_source(present: set[str]) -> None:
    for name in ("queries", "queries_name", "keys", "keys_name"):
        if name in present:
            raise ParameterError(
                f"`{name}` does not go with a `source`",
                hint="pass the `source` alone, or `queries` and `keys`",
            )
    if "temperature" in present:
        raise ParameterError(
            "`temperature` does not go with a `source`",
            hint="leave it out: logits are divided already, and a matrix is measured as it is",
        )
    if "mask" in present and "logits" not in present:
        raise ParameterError(
            "`mask` does not go with a matrix, which is measured as it is",
            hint="if it holds logits, pass `logits=True` too",
        )
