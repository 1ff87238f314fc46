"""Call ``dominant.c`` and ``near_hardmax.c``; each function returns None if they are not compiled.

The modules ``dominant`` and ``near_hardmax`` explain the computation. They do the same with
arrays if there is no compiler, and the tests compare both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headwise import native
from headwise.spectra.large_entries import Found, Packed, Weights

FOLDER = Path(__file__).parent
DOMINANT, NEAR_HARDMAX = FOLDER / "dominant.c", FOLDER / "near_hardmax.c"

#: Status of a matrix: dense work would be cheaper, or a block is too large for this code.
TOO_DENSE, TOO_LARGE = 1, 2

#: Numbers to read, and rows to count, that are worth one more thread.
READ_PER_THREAD = 2**16
ROWS_PER_THREAD = 2**12


def scan_log_weights(values: Tensor, reach: float, most: float) -> Weights | None:
    """Find the softmax weights within ``reach`` of the row maximum, in logarithms.

    Returns:
        The weights; None without compiled code for ``values``, or if a row has a NaN or no finite
        maximum: the array code then raises the error.
    """
    top, total = np.zeros((2, values.shape[0] * values.shape[1]))
    found = _scan(values, (reach, most), _pointers(top, total))
    return None if found is None else Weights(found, top, total)


def scan_matrices(values: Tensor, smallest: float, most: float) -> Found | None:
    """Find the entries of at least this absolute size; None as in ``scan_log_weights``."""
    return _scan(values, (smallest, most), [None, None])


def _scan(
    values: Tensor, limits: tuple[float, float], by_row: list[ctypes.c_void_p] | list[None]
) -> Found | None:
    if values.device.type != "cpu" or values.dtype != torch.float64 or values.numel() == 0:
        return None
    code = native.library(DOMINANT)
    if code is None:
        return None
    values = values.contiguous()
    sizes = np.array([*values.shape, _threads(values.numel(), READ_PER_THREAD)], np.int64)
    bounds, sparse, kept = np.array(limits), np.zeros(len(values), bool), np.zeros(1, np.int64)
    code.dominant_find.restype = ctypes.c_void_p
    start = ctypes.c_void_p(values.data_ptr())
    scan = ctypes.c_void_p(
        code.dominant_find(start, *_pointers(sizes, bounds), *by_row, *_pointers(sparse, kept))
    )
    if kept[0] < 0:
        code.dominant_free(scan)
        return None
    rows, columns = np.empty((2, kept[0]), dtype=np.int64)
    found = np.empty(kept[0])
    code.dominant_take(scan, *_pointers(rows, columns, found))
    return Found(rows, columns, found, sparse)


def weigh(rows: np.ndarray, differences: np.ndarray, how_many: int) -> np.ndarray | None:
    """Turn differences from the row maximum into weights in place; return the sum of each row."""
    code = native.library(DOMINANT)
    if code is None:
        return None
    total = np.zeros(how_many)
    size = ctypes.c_long(len(rows))
    code.dominant_weigh(*_pointers(rows, differences), size, *_pointers(total))
    return total


def count_entries(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray],
    size: tuple[int, int, int],
    thresholds: tuple[np.ndarray, np.ndarray],
    constants: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Count σ ≥ ε from entries numbered across the batch, row by row.

    ``thresholds`` are ε and δ; the rounding of the factorisations is added to δ in place.

    Returns:
        For each matrix the certain count, the possible count, and a status: 0 if the count is
        valid, else TOO_DENSE or TOO_LARGE.
    """
    code = native.library(NEAR_HARDMAX)
    if code is None:
        return None
    batch, n, _ = size
    start = np.searchsorted(entries[0], n * np.arange(batch + 1))
    sizes = np.array([*size, _threads(batch * n, ROWS_PER_THREAD)], np.int64)
    given = (*entries, start, sizes, *thresholds, constants)
    return _counted(code.near_hardmax_count, given, batch)


def count_packed(
    packed: Packed, thresholds: tuple[np.ndarray, np.ndarray], constants: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Do the same from the array that a device sent, without unpacking it."""
    code = native.library(NEAR_HARDMAX)
    if code is None:
        return None
    batch, n, m = packed.shape
    threads = _threads(batch * n, ROWS_PER_THREAD)
    sizes = np.array([batch, n, m, threads, packed.room, packed.softmax], np.int64)
    given = (packed.numbers, packed.sparse, sizes, *thresholds, constants)
    return _counted(code.near_hardmax_count_packed, given, batch)


def _counted(
    function: Callable[..., object], given: tuple[np.ndarray, ...], batch: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Allocate the outputs of a count: low, high and status of each matrix."""
    low, high = np.zeros((2, batch), dtype=np.int64)
    fate = np.zeros(batch, dtype=np.uint8)
    function(*_pointers(*given, low, high, fate))
    return low, high, fate


def _pointers(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


def _threads(work: int, per_thread: int) -> int:
    return max(1, min(torch.get_num_threads(), work // per_thread))
