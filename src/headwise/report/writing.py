"""Files of a report: each appears whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from headwise.errors import BadInputError


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file beside its place and move it there; its folder is made if it is absent.

    >>> import tempfile
    >>> write_whole(Path(tempfile.mkdtemp()) / "new" / "report.html", b"<html>").read_bytes()
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
        raise BadInputError(
            f"{path} cannot be written ({error.strerror})", hint="choose another --out"
        ) from None
    return path
