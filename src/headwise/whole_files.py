"""Write files whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from headwise.errors import BadInputError, HeadwiseError

__all__ = ["write_whole"]


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
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise failure(f"{path} cannot be written ({error.strerror})", hint=hint) from None
    return path
