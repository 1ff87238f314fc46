"""Read specs from a file: a JSON list, or one object per line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from headwise.errors import BadInputError, UnreadableFileError
from headwise.runs.spec import Spec, parsed_spec


def read_specs(kinds: Any, path: str | os.PathLike[str]) -> list[Spec]:
    """Read the specs in a .json or .jsonl file.

    Args:
        kinds: A Spec class or a union of them.
        path: The file: a JSON list, or one object per line.

    Returns:
        The specs, in the order of the file.

    Raises:
        BadInputError: If a spec is not valid.
        UnreadableFileError: If the file cannot be read.

    Example:
        >>> import tempfile
        >>> from headwise.runs.examples import Square
        >>> path = Path(tempfile.mkdtemp()) / "specs.json"
        >>> right, wrong = '{"kind": "square", "number": 3}', '{"kind": "square", "nubmer": 4}'
        >>> _ = path.write_text(f"[{right}, {wrong}]")
        >>> read_specs(Square, path)
        Traceback (most recent call last):
        ...
        headwise.errors.BadInputError: spec 2 of ...specs.json: 'nubmer' is no field of square; ...
    """
    path = Path(path)
    specs = []
    for number, content in enumerate(_contents(path), 1):
        try:
            specs.append(parsed_spec(kinds, content))
        except BadInputError as error:
            raise BadInputError(
                f"spec {number} of {path}: {error.problem}", hint=error.hint
            ) from None
    return specs


def _contents(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        found = json.loads(text)
    except OSError as error:
        raise UnreadableFileError(
            f"{path} cannot be read ({error.strerror})", hint="check the path"
        ) from None
    except ValueError as error:
        raise UnreadableFileError(
            f"{path} is not JSON ({error})", hint="write a list of specs"
        ) from None
    return found if isinstance(found, list) else [found]
