"""Check what goes together in a call of ``rank``. The command does so before it imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwise.errors import ParameterError

__all__ = ["refuse_mixtures"]


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
        raise ParameterError(
            "expected a `source`, or `queries` and `keys`, got neither",
            hint="pass one or the other",
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
