"""Which files headwise reads; a missing one is refused before torch is imported."""

from __future__ import annotations

from pathlib import Path

from headwise.errors import UnreadableFileError
from headwise.whole_files import existing_file

__all__ = [
    "ARRAYS",
    "PAGES",
    "READABLE",
    "TEXTS",
    "is_there",
    "refuse_missing_array",
    "refuse_missing_folder",
    "refuse_missing_source",
]

#: How the names of files with arrays end, and the same for messages.
ARRAYS = (".npy", ".npz", ".pt", ".pth", ".safetensors")
READABLE = ", ".join(ARRAYS)

#: How the names of text files end.
TEXTS = (".txt", ".text", ".md", ".py")

#: How the name of an HTML report may end.
PAGES = (".html", ".htm", "")


def refuse_missing_array(file: str | Path) -> None:
    """Refuse a file that is not there.

    Args:
        file: A file of arrays.

    Raises:
        UnreadableFileError: If nothing is there.

    Example:
        >>> refuse_missing_array("nowhere.npy")
        Traceback (most recent call last):
        headwise.errors.UnreadableFileError: there is no file nowhere.npy; pass the path of ...
    """
    existing_file(file, hint=f"pass the path of a file ending in {READABLE}")


def refuse_missing_source(source: str | Path) -> None:
    """Refuse a source that is not "digits", a file, a folder or the name of a function.

    Args:
        source: What a person calls the data.

    Raises:
        UnreadableFileError: If it is none of them.

    Example:
        >>> refuse_missing_source("digits")
        >>> refuse_missing_source("nowhere.npy")
        Traceback (most recent call last):
        headwise.errors.UnreadableFileError: there is no file or folder nowhere.npy; pass ...
    """
    if source == "digits" or ":" in str(source) or "\n" in str(source) or is_there(Path(source)):
        return
    raise UnreadableFileError(
        f"there is no file or folder {source}",
        hint=f"pass digits, a file ({READABLE}, {', '.join(TEXTS)} or an image), a folder of "
        "images or texts, or PACKAGE:FUNCTION",
    )


def refuse_missing_folder(folder: str | Path) -> None:
    """Refuse a folder of data sets that does not exist.

    Args:
        folder: Where data sets should be.

    Raises:
        UnreadableFileError: If nothing is there.

    Example:
        >>> refuse_missing_folder("nowhere")
        Traceback (most recent call last):
        headwise.errors.UnreadableFileError: there is no folder nowhere; create it, or name ...
    """
    if not is_there(Path(folder)):
        raise UnreadableFileError(
            f"there is no folder {folder}",
            hint="create it, or name no folder to see how to get the data sets",
        )


def is_there(path: Path) -> bool:
    """Return whether there is a file or a folder of this name.

    Args:
        path: A path, or a text that is none.

    Returns:
        False too for a text that is too long for a name.

    Example:
        >>> is_there(Path("."))
        True
    """
    try:
        return path.exists()
    except OSError:  # longer than a name may be: text without a line break
        return False
