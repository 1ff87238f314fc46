"""The arrays a file holds: their names, shapes and dtypes first, their numbers on request.

One function per format. Nothing here runs code found in a file: NumPy reads without pickle,
PyTorch with ``weights_only``.
"""

from __future__ import annotations

import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from headwise.arrays.formats import NPY, NPZ, SAFETENSORS, TORCH, Format
from headwise.errors import BadInputError, HeadwiseError, UnreadableFileError


@dataclass(frozen=True)
class Entry:
    """One array of a file, not yet read."""

    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Tensor]

    def __str__(self) -> str:
        return f"({self.dtype}, {'×'.join(map(str, self.shape)) or 'one number'})"


def entries_of(path: Path, kind: Format) -> dict[str, Entry]:
    """Every array in the file, by name; a file of one unnamed array names it after itself."""
    return without_traceback(path, lambda: _LISTING[kind](path))


def without_traceback(path: Path, act: Callable[[], Any]) -> Any:
    """The result of reading, where whatever a damaged file provokes becomes one line."""
    try:
        return act()
    except HeadwiseError:
        raise
    except MemoryError:
        raise UnreadableFileError(
            f"{path} holds an array too large for this machine's memory",
            hint="save the part to be measured in a file of its own",
        ) from None
    # Readers of damaged bytes raise nearly anything: KeyError, struct.error, zlib.error, ...
    except Exception as error:
        reason = re.split(r"[\n.;]", f"{error}".strip())[0] or type(error).__name__
        raise UnreadableFileError(
            f"{path} is damaged ({reason})", hint="copy it or save it again"
        ) from None


def _list_npy(path: Path) -> dict[str, Entry]:
    with path.open("rb") as file:
        return {path.stem: _npy_entry(file, path.stat().st_size, str(path), lambda: np.load(path))}


def _list_npz(path: Path) -> dict[str, Entry]:
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                continue
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                place = f"{name!r} in {path}"
                found[name] = _npy_entry(file, member.file_size, place, _member(path, name))
    return found


def _member(path: Path, name: str) -> Callable[[], np.ndarray]:
    def load() -> np.ndarray:
        with np.load(path) as archive:
            return archive[name]

    return load


def _npy_entry(file: IO[bytes], size: int, place: str, load: Callable[[], np.ndarray]) -> Entry:
    shape, dtype = _npy_header(file)
    there, needed = size - file.tell(), math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and there < needed:
        raise UnreadableFileError(
            f"{place} breaks off: {there} of {needed} bytes of numbers are there",
            hint="copy it or save it again",
        )
    return Entry(shape, dtype.name, lambda: _tensor_of_numpy(load, dtype, place))


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    return shape, dtype


def _tensor_of_numpy(load: Callable[[], np.ndarray], dtype: np.dtype, place: str) -> Tensor:
    if dtype.hasobject:
        raise BadInputError(
            f"{place} holds Python objects, which are not read (they could run code)",
            hint="save plain numbers: numpy.save(path, array.astype('float64'))",
        )
    native = dtype.newbyteorder("=")
    if not _torch_has(native):
        raise BadInputError(
            f"{place} has NumPy dtype {dtype.name}",
            hint="save it as float64, or a bfloat16 tensor as .safetensors or .pt",
        )
    # torch reads only the machine's own byte order.
    return torch.from_numpy(load().astype(native, order="C", copy=False))


def _torch_has(dtype: np.dtype) -> bool:
    try:
        torch.from_numpy(np.empty(0, dtype))
    except TypeError:
        return False
    return True


def _list_safetensors(path: Path) -> dict[str, Entry]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        return {
            name: Entry(tuple(part.get_shape()), part.get_dtype(), _safetensor(path, name))
            for name, part in slices.items()
        }


def _safetensor(path: Path, name: str) -> Callable[[], Tensor]:
    def load() -> Tensor:
        from safetensors import safe_open

        with safe_open(path, framework="pt") as file:
            return file.get_tensor(name)

    return load


def _list_torch(path: Path) -> dict[str, Entry]:
    found = dict(_tensors_in(_weights_only(path), ""))
    return {
        name or path.stem: Entry(
            tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), lambda t=tensor: t
        )
        for name, tensor in found.items()
    }


def _weights_only(path: Path) -> Any:
    from pickle import UnpicklingError

    try:
        with warnings.catch_warnings():
            # torch advises its own developers about pickle protocols; the error below says more.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise UnreadableFileError(
            f"{path} is not weights alone: {_culprit(str(error))} (nothing was executed)",
            hint="save tensors alone: torch.save({'name': tensor}, path)",
        ) from None


def _culprit(message: str) -> str:
    named = re.search(r"GLOBAL (\S+)", message)
    return f"its pickle asks for {named.group(1)}" if named else "its pickle is damaged or foreign"


def _tensors_in(loaded: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(loaded, Tensor):
        yield name, loaded
    elif isinstance(loaded, dict):
        for key, value in loaded.items():
            yield from _tensors_in(value, f"{name}.{key}" if name else str(key))
    elif isinstance(loaded, list | tuple):
        for index, value in enumerate(loaded):
            yield from _tensors_in(value, f"{name}.{index}" if name else str(index))


_LISTING: dict[Format, Callable[[Path], dict[str, Entry]]] = {
    NPY: _list_npy,
    NPZ: _list_npz,
    TORCH: _list_torch,
    SAFETENSORS: _list_safetensors,
}
