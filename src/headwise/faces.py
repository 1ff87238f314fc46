"""Name parameters in sentences: as Python spells them, or as options of the command.

Sentences of the library put a parameter between backticks: "pass `any_shape=True`". Python shows
them so. The command shows the option that the user would type: "pass --any-shape".
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["Face", "spoken"]

#: Who reads a sentence: someone who calls functions, or someone who types commands.
Face = Literal["python", "command"]

_PARAMETER = re.compile(r"`([a-z_]+)(?:=([^`]*))?`")

#: Parameters that the command spells in another way.
_OTHERWISE = {"source": "SOURCE", "exhibits": "EXHIBIT", "model": "MODEL", "inputs": "DATA"} | {
    "head_dims": "--head-dim",
    "as_json": "--json",
    "list_exhibits": "headwise reproduce --list",
}


def spoken(sentence: str, face: Face) -> str:
    """Return the sentence with parameters as this reader spells them.

    Args:
        sentence: A sentence with parameters between backticks.
        face: Who reads it.

    Returns:
        The sentence.

    Example:
        >>> spoken("pass `any_shape=True` or `need='mixing'` with a `source`", "command")
        'pass --any-shape or --need mixing with a SOURCE'
    """
    return sentence if face == "python" else _PARAMETER.sub(_option, sentence)


def _option(found: re.Match[str]) -> str:
    name, value = found.groups()
    option = _OTHERWISE.get(name, "--" + name.replace("_", "-"))
    return option if value in (None, "True") else f"{option} {value.strip(chr(39) + chr(34))}"
