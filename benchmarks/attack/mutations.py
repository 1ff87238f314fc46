"""Damage bytes, as a broken disk, a cut transfer or a hostile author does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

#: Numbers that readers trip over: borders of integer types, huge sizes, and none at all.
EDGES = (0, 1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)

#: JSON values of every kind, put where others are expected.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**64, 10**400, 0.5, -0.0, 1e308, 1e400),
    *("", "x", "\x00", "[/bold]", "\ud800", "9" * 400, "../../etc/passwd", "é" * 50),
    *([], [[]], {}, {"": None}, [None] * 3, {"__class__": "os.system"}, [[[[[[[[1]]]]]]]]),
)


def damaged(rng: np.random.Generator, content: bytes, other: bytes) -> bytes:
    """One to four kinds of damage; ``other`` is a second valid file to splice in."""
    found = content
    for _ in range(int(rng.integers(1, 5))):
        found = _choice(rng, BYTES)(rng, found, other)
    return found


def _flip(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 9)) if found else 0):
        found[_place(rng, found)] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _overwrite(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    found = bytearray(content)
    start = _place(rng, found)
    size = int(rng.integers(1, 17))
    found[start : start + size] = rng.bytes(size)
    return bytes(found)


def _edge(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    """Write a border number, as a size or an offset may be written."""
    found = bytearray(content)
    width = int(rng.choice([1, 2, 4, 8]))
    order = "little" if rng.random() < 0.7 else "big"
    number = EDGES[int(rng.integers(len(EDGES)))] % 2 ** (8 * width)
    start = _place(rng, found)
    found[start : start + width] = number.to_bytes(width, order)
    return bytes(found)


def _cut(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    return content[: int(rng.integers(len(content) + 1))]


def _drop(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    start = _place(rng, content)
    return content[:start] + content[start + int(rng.integers(1, 65)) :]


def _insert(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    start = _place(rng, content)
    return content[:start] + rng.bytes(int(rng.integers(1, 65))) + content[start:]


def _repeat(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    start = _place(rng, content)
    again = content[start : start + 64] * int(rng.integers(2, 20))
    return content[:start] + again + content[start:]


def _splice(rng: np.random.Generator, content: bytes, other: bytes) -> bytes:
    return content[: _place(rng, content)] + other[_place(rng, other) :]


def _digits(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    """Lengthen a number that is written in digits, as in headers and JSON."""
    places = [i for i, byte in enumerate(content[:4096]) if 48 <= byte <= 57]
    if not places:
        return content
    place = places[int(rng.integers(len(places)))]
    written = rng.choice([b"-1", b"0", b"99999999999", b"1e9", b"3.5", b"NaN"])
    return content[:place] + bytes(written) + content[place + 1 :]


Damage = Callable[[np.random.Generator, bytes, bytes], bytes]
BYTES: tuple[Damage, ...] = (
    *(_flip, _overwrite, _edge, _cut, _drop, _insert, _repeat, _splice, _digits),
)


def damaged_json(rng: np.random.Generator, content: bytes, _: bytes) -> bytes:
    """Valid JSON with values of other kinds, fewer keys and strange ones."""
    tree = json.loads(content)
    for _ in range(int(rng.integers(1, 5))):
        tree = _changed(rng, tree)
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def _changed(rng: np.random.Generator, tree: Any) -> Any:
    if rng.random() < 0.25 or not isinstance(tree, dict | list) or not tree:
        return VALUES[int(rng.integers(len(VALUES)))]
    places = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    place = places[int(rng.integers(len(places)))]
    copy = tree.copy()
    what = rng.random()
    if what < 0.15:
        del copy[place]
    elif what < 0.25 and isinstance(copy, dict):
        copy[str(VALUES[int(rng.integers(len(VALUES)))])] = copy[place]
    else:
        copy[place] = _changed(rng, copy[place])
    return copy


def _place(rng: np.random.Generator, content: bytes | bytearray) -> int:
    """A place in a file, often near its start, where headers are."""
    if not content:
        return 0
    near = min(len(content), 256) if rng.random() < 0.5 else len(content)
    return int(rng.integers(near))


def _choice(rng: np.random.Generator, options: tuple[Damage, ...]) -> Damage:
    return options[int(rng.integers(len(options)))]
