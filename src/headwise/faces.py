"""Name parameters in sentences: as in Python, as options of the command, as fields of the page.

Sentences of the library put a parameter between backticks: "pass `any_shape=True`". Python shows
them so. The command shows the option that the user would type: "pass --any-shape". The page shows
the field that the user would change: "set “Any shape”".
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["Face", "spoken"]

#: Who reads a sentence: someone who calls functions, types commands, or looks at the page.
Face = Literal["python", "command", "page"]

_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")

#: Parameters that the command spells in another way.
_OTHERWISE = {"source": "SOURCE", "exhibits": "EXHIBIT", "model": "MODEL"} | {
    "as_json": "--json",
    "list_exhibits": "headwise reproduce --list",
}

#: Fields of the page that are not called as the parameter is.
_FIELDS = {"length": "Tokens", "params": "Parameters", "kv_bytes": "KV cache", "need": "Decided by"}
_THINGS = {"source": "file", "config": "config.json", "model": "model"}

#: On the page values are set and files are dropped; nothing is passed.
_PASSING = re.compile(r"\b([Pp])ass (?:(?:a )?(`source`|data\b)|(?=`))")


def spoken(sentence: str, face: Face) -> str:
    """Return the sentence with parameters as this reader spells them.

    Args:
        sentence: A sentence with parameters between backticks.
        face: Who reads it.

    Example:
        >>> spoken("pass `any_shape=True` or `need='mixing'` with a `source`", "command")
        'pass --any-shape or --need mixing with a SOURCE'
        >>> spoken("Pass `any_shape=True` or `need='mixing'` with a `source`", "page")
        'Set “Any shape” or “Decided by: mixing” with a file'
    """
    if face == "page":
        sentence = _PASSING.sub(_doing, sentence)
        return _PARAMETER.sub(_field, sentence)
    return sentence if face == "python" else _PARAMETER.sub(_option, sentence)


def _option(found: re.Match[str]) -> str:
    name, value = found.groups()
    option = _OTHERWISE.get(name, "--" + name.replace("_", "-"))
    return option if value in (None, "True") else f"{option} {_bare(value)}"


def _doing(found: re.Match[str]) -> str:
    words = "drop a file" if found[2] else "set "
    return words.capitalize() if found[1] == "P" else words


def _field(found: re.Match[str]) -> str:
    name, value = found.groups()
    if name in _THINGS:
        return _THINGS[name]
    field = _FIELDS.get(name, name.replace("_", " ").capitalize())
    return f"“{field}”" if value in (None, "True") else f"“{field}: {_bare(value)}”"


def _bare(value: str) -> str:
    """A value without the quotes that Python puts around it."""
    return value.strip("'\"")
