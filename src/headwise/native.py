"""Compile C sources once per machine, where there is a C compiler.

A source is compiled once per text and processor (half a second) into the user's cache folder.
Without a compiler, callers compute the same with torch and numpy, more slowly.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

#: What C sources may include lies beside this module, or beside themselves.
HEADERS = Path(__file__).parent

# No -ffast-math: sums keep their order, NaN and infinity their meaning.
FLAGS = ("-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC", "-pthread")


@cache
def library(source: Path) -> ctypes.CDLL | None:
    """Compile and load a C source.

    Args:
        source: The file to compile.

    Returns:
        The loaded library, or None if this machine cannot compile it.

    Example:
        >>> library(HEADERS / "no_such_file.c") is None
        True
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    try:
        return ctypes.CDLL(str(_built(source, compiler, _folder())))
    except (OSError, subprocess.SubprocessError):
        return None


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "headwise"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="headwise-"))
    return folder


def _built(source: Path, compiler: str, folder: Path) -> Path:
    """Return the path of the compiled library, compiling it first if needed."""
    target = folder / f"{source.stem}_{_identity(source, compiler)}.so"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / "made.so"
        command = [compiler, *FLAGS, f"-I{HEADERS}", str(source), "-o", str(made), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        made.replace(target)  # atomic: another process may be compiling the same file
    return target


def _identity(source: Path, compiler: str) -> str:
    """Hash everything the machine code depends on: sources, flags, compiler and processor."""
    headers = sorted({*HEADERS.glob("*.h"), *source.parent.glob("*.h")})
    texts = [path.read_text() for path in (source, *headers)]
    known = [*texts, *FLAGS, compiler, platform.machine(), _features()]
    return hashlib.blake2b("\n".join(known).encode(), digest_size=8).hexdigest()


def _features() -> str:
    """Return the processor's features: -march=native code of one processor may crash another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
