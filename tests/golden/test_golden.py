"""Today's answers have the numbers that were kept, whatever words stand around them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest

from golden.commands import ANSWERS, all_answers

#: Parts of an answer whose numbers may not change; ``*`` is any place of a list.
KEPT: dict[str, list[str]] = {
    "rank": [
        "rank",
        "tolerance",
        "stable_rank",
        "effective_rank",
        "energy_rank_90",
        "energy_rank_99",
    ],
    "law": [""],
    "bound": [""],
    "advise": [
        *("length", "context", "width", "seed", "tokens", "curves"),
        *("rank/rank", "rank/mixing", "rank/retrieval", "rank/paper"),
        *("choices/*/geometry", "choices/*/costs", "references/*/geometry", "references/*/costs"),
    ],
    "reproduce": [
        "exhibits/*/cells/*/printed",
        "exhibits/*/cells/*/measured",
        "exhibits/*/cells/*/stderr",
    ],
}

#: A number computed on another processor differs by rounding.
RELATIVE = 1e-9


def numbers(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of an answer, with the path to it."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, (int, float)):
        yield path, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from numbers(part, f"{path}/{name}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from numbers(part, f"{path}/{place}")


def parts(value: object, path: str) -> Iterator[object]:
    """Return the value at a path of an answer."""
    if not path:
        yield value
        return
    first, _, rest = path.partition("/")
    if first == "*":
        for part in value:
            yield from parts(part, rest)
    else:
        yield from parts(value[first], rest)


def differences(kept: object, found: object) -> list[str]:
    """Numbers of the kept answer that the new one lacks or has otherwise."""
    new = dict(numbers(found))
    return [
        f"{path}: kept {old}, found {new.get(path)}"
        for path, old in numbers(kept)
        if path not in new or not math.isclose(old, new[path], rel_tol=RELATIVE, abs_tol=1e-15)
    ]


@pytest.mark.parametrize("name", list(all_answers()))
def test_the_numbers_are_those_that_were_kept(name):
    kept = json.loads((ANSWERS / f"{name}.json").read_text())
    found = all_answers()[name]()
    for path in KEPT[name.partition("_")[0]]:
        assert not differences(list(parts(kept, path)), list(parts(found, path))), path


def test_a_changed_number_is_noticed():
    assert differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.001]})
    assert differences({"a": 1}, {})
    assert not differences({"a": 1.0}, {"a": 1.0, "b": 3})
