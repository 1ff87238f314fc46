"""Refuse fields of a config on which transformers would fail in other words, or never end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headwise.errors import BadInputError

#: transformers makes a module, or an entry of a list, for each of what these fields count. No
#: model has more of them; a file of fifty bytes could ask for all time and memory.
MOST = {
    re.compile(r"(labels|experts)$"): 100_000,
    re.compile(r"(layers?|depths?|blocks|block_sizes|stages)$"): 2_000,
}

#: How deep sub-configs are looked into.
DEEPEST = 4


def refuse_implausible(fields: Mapping[str, Any], where: str) -> None:
    """Refuse names that are no text, and counts that no model has.

    Args:
        fields: The fields of a config.
        where: The config, for the error.

    Raises:
        BadInputError: A field cannot be meant.

    >>> refuse_implausible({"model_type": "bert", "num_hidden_layers": 12}, "config")
    """
    for part in _parts(fields, DEEPEST):
        if not isinstance(part.get("model_type", ""), str | None):
            raise BadInputError(
                f"{where}: expected a name for model_type, got {part['model_type']!r}",
                hint='write for example "model_type": "llama"',
            )
        for name, value in part.items():
            _refuse_count(name, value, where)


def _parts(fields: Mapping[Any, Any], depth: int) -> Iterator[Mapping[Any, Any]]:
    yield fields
    for value in fields.values():
        if isinstance(value, Mapping) and depth:
            yield from _parts(value, depth - 1)


def _refuse_count(name: Any, value: Any, where: str) -> None:
    most = next((most for ending, most in MOST.items() if ending.search(str(name))), None)
    if most is None:
        return
    for each in value if isinstance(value, list) else (value,):
        if isinstance(each, int) and each > most:
            got = f"{each:,}" if each < 10**15 else "a larger number"
            raise BadInputError(
                f"{where}: expected at most {most:,} for {name}, got {got}",
                hint="correct the config",
            )
