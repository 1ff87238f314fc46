"""Checkpoint folders: where a long spec keeps what it needs to resume.

The answer does not depend on it: what lies here only saves computing the same twice. It is
thrown away once the answer is stored.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from headwise.runs.locations import DEFAULT_STORE

#: The folder beside a store, one folder in it for each question at work.
CHECKPOINTS = "checkpoints"

_scratch: ContextVar[Path | None] = ContextVar("scratch", default=None)


def scratch() -> Path | None:
    """Return the checkpoint folder of the current spec, which may not exist yet, or None.

    >>> scratch() is None
    True
    """
    return _scratch.get()


@contextmanager
def scratching_in(folder: Path | None) -> Iterator[None]:
    """Make :func:`scratch` return ``folder`` inside the block.

    >>> with scratching_in(Path("checkpoints") / "671254"):
    ...     scratch().name
    '671254'
    """
    token = _scratch.set(folder)
    try:
        yield
    finally:
        _scratch.reset(token)


def scratch_beside(location: str | os.PathLike[str] = DEFAULT_STORE) -> Path:
    """Return the folder of all checkpoints of a store: beside its file, or the default file.

    >>> scratch_beside("results/all.db").parts[-2:]
    ('results', 'checkpoints')
    >>> scratch_beside("postgresql://db.example/headwise").parts[-2:]
    ('.headwise', 'checkpoints')
    """
    path = DEFAULT_STORE if "://" in os.fspath(location) else Path(location)
    return path.absolute().parent / CHECKPOINTS


def sweep(folder: Path, keys: Iterable[str]) -> None:
    """Delete the checkpoints of these keys; their answers are stored.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "671254").mkdir()
    >>> sweep(folder, ["671254", "absent"])
    >>> list(folder.iterdir())
    []
    """
    for key in keys:
        shutil.rmtree(folder / key, ignore_errors=True)
