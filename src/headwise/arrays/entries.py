"""List the arrays in a file with their names, shapes and dtypes, and load one on request.

There is one function per format. None of them runs code found in a file: NumPy reads without
pickle, PyTorch with ``weights_only``.
"""

from __future__ import annotations

import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from pickle import UnpicklingError
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from headwise.arrays.formats import NPY, NPZ, SAFETENSORS, TORCH, Format
from headwise.errors import BadInputError, UnreadableFileError
from headwise.memory import refuse_if_too_large

#: A PyTorch file with more tensors, lists and dictionaries than this is refused.
MOST_ENTRIES = 10**6

#: So is one where the path to a tensor has more characters than this.
LONGEST_NAME = 10_000


@dataclass(frozen=True)
class Entry:
    """One array of a file, not yet read."""

    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Tensor]

    def __str__(self) -> str:
        return f"({self.dtype}, {'×'.join(map(str, self.shape)) or 'one number'})"


def entries_of(path: Path, kind: Format) -> dict[str, Entry]:
    """List every array in a file by name; a single unnamed array is named after the file."""
    return _LISTING[kind](path)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn whatever a reader raises on damaged bytes into one line."""
    try:
        yield
    except MemoryError:
        raise UnreadableFileError(
            f"{path} holds an array too large for this machine's memory",
            hint="save only the part you need in a new file",
        ) from None
    # Readers raise nearly anything: KeyError, struct.error, zlib.error, UnicodeDecodeError, ...
    except Exception as error:
        reason = re.split(r"[\n.;]", str(error).strip())[0] or type(error).__name__
        raise UnreadableFileError(
            f"{path} is damaged ({reason})", hint="copy it or save it again"
        ) from None


# ── NumPy


@dataclass(frozen=True)
class _Header:
    """The contents of an .npy header, and how many bytes follow it."""

    shape: tuple[int, ...]
    dtype: np.dtype
    bytes_there: int


def _list_npy(path: Path) -> dict[str, Entry]:
    with path.open("rb") as file, _reading(path):
        header = _npy_header(file, path.stat().st_size)
    return {path.stem: _numpy_entry(header, str(path), lambda: _load_npy(path))}


def _list_npz(path: Path) -> dict[str, Entry]:
    def unpacked(name: str, header: _Header) -> np.ndarray:
        # Zeros take a thousandth of their size in a file.
        _refuse_unpacking(path, header.bytes_there)
        return _load_npz(path, name)

    with _reading(path), zipfile.ZipFile(path) as archive:
        headers = {
            member.filename.removesuffix(".npy"): _member_header(archive, member)
            for member in archive.infolist()
            if member.filename.endswith(".npy")
        }
    return {
        name: _numpy_entry(header, f"{name!r} in {path}", lambda n=name, h=header: unpacked(n, h))
        for name, header in headers.items()
    }


def _member_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Header:
    with archive.open(member) as file:
        return _npy_header(file, member.file_size)


def _npy_header(file: BufferedIOBase | IO[bytes], size: int) -> _Header:
    version = np.lib.format.read_magic(file)
    first = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return _Header(shape, dtype, size - file.tell())


def _load_npy(path: Path) -> np.ndarray:
    """Map the file into memory: pages are read when they are used, and copied if written to."""
    with _reading(path):
        try:
            return np.load(path, mmap_mode="c")
        except ValueError:  # an empty array has no pages
            return np.load(path)


def _load_npz(path: Path, name: str) -> np.ndarray:
    with _reading(path), np.load(path) as archive:
        return archive[name]


def _numpy_entry(header: _Header, place: str, load: Callable[[], np.ndarray]) -> Entry:
    def tensor() -> Tensor:
        native = _refuse_unreadable(header, place)
        return torch.from_numpy(load().astype(native, order="C", copy=False))

    return Entry(header.shape, header.dtype.name, tensor)


def _refuse_unreadable(header: _Header, place: str) -> np.dtype:
    """Return the dtype in the machine's byte order, the only one torch reads, or raise."""
    if header.dtype.hasobject:
        raise BadInputError(
            f"{place} holds Python objects, which are not read (they could run code)",
            hint="save plain numbers: numpy.save(path, array.astype('float64'))",
        )
    native = header.dtype.newbyteorder("=")
    if not _torch_has(native):
        raise BadInputError(
            f"{place} has NumPy dtype {header.dtype.name}",
            hint="save it as float64, or a bfloat16 tensor as .safetensors or .pt",
        )
    needed = math.prod(header.shape) * native.itemsize
    if header.bytes_there < needed:
        raise UnreadableFileError(
            f"expected {needed} bytes of numbers in {place}, got {header.bytes_there}",
            hint="copy it or save it again",
        )
    return native


def _torch_has(dtype: np.dtype) -> bool:
    try:
        torch.from_numpy(np.empty(0, dtype))
    except TypeError:
        return False
    return True


def _refuse_unpacking(path: Path, size: int) -> None:
    refuse_if_too_large(
        f"unpacking {path}", size, torch.device("cpu"), "save only the part you need in a new file"
    )


# ── safetensors


def _list_safetensors(path: Path) -> dict[str, Entry]:
    from safetensors import safe_open

    with _reading(path), safe_open(path, framework="pt") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        found = {name: (tuple(s.get_shape()), str(s.get_dtype())) for name, s in slices.items()}
    return {
        name: Entry(shape, dtype, lambda n=name: _load_safetensors(path, n))
        for name, (shape, dtype) in found.items()
    }


def _load_safetensors(path: Path, name: str) -> Tensor:
    from safetensors import safe_open

    with _reading(path), safe_open(path, framework="pt") as file:
        return file.get_tensor(name)


# ── PyTorch


def _list_torch(path: Path) -> dict[str, Entry]:
    loaded = _load_torch(path)
    if not isinstance(loaded, Tensor | dict | list | tuple):
        return {}
    return {
        name or path.stem: Entry(
            # The shape of a nested tensor is not one tuple.
            () if tensor.is_nested else tuple(tensor.shape),
            str(tensor.dtype).removeprefix("torch."),
            lambda t=tensor: t,
        )
        for name, tensor in _tensors_in(path, loaded)
    }


def _load_torch(path: Path) -> Any:
    if zipfile.is_zipfile(path):
        with _reading(path), zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        _refuse_unpacking(path, size)
    with _reading(path), warnings.catch_warnings():
        # torch warns about pickle protocols that it may not know, and raises if it really does not.
        warnings.simplefilter("ignore")
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except UnpicklingError as error:
            culprit = _culprit(str(error))
    raise UnreadableFileError(
        f"expected only tensors in {path}, but {culprit} (nothing was executed)",
        hint="save only tensors: torch.save({'name': tensor}, path)",
    )


def _culprit(message: str) -> str:
    named = re.search(r"GLOBAL (\S+)", message)
    return f"its pickle asks for {named.group(1)}" if named else "its pickle is damaged or foreign"


def _tensors_in(path: Path, loaded: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor in nested dictionaries and lists, named by the path to it."""
    # Not recursive: a pickle may nest deeply, hold itself, or hold one list in many places.
    waiting, seen = [("", loaded)], 0
    while waiting:
        name, one = waiting.pop()
        seen += 1
        if seen > MOST_ENTRIES or len(name) > LONGEST_NAME:
            raise UnreadableFileError(
                f"{path} nests too deeply or without end",
                hint="save only tensors: torch.save({'name': tensor}, path)",
            )
        if isinstance(one, Tensor):
            yield name, one
            continue
        parts = one.items() if isinstance(one, dict) else enumerate(one)
        inside = [
            (f"{name}.{key}" if name else str(key), value)
            for key, value in parts
            if isinstance(value, Tensor | dict | list | tuple)
        ]
        waiting += reversed(inside)


_LISTING: dict[Format, Callable[[Path], dict[str, Entry]]] = {
    NPY: _list_npy,
    NPZ: _list_npz,
    TORCH: _list_torch,
    SAFETENSORS: _list_safetensors,
}
