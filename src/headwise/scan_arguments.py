"""Read which layers and heads ``scan`` measures. The command does so before it imports torch."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import Any

from headwise.errors import ParameterError

__all__ = ["chosen_heads", "chosen_layers"]

#: No model has so many layers or heads.
MOST = 10_000


def chosen_layers(layers: Collection[int | str] | str | None) -> list[int | str] | None:
    """Return the layers that were asked for.

    Args:
        layers: Numbers or names of layers; or a text such as "0,5-7" or "encoder.layer.0".

    Returns:
        Numbers and names, or None for all layers.

    Raises:
        ParameterError: If the text holds no layers, or neither a text nor a list was passed.

    Example:
        >>> chosen_layers("0,5-7")
        [0, 5, 6, 7]
        >>> chosen_layers("encoder.layer.0, encoder.layer.1")
        ['encoder.layer.0', 'encoder.layer.1']
    """
    if isinstance(layers, str) and any(character.isalpha() for character in layers):
        return [name.strip() for name in layers.split(",")]
    return _places("layers", layers)


def chosen_heads(heads: Collection[int] | str | None) -> list[int] | None:
    """Return the heads that were asked for.

    Args:
        heads: Numbers of heads, or a text such as "0,2-4".

    Returns:
        Numbers, or None for all heads.

    Raises:
        ParameterError: If the text holds no heads, or neither a text nor a list was passed.

    Example:
        >>> chosen_heads("0,2-4")
        [0, 2, 3, 4]
        >>> chosen_heads("4-2")
        Traceback (most recent call last):
        ...
        headwise.errors.ParameterError: expected `heads` ranges from the smaller to the larger ...
    """
    return _places("heads", heads)


def _places(name: str, given: Any) -> list[Any] | None:
    if given is None:
        return None
    if isinstance(given, str):
        return [place for part in given.split(",") for place in _range(name, part.strip(), given)]
    if not isinstance(given, Collection):
        raise ParameterError(f"expected a list of {name}, got {given!r}", hint=f"pass [{given}]")
    return [_place(name, each) for each in given]


def _place(name: str, each: Any) -> Any:
    """Return a number, or the name of a layer."""
    if isinstance(each, Integral) and not isinstance(each, bool):
        return int(each)
    if isinstance(each, str) and name == "layers":
        return each
    wanted = "numbers or names" if name == "layers" else "numbers"
    raise ParameterError(f"expected `{name}` as {wanted}, got {each!r}", hint="pass [0, 1]")


def _range(name: str, part: str, given: str) -> range:
    """Return the numbers of a part such as 3 or 2-4."""
    first, dash, last = part.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise ParameterError(
            f"expected `{name}` numbers and ranges such as 0,2-4, got {given!r}",
            hint="pass 0,2-4 or a list",
        )
    start, end = int(first), int(last if dash else first)
    if not start <= end < MOST:
        raise ParameterError(
            f"expected `{name}` ranges from the smaller to the larger number, below {MOST:,}, got "
            f"{part!r}",
            hint="pass a range such as 2-4",
        )
    return range(start, end + 1)
