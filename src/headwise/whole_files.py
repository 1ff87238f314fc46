"""Write files whole or not at all, and read checkpoints only if they are whole."""

from __future__ import annotations

import errno
import os
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from headwise.errors import BadInputError, CheckpointError, HeadwiseError, UnreadableFileError

__all__ = [
    "existing_file",
    "new_folder",
    "possible_file",
    "possible_folder",
    "read_checkpoint",
    "write_checkpoint",
    "write_whole",
]


def existing_file(file: str | Path, *, hint: str) -> Path:
    """Return a file that is there.

    Args:
        file: What will be read.
        hint: What to pass instead.

    Returns:
        The file as a path.

    Raises:
        UnreadableFileError: If nothing is there.

    Example:
        >>> existing_file("nowhere.npy", hint="pass the path of an array file")
        Traceback (most recent call last):
        headwise.errors.UnreadableFileError: there is no file nowhere.npy; pass the path ...
    """
    file = Path(file)
    if not file.exists():
        raise UnreadableFileError(f"there is no file {file}", hint=hint)
    return file


def new_folder(folder: str | Path) -> Path:
    """Return a folder in whose place nothing is yet.

    Args:
        folder: What will be written.

    Returns:
        The folder as a path.

    Raises:
        BadInputError: If there is a folder or a file of this name.

    Example:
        >>> new_folder(".")
        Traceback (most recent call last):
        headwise.errors.BadInputError: the folder . exists already; choose another name
    """
    folder = Path(folder)
    if folder.exists():
        kind = "folder" if folder.is_dir() else "file"
        raise BadInputError(f"the {kind} {folder} exists already", hint="choose another name")
    return folder


def possible_folder(folder: Path) -> Path:
    """Return a folder for results if it is there or can be made; a new one is not left behind.

    Args:
        folder: Where results will be written.

    Returns:
        The folder.

    Raises:
        BadInputError: If it cannot be made or written to, or is a file.

    Example:
        >>> possible_folder(Path(".")).is_dir()
        True
    """
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        reason = None if os.access(folder, os.W_OK) else os.strerror(errno.EACCES)
        for path in missing:
            path.rmdir()
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        raise BadInputError(
            f"cannot write into the folder {folder} ({reason})", hint="choose another folder"
        )
    return folder


def possible_file(file: Path) -> Path:
    """Return a file for results if it can be written; nothing is left behind.

    Args:
        file: What will be written. Its folder need not exist.

    Returns:
        The file.

    Raises:
        BadInputError: If it is a folder, or its folder cannot be made.

    Example:
        >>> possible_file(Path("."))
        Traceback (most recent call last):
        headwise.errors.BadInputError: cannot write .: it is a folder; pass the name of a file ...
    """
    if file.is_dir():
        raise BadInputError(
            f"cannot write {file}: it is a folder",
            hint="pass the name of a file in that folder",
        )
    possible_folder(file.parent)
    return file


def write_whole(
    path: Path, content: bytes, failure: type[HeadwiseError] = BadInputError, *, hint: str
) -> Path:
    """Write a file whole or not at all, and create its folder if needed.

    Args:
        path: Where to write.
        content: What to write.
        failure: The error to raise if that fails; nothing is left behind.
        hint: What to do then.

    Returns:
        The path.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "new" / "report.html"
        >>> write_whole(place, b"<html>", hint="choose another place").read_bytes()
        b'<html>'
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)  # a device or a pipe: replacing it would make it a file
            return path
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise failure(f"{path} cannot be written ({error.strerror})", hint=hint) from None
    return path


def write_checkpoint(path: Path, content: Any) -> None:
    """Write tensors beside an older checkpoint, then replace it: a kill leaves one intact.

    Args:
        path: Where to write.
        content: Tensors and plain values, in dictionaries and lists.

    Raises:
        CheckpointError: If it cannot be written; an older checkpoint stays as it was.

    Example:
        >>> import tempfile, torch
        >>> place = Path(tempfile.mkdtemp()) / "new" / "run.pt"
        >>> write_checkpoint(place, {"step": 3})
        >>> read_checkpoint(place, hint="remove it")
        {'step': 3}
    """
    import torch

    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    # If the disk refuses, torch raises a RuntimeError with the OSError behind it.
    except (OSError, RuntimeError) as error:
        with suppress(OSError):
            partial.unlink()
        raise CheckpointError(
            f"the checkpoint {path} cannot be written ({_first_line(error)})",
            hint="free some space, or choose another folder",
        ) from None


def read_checkpoint(path: Path, *, hint: str) -> Any:
    """Read what :func:`write_checkpoint` wrote, and refuse a file that was changed since.

    Args:
        path: What to read.
        hint: What to do if it cannot be read.

    Returns:
        The content.

    Raises:
        UnreadableFileError: If the file is damaged or no checkpoint.

    Example:
        >>> read_checkpoint(Path("/nowhere"), hint="remove it")
        Traceback (most recent call last):
        headwise.errors.UnreadableFileError: ... be read (No such file or directory); remove it
    """
    import torch

    try:
        _refuse_changed(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files raise nearly anything
        raise UnreadableFileError(
            f"{path} is no checkpoint that can be read ({_first_line(error)})", hint=hint
        ) from None


def _refuse_changed(path: Path) -> None:
    """Compare the checksums that torch writes and does not compare itself.

    Raises:
        BadZipFile: If a part of the file was changed.
    """
    with zipfile.ZipFile(path) as archive:
        changed = archive.testzip()
    if changed is not None:
        raise zipfile.BadZipFile(f"{changed} was changed")


def _first_line(error: Exception) -> str:
    told = getattr(error, "strerror", None) or str(error)
    return [*told.splitlines(), type(error).__name__][0]
