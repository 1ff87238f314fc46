"""Machine code for the rank-one kernel, made by the machine's own C compiler when there is one.

The source is ``rank_one.c``. It is compiled once per source and processor (half a second) into
the user's cache folder. Where there is no compiler, or it fails, callers do without: torch
computes the same, slower.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__).with_name("rank_one.c")
# No -ffast-math: sums over keys keep their order, and rounding by a magic number its meaning.
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC")


@cache
def library() -> ctypes.CDLL | None:
    """The compiled kernel, or nothing if this machine cannot make it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    try:
        return ctypes.CDLL(str(_built(compiler, _folder())))
    except (OSError, subprocess.SubprocessError):
        return None


def call(function: Callable[..., int], tensors: tuple[Tensor, ...], sizes: tuple[int, ...]) -> None:
    """Run a function of the library on contiguous float32 tensors, sequences over threads.

    ctypes lets go of the interpreter lock, so plain threads use every core. They are made for
    the call: a pool that lives on would not survive a fork.
    """
    sequences = tensors[0].shape[0]
    threads = max(1, min(torch.get_num_threads(), sequences))
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in tensors]
    numbers = [ctypes.c_long(size) for size in sizes]

    def share(thread: int) -> int:
        first, last = (sequences * (thread + step) // threads for step in (0, 1))
        return function(*pointers, *numbers, ctypes.c_long(first), ctypes.c_long(last))

    with ThreadPoolExecutor(threads) as pool:
        if any(pool.map(share, range(threads))):
            raise MemoryError("the rank-one kernel found no memory for its keys and values")


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "headwise"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="headwise-"))
    return folder


def _built(compiler: str, folder: Path) -> Path:
    """The path of the library, compiled now if it is not there."""
    target = folder / f"rank_one_{_identity(compiler)}.so"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / "made.so"
        command = [compiler, *FLAGS, str(SOURCE), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        made.replace(target)  # whole or not at all, whoever else is compiling
    return target


def _identity(compiler: str) -> str:
    """What the machine code depends on: source, flags, compiler and kind of processor."""
    known = [SOURCE.read_text(), *FLAGS, compiler, platform.machine(), _features()]
    return hashlib.blake2b("\n".join(known).encode(), digest_size=8).hexdigest()


def _features() -> str:
    """The processor's features, since -march=native code of one may crash another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
