"""Tell the format of a file from its name and its first bytes.

A file is read only if both agree. A renamed file would otherwise fail deep inside a reader with
a misleading message.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

from headwise.endings import READABLE, refuse_missing_array
from headwise.errors import UnreadableFileError


@dataclass(frozen=True)
class Format:
    """A file format that headwise reads, and its file extensions."""

    described: str
    endings: tuple[str, ...]


NPY = Format("a NumPy array", (".npy",))
NPZ = Format("a NumPy archive", (".npz",))
TORCH = Format("a PyTorch file", (".pt", ".pth"))
SAFETENSORS = Format("a safetensors file", (".safetensors",))
FORMATS = (NPY, NPZ, TORCH, SAFETENSORS)


@dataclass(frozen=True)
class Content:
    """What the bytes of a file look like, and the format to read them in, if there is one."""

    described: str
    format: Format | None = None
    advice: str = f"save the array in one of {READABLE}"


#: Tables of numbers as text, and what stands between two numbers.
TABLES = {".csv": ",", ".tsv": "\t"}

_DAMAGED = "copy it or save it again"

# Pickles of protocol 2 and above begin with 0x80 and the protocol. Older versions of torch.save
# wrote such files, starting with a magic number.
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
_TORCH_PICKLE = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_FOREIGN_PICKLE = Content(
    "a Python pickle, which headwise never runs",
    advice="save the array with numpy.save or torch.save",
)

_OPENINGS = (
    (b"\x93NUMPY", Content(NPY.described, NPY)),
    (_TORCH_PICKLE, Content(TORCH.described, TORCH)),
    (b"\x89HDF\r\n", Content("an HDF5 file")),
    (b"GGUF", Content("a GGUF model file")),
    (b"\x1f\x8b", Content("a gzip-compressed file", advice="unpack it with gunzip")),
    (b"MATLAB", Content("a MATLAB file")),
    (
        b"version https://git-lfs",
        Content("a Git LFS pointer, not the file itself", advice="fetch the file: git lfs pull"),
    ),
)


def format_of(path: Path) -> Format:
    """Return the format of a file, or raise if its name and content disagree."""
    _refuse_missing(path)
    promised = _promised(path)
    content = content_of(path)
    if promised is None:
        raise UnreadableFileError(
            f"{path} ends in {path.suffix!r}, which headwise does not read, "
            f"and looks like {content.described}",
            hint=_way_out(path, content),
        )
    if content.format is not promised:
        raise UnreadableFileError(
            f"{path} is not {promised.described}: it looks like {content.described}",
            hint=_way_out(path, content),
        )
    return promised


def content_of(path: Path) -> Content:
    """Tell what a file holds from its first bytes."""
    with path.open("rb") as file:
        head = file.read(4096)
    for opening, content in _OPENINGS:
        if head.startswith(opening):
            return content
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _inside_zip(path)
    if head.startswith(_PICKLES):
        return _FOREIGN_PICKLE
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 2**40:
        return Content(SAFETENSORS.described, SAFETENSORS)
    return Content("text") if _is_text(head) else Content("nothing headwise knows")


def _promised(path: Path) -> Format | None:
    suffix = path.suffix.lower()
    return next((known for known in FORMATS if suffix in known.endings), None)


def _way_out(path: Path, content: Content) -> str:
    delimiter = TABLES.get(path.suffix.lower())
    if delimiter and content.format is None:
        read = f"numpy.loadtxt({str(path)!r}, {_table_options(path, delimiter)})"
        return f"convert it: numpy.save({str(path.with_suffix('.npy'))!r}, {read})"
    if content.format is None:
        return content.advice
    return f"rename it to {path.with_suffix(content.format.endings[0]).name}"


def _table_options(path: Path, delimiter: str) -> str:
    """Return the options that read a table; a first line with a number in it is no header."""
    with path.open(encoding="utf-8", errors="replace") as file:
        line = file.readline(4096)
    if delimiter not in line and ";" in line:
        delimiter = ";"
    comment = line.lstrip().startswith("#")  # numpy.loadtxt skips it
    header = not comment and not any(map(_is_number, line.split(delimiter)))
    return f"delimiter={delimiter!r}" + (", skiprows=1" if header else "")


def _is_number(text: str) -> bool:
    try:
        float(text.strip().strip('"\ufeff'))
    except ValueError:
        return False
    return True


def _inside_zip(path: Path) -> Content:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    # Damaged archives raise more than BadZipFile: bad names, versions, offsets.
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        return Content("an incomplete zip archive", advice=_DAMAGED)
    if any(name.endswith("/constants.pkl") for name in names):
        advice = "save its weights instead: torch.save(model.state_dict(), path)"
        return Content("a TorchScript program", advice=advice)
    if any(name.endswith("/data.pkl") for name in names):
        return Content(TORCH.described, TORCH)
    if any(name.endswith(".npy") for name in names):
        return Content(NPZ.described, NPZ)
    return Content("a zip archive without arrays")


def _is_text(head: bytes) -> bool:
    # Reading 4096 bytes may have cut the last character in two.
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:
            return False
        text = head[: error.start].decode("utf-8")
    return all(letter.isprintable() or letter.isspace() for letter in text)


def _refuse_missing(path: Path) -> None:
    refuse_missing_array(path)
    if path.is_dir():
        raise UnreadableFileError(
            f"{path} is a folder", hint=f"pass a file in it that ends in {READABLE}"
        )
    if not path.is_file():
        raise UnreadableFileError(
            f"{path} is not a regular file", hint=f"pass a file ending in {READABLE}"
        )
    if path.stat().st_size == 0:
        raise UnreadableFileError(f"{path} is empty, 0 bytes", hint=_DAMAGED)
