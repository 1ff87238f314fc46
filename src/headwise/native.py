"""Compile C sources once per machine, where there is a C compiler.

A source is compiled once per text and processor (half a second) into the user's cache folder.
Without a compiler, callers compute the same with torch and numpy, more slowly.

Machine code runs with the user's rights, so nothing is loaded on trust. The cache folder and the
file must belong to the user and be writable by nobody else. The file must have the checksum that
was noted when it was made. The loaded library must name its own source and add numbers as IEEE
arithmetic does. What fails a check is compiled again in a private folder, once.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from functools import cache
from pathlib import Path

#: What C sources may include lies beside this module, or beside themselves.
HEADERS = Path(__file__).parent

#: Compiled into every library: what ``_is_sound`` asks for.
SELF_CHECK = HEADERS / "self_check.h"

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
        identity = _identity(source, compiler)
        folder = _cache_folder()
        if folder is not None:
            kept = _loaded(_built(source, compiler, folder, identity), identity)
            if kept is not None:
                return kept
        # A loaded library stays loaded when its file goes.
        with tempfile.TemporaryDirectory(prefix="headwise-", ignore_cleanup_errors=True) as folder:
            return _loaded(_built(source, compiler, Path(folder), identity), identity)
    except (OSError, subprocess.SubprocessError):
        return None


def _cache_folder() -> Path | None:
    """Return the folder of compiled libraries, or None if others could write to it."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "headwise"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not folder.is_symlink() and hasattr(os, "getuid"):
            if folder.stat().st_uid != os.getuid():
                return None
            folder.chmod(0o700)
        return folder if _is_ours(folder) and os.access(folder, os.W_OK) else None
    except (OSError, RuntimeError):  # RuntimeError: an account without a home folder
        return None


def _is_ours(path: Path) -> bool:
    """Whether the path is no link, belongs to this user, and nobody else can write to it."""
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    return facts.st_uid == os.getuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _built(source: Path, compiler: str, folder: Path, identity: str) -> Path:
    """Return the path of the compiled library, compiling it first if needed."""
    target = folder / f"{source.stem}_{identity}.so"
    if _is_intact(target):
        return target
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / "made.so"
        included = ["-include", str(SELF_CHECK), f"-I{HEADERS}"]
        name = f'-DHEADWISE_IDENTITY="{identity}"'
        command = [compiler, *FLAGS, name, *included, str(source), "-o", str(made), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        made.chmod(0o700)
        checksum = made.with_suffix(".sum")
        checksum.write_text(_checksum(made))
        checksum.chmod(0o600)
        # Both moves are atomic. Two processes may compile at once, and their files may differ:
        # a checksum that does not fit only means one more compilation.
        made.replace(target)
        checksum.replace(target.with_suffix(".sum"))
    return target


def _is_intact(target: Path) -> bool:
    """Whether a compiled library is ours, and as it was when it was made."""
    # A truncated library would end the process in dlopen, so its bytes are compared first.
    noted = target.with_suffix(".sum")
    try:
        ours = _is_ours(target) and _is_ours(noted)
        return ours and noted.read_text() == _checksum(target)
    except (OSError, UnicodeDecodeError):
        return False


def _checksum(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes()).hexdigest()


def _loaded(path: Path, identity: str) -> ctypes.CDLL | None:
    """Load a library; None if it is another one, or if it does not calculate as it should."""
    code = ctypes.CDLL(str(path))
    return code if _is_sound(code, identity) else None


def _is_sound(code: ctypes.CDLL, identity: str) -> bool:
    try:
        named, residue = code.headwise_identity, code.headwise_residue
        differs = code.headwise_differs
    except AttributeError:
        return False
    named.restype, residue.restype = ctypes.c_char_p, ctypes.c_double
    residue.argtypes, differs.argtypes = [ctypes.c_double] * 2, [ctypes.c_double] * 2
    if named() != identity.encode():
        return False
    tiny = 2.0**-60
    # (1 + tiny) - 1 is 0 by rounding. A compiler that reorders sums makes it tiny.
    return residue(1.0, tiny) == 0.0 and differs(float("nan"), float("nan")) == 1


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
