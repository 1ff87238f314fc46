"""Read a pickle of plain values and arrays; refuse every pickle that would run code."""

from __future__ import annotations

import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from headwise.errors import BadInputError, UnreadableFileError


class _Dtype:
    """A pickled dtype: its code and its byte order."""

    def __init__(self, code: object, *_: object) -> None:
        self._code, self._order = code, "="

    def __setstate__(self, state: object) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        order = order.decode("latin-1") if isinstance(order, bytes) else order
        if order not in ("<", ">", "=", "|"):
            raise pickle.UnpicklingError("a byte order")
        self._order = order

    def real(self) -> np.dtype:
        """The dtype, if it is a plain number."""
        code = self._code.decode("latin-1") if isinstance(self._code, bytes) else self._code
        if not isinstance(code, str) or code not in _NUMBERS:
            raise pickle.UnpicklingError("a dtype of plain numbers")
        return np.dtype(code if self._order in ("|", "=") else self._order + code)


class _Array:
    """A pickled array: its state is checked before numpy sees it."""

    def __init__(self, *_: object) -> None:
        self.value = np.empty((0,), dtype=np.uint8)

    def __setstate__(self, state: object) -> None:
        _, shape, kind, by_column, content = state  # type: ignore[misc]
        sound = isinstance(kind, _Dtype) and isinstance(content, bytes) and isinstance(shape, tuple)
        if not sound or not all(type(size) is int and size >= 0 for size in shape):
            raise pickle.UnpicklingError("an array")
        dtype = kind.real()
        if math.prod(shape) * dtype.itemsize != len(content):
            raise pickle.UnpicklingError("an array of its own size")
        order = "F" if by_column else "C"
        self.value = np.frombuffer(content, dtype).reshape(shape, order=order).copy(order)


class _Named:
    """Stands for the class of arrays, which a pickled array only names."""


def _latin1(text: str, encoding: str) -> bytes:
    """Bytes as protocol 2 writes them: as latin-1 text."""
    return text.encode("latin-1")


#: Codes of the dtypes that datasets of numbers use.
_NUMBERS = frozenset(("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"))

#: The only names that a pickle of arrays, numbers, strings, lists and dictionaries needs. Each
#: stands for code of ours, because numpy's own can be made to crash by a damaged state.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Named,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _latin1,
}


class _CodeFoundError(pickle.UnpicklingError):
    """The pickle names something that is not data."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        """An allowed name; nothing else is even imported."""
        try:
            return _ALLOWED[module_name, global_name]
        except KeyError:
            raise _CodeFoundError(f"{module_name}.{global_name}") from None


def read_plain_pickle(path: Path) -> dict[str, Any]:
    """Read a dictionary of plain values and arrays; keys come back as text.

    Python 2 wrote the official CIFAR files, so their keys are bytes; copies written since have
    text. Both read alike.

    Args:
        path: The file.

    Returns:
        Plain values and numpy arrays by their names.

    Raises:
        UnreadableFileError: The file is absent, damaged, or not a dictionary.
        BadInputError: The pickle names code. Nothing of it was executed.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "batch"
        >>> _ = place.write_bytes(pickle.dumps({b"labels": [1, 2]}, protocol=2))
        >>> read_plain_pickle(place)
        {'labels': [1, 2]}
    """
    try:
        content = _PlainUnpickler(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except OSError as error:
        raise UnreadableFileError(
            f"cannot open {path} ({error.strerror})", hint="check the path and its permissions"
        ) from None
    except _CodeFoundError as error:
        name = " ".join(str(error).split())  # a damaged name may hold line breaks
        raise BadInputError(
            f"{path} is a pickle that would run {name}; nothing was executed",
            hint="download the file again from its official page",
        ) from None
    except Exception as error:  # damaged bytes fail in as many ways as there are bytes
        raise UnreadableFileError(
            f"{path} is damaged or cut short ({type(error).__name__})", hint="download it again"
        ) from None
    if not isinstance(content, dict):
        raise UnreadableFileError(
            f"expected a dictionary in {path}, got {type(content).__name__}",
            hint="download it again",
        )
    return {_text(key): _plain(value) for key, value in content.items()}


def _plain(value: Any) -> Any:
    """The value with arrays in place of what stood for them."""
    if isinstance(value, _Array):
        return value.value
    if isinstance(value, list | tuple):
        return type(value)(_plain(one) for one in value)
    return value


def _text(key: object) -> str:
    return key.decode("latin-1") if isinstance(key, bytes) else str(key)
