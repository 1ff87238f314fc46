"""Read a pickle of plain values and arrays; refuse every pickle that would run code."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from headwise.errors import BadInputError, UnreadableFileError


def _empty_array(kind: type, shape: tuple[int, ...], code: bytes) -> np.ndarray:
    """The empty array that a pickled array begins as; its content follows as plain bytes."""
    return np.empty((0,), dtype=np.uint8)


def _latin1(text: str, encoding: str) -> bytes:
    """Bytes as protocol 2 writes them: as latin-1 text."""
    return text.encode("latin-1")


#: The only names that a pickle of arrays, numbers, strings, lists and dictionaries needs.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
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
        The dictionary.

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
        raise BadInputError(
            f"{path} is a pickle that would run {error}; nothing was executed",
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
    return {_text(key): value for key, value in content.items()}


def _text(key: object) -> str:
    return key.decode("latin-1") if isinstance(key, bytes) else str(key)
