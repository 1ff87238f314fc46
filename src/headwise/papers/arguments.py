"""Check what ``reproduce`` is asked; a wrong parameter is refused before anything is computed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.checks import of_type, one_of, positive, whole
from headwise.errors import ParameterError
from headwise.whole_files import possible_folder

#: What ``only`` takes.
_FIELDS = "a field and its value such as layers=3"


def named(exhibits: str | Sequence[str]) -> list[str]:
    """Return the names of exhibits as a list."""
    of_type("`exhibits`", exhibits, (str, Sequence), "names of exhibits")
    names = [exhibits] if isinstance(exhibits, str) else list(exhibits)
    if not names:
        raise ParameterError("expected at least one exhibit, got none", hint="pass a name or 'all'")
    return [of_type("`exhibits`", name, str, "names of exhibits") for name in names]


def refuse_wrong_arguments(asked: Mapping[str, Any]) -> None:
    """Refuse parameters of ``reproduce`` of a wrong kind, which would fail only after computing."""
    for name in ("from_records", "take_records", "retry"):
        one_of(f"`{name}`", asked[name], (True, False))
    if asked["from_records"] and asked["take_records"]:
        raise ParameterError(
            "expected `from_records` or `take_records`, got both", hint="leave one out"
        )
    for name in ("store", "out"):
        of_type(f"`{name}`", asked[name], (str, os.PathLike, type(None)), "a path")
    if asked["workers"] is not None:
        whole("`workers`", asked["workers"])
    if asked["seconds"] is not None:
        positive("`seconds`", asked["seconds"], example=3600)
    if asked["out"] is not None:
        possible_folder(Path(asked["out"]))


def values_of_fields(only: Mapping[str, str] | Sequence[str] | str | None) -> dict[str, str]:
    """Return the value of each field, also from texts such as "layers=3"."""
    if only is None:
        return {}
    if isinstance(only, Mapping):
        return {str(field): str(value) for field, value in only.items()}
    pairs = [only] if isinstance(only, str) else of_type("`only`", only, Sequence, _FIELDS)
    for pair in pairs:
        if not isinstance(pair, str) or not re.fullmatch("[^=]+=.*", pair):
            raise ParameterError(f"expected {_FIELDS} for `only`, got {pair!r}", hint="pass that")
    return dict(pair.split("=", 1) for pair in pairs)
