"""For the site: examples in docstrings become code blocks; as plain text they would be quotes."""

from __future__ import annotations

import doctest
from typing import Any

from griffe import Extension, Object


def fenced(text: str) -> str:
    """A docstring with a fence around each run of examples and what they print."""
    found = []
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, doctest.Example):
            first, *rest = part.source.rstrip("\n").split("\n")
            lines = [f">>> {first}", *(f"... {line}" for line in rest)]
            found.append("\n".join(lines) + "\n" + part.want)
        elif part.strip() or not found:
            found.append(part)
    return _joined(found)


def _joined(parts: list[str]) -> str:
    """Neighbouring examples share a fence."""
    out, inside = "", False
    for part in parts:
        example = part.startswith(">>>")
        if example != inside:
            out += "\n```pycon\n" if example else "```\n\n"
        out, inside = out + part, example
    return out + ("```\n" if inside else "")


class DoctestBlocks(Extension):
    """Rewrites docstrings as they are read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Fence the examples of one object."""
        if obj.docstring and ">>>" in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
