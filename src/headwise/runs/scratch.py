"""Checkpoint folders, where a long spec keeps what it needs to resume.

The answer does not depend on them, and they are deleted once the answer is stored.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from headwise.runs.locations import DEFAULT_STORE

#: The folder beside a store; it holds one folder for each unfinished spec.
CHECKPOINTS = "checkpoints"

_scratch: ContextVar[Path | None] = ContextVar("scratch", default=None)


def scratch() -> Path | None:
    """Return the checkpoint folder of the current spec.

    Returns:
        The folder, which may not exist yet; None if checkpoints are not kept.

    Example:
        >>> scratch() is None
        True
    """
    return _scratch.get()


@contextmanager
def scratching_in(folder: Path | None) -> Iterator[None]:
    """Make :func:`scratch` return ``folder`` inside the block."""
    token = _scratch.set(folder)
    try:
        yield
    finally:
        _scratch.reset(token)


def scratch_beside(location: str | os.PathLike[str] = DEFAULT_STORE) -> Path:
    """Return the folder of all checkpoints of a store.

    Args:
        location: The path or URL of the store.

    Returns:
        A folder beside the file, or beside the default file if the store is a server.

    Example:
        >>> scratch_beside("results/all.db").parts[-2:]
        ('results', 'checkpoints')
        >>> scratch_beside("postgresql://db.example/headwise").parts[-2:]
        ('.headwise', 'checkpoints')
    """
    path = DEFAULT_STORE if "://" in os.fspath(location) else Path(location)
    return path.absolute().parent / CHECKPOINTS


def sweep(folder: Path, keys: Iterable[str]) -> None:
    """Delete the checkpoints of specs whose answers are stored.

    Args:
        folder: The folder of all checkpoints.
        keys: The keys of these specs.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "671254").mkdir()
        >>> sweep(folder, ["671254", "absent"])
        >>> list(folder.iterdir())
        []
    """
    for key in keys:
        shutil.rmtree(folder / key, ignore_errors=True)
