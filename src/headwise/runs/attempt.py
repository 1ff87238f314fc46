"""Ask one spec and return its rows or its traceback; nothing is raised."""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from headwise.errors import BadInputError
from headwise.runs.outcome import Answer, Failure, Outcome
from headwise.runs.provenance import (
    Provenance,
    code_version,
    computing_on,
    device_name,
    dtype_of,
    seed_of,
    torch_version,
)
from headwise.runs.scratch import scratching_in
from headwise.runs.spec import Row, Spec


def attempt(spec: Spec, on: str = "cpu", scratch: Path | None = None) -> Outcome:
    """Ask a spec on a device; an exception becomes a Failure.

    ``scratch`` is the folder for checkpoints, from which a killed spec resumes.

    Returns:
        The rows, or the traceback.

    Raises:
        KeyboardInterrupt: If Ctrl-C was pressed.
    """
    start = time.perf_counter()
    try:
        with computing_on(on), scratching_in(scratch / spec.key if scratch else None):
            rows = checked_rows(spec.ask())
    except KeyboardInterrupt:
        raise  # Ctrl-C concerns the driver, not the spec
    # Also SystemExit and the like: a spec must not be able to end the run.
    except BaseException as error:
        return Failure(
            spec.key, traceback_text(error), stamp(spec, on, time.perf_counter() - start)
        )
    return Answer(spec.key, rows, stamp(spec, on, time.perf_counter() - start))


def unasked(spec: Spec, on: str, why: str) -> Failure:
    """Return the Failure of a spec whose workers all died."""
    return Failure(spec.key, why, stamp(spec, on, 0.0))


def checked_rows(answer: Any) -> tuple[Row, ...]:
    """Return an answer as rows, and refuse values that JSON does not return unchanged."""
    rows = [answer] if isinstance(answer, dict) else answer
    if not isinstance(rows, list | tuple) or not all(isinstance(row, dict) for row in rows):
        raise BadInputError(
            f"ask() gave {type(answer).__name__}", hint="return a dict, or a list of them"
        )
    if not rows:
        raise BadInputError("ask() gave no row", hint="return at least one")
    return tuple({name: _plain(name, value) for name, value in row.items()} for row in rows)


def _plain(name: object, value: object) -> Any:
    """Return the value as JSON returns it; the error names the field."""
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        plain = None
    if not isinstance(name, str) or plain != value:
        raise BadInputError(
            f"{name!r} is {value!r:.60}, which a row cannot hold",
            hint="answer with finite numbers, texts, booleans, None, and lists or dicts of these",
        )
    return plain


def traceback_text(error: BaseException) -> str:
    """Return a traceback with files relative to the import path, not to the disk."""
    text = "".join(traceback.format_exception(error))
    for folder in sorted({str(Path(entry)) for entry in sys.path if entry}, key=len, reverse=True):
        text = text.replace(f'File "{folder}/', 'File "')
    return text


def stamp(spec: Spec, on: str, seconds: float, command: str = "") -> Provenance:
    """Return the provenance of an answer computed now by this process."""
    # A dtype may be an enumeration; its JSON form is part of the spec's content.
    content = spec.content
    return Provenance(
        code=code_version(),
        torch=torch_version(),
        device=device_name(on),
        dtype=dtype_of(content),
        seconds=seconds,
        command=command,  # the driver knows it
        seed=seed_of(content),
    )
