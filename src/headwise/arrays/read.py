"""Read one array from a file, by name if the file holds several."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from headwise.arrays.entries import Entry, entries_of
from headwise.arrays.formats import format_of
from headwise.arrays.plain import plain
from headwise.errors import BadInputError, UnreadableFileError

#: The most arrays that an error message lists by name.
LISTED = 12


def read_array(path: Path | str, name: str | None = None, parameter: str = "") -> Tensor:
    """Read one array from a file. Code in the file is never run: pickled objects are refused.

    Args:
        path: A .npy, .npz, .pt, .pth or .safetensors file.
        name: The name of the array, needed only if the file holds several.
        parameter: What the caller's users pass the name as, for the hint of that error.

    Returns:
        The array on the CPU, in the dtype it was stored in.

    Raises:
        UnreadableFileError: If the file is missing, damaged, or of another format.
        BadInputError: If the file does not hold exactly one array of that name.

    Example:
        >>> import numpy, tempfile
        >>> place = Path(tempfile.mkdtemp()) / "identity.npy"
        >>> numpy.save(place, numpy.eye(3))
        >>> read_array(place).shape
        torch.Size([3, 3])
    """
    path = Path(path)
    try:
        found = entries_of(path, format_of(path))
    except OSError as error:
        raise UnreadableFileError(
            f"{path} cannot be opened ({error.strerror})", hint="check the path and its permissions"
        ) from None
    entry = _chosen(path, found, name, parameter)
    return plain(entry.load(), str(path))


def _chosen(path: Path, found: dict[str, Entry], name: str | None, parameter: str) -> Entry:
    if not found:
        raise UnreadableFileError(f"{path} holds no array", hint="pass a file that holds one")
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    if name is None:
        hint = f"choose one by its name: {_listed(found)}"
        if parameter:
            hint = "pass " + " or ".join(f"`{parameter}={one!r}`" for one in list(found)[:LISTED])
        raise BadInputError(f"expected one array in {path}, got {len(found)}", hint=hint)
    if name not in found:
        raise BadInputError(
            f"{path} holds no array named {name!r}", hint=f"choose one of {_listed(found)}"
        )
    return found[name]


def _listed(found: dict[str, Entry]) -> str:
    shown = [f"{name} {entry}" for name, entry in list(found.items())[:LISTED]]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
