"""Record how an answer was computed: code, versions, device and time; no host name, no path."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import Any

from headwise.version import __version__

#: Seconds to wait for git, which answers at once unless the file system hangs.
GIT_PATIENCE = 5.0

#: The environment variable that names the revision; it takes precedence over git.
REVISION = "HEADWISE_REVISION"

_device: ContextVar[str] = ContextVar("device", default="cpu")


@dataclass(frozen=True)
class Provenance:
    """What is stored with every row, so that you can trace it and compute it again.

    Args:
        code: The version of headwise, with the git revision if there is one.
        torch: The version of torch.
        device: Where it was computed.
        dtype: The dtype of the spec, if it has one.
        seconds: How long it took.
        command: The command that was run.
        seed: The seed of the spec, if it has one.

    Example:
        >>> Provenance("0.1.0", "2.13.0", "cpu", "float64", 0.25, "headwise reproduce", 7).seed
        7
    """

    code: str
    torch: str
    device: str
    dtype: str | None
    seconds: float
    command: str
    seed: int | None

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Provenance | None:
        """Return a provenance as it was stored, or None if a value is missing or of another type.

        >>> Provenance.read({"code": 3}) is None
        True
        """
        kinds = {"dtype": str | None, "seconds": int | float, "seed": int | None}
        found: dict[str, Any] = {field.name: values.get(field.name) for field in fields(cls)}
        sound = all(isinstance(value, kinds.get(name, str)) for name, value in found.items())
        return cls(**found) if sound else None


@cache
def code_version() -> str:
    """Return the version of the package, with the git revision if it runs from a checkout.

    For a copy of a checkout without its history, set the environment variable HEADWISE_REVISION.
    """
    revision = os.environ.get(REVISION) or _git_revision(Path(__file__).parent)
    return __version__ + (f"+{revision}" if revision else "")


def _git_revision(folder: Path) -> str:
    """Return the commit of a checkout, marked if files differ from it; empty elsewhere."""
    try:
        # An installed copy may lie inside another project's checkout; ours is tracked.
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")
        return _git(folder, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", folder, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=GIT_PATIENCE,
    )
    return done.stdout.strip()


@cache
def torch_version() -> str:
    """Return the installed version of torch without importing it."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return "absent"


def seed_of(content: Mapping[str, Any]) -> int | None:
    """Return the seed of a spec, if it has one that a database can hold."""
    seed = content.get("seed")
    return seed if isinstance(seed, int) and abs(seed) < 2**63 else None


def dtype_of(content: Mapping[str, Any]) -> str | None:
    """Return the dtype of a spec, if it has one."""
    dtype = content.get("dtype")
    return dtype if isinstance(dtype, str) else None


def device() -> str:
    """Return the device on which the current spec should compute.

    Returns:
        The name of the device, such as "cpu" or "cuda:0".

    Example:
        >>> device()
        'cpu'
    """
    return _device.get()


@contextmanager
def computing_on(name: str) -> Iterator[None]:
    """Make :func:`device` return ``name`` inside the block."""
    token = _device.set(name)
    try:
        yield
    finally:
        _device.reset(token)


def device_name(name: str) -> str:
    """Return a device with the model of its accelerator, if torch is loaded."""
    torch = sys.modules.get("torch")
    if not name.startswith("cuda") or torch is None or not torch.cuda.is_available():
        return name
    return f"{name} ({torch.cuda.get_device_name(name)})"


def command_line(arguments: Sequence[str]) -> str:
    """Return a command as typed, without the parts that name a machine or an account.

    Args:
        arguments: The program and its arguments.

    Returns:
        The command in one line, with … in place of what was left out.

    Example:
        >>> command_line(["/opt/bin/headwise", "report", "--out=/home/me/page"])
        'headwise report --out=…/page'
    """
    program, *rest = arguments
    # With python -m headwise, the program is the package's __main__.py.
    name = PurePath(program).name.replace("__main__.py", "headwise")
    return " ".join([name, *map(_without_places, rest)])


def _without_places(argument: str) -> str:
    option, equals, value = argument.rpartition("=") if argument[:1] == "-" else ("", "", argument)
    scheme = re.match(r"[a-z][\w+.-]*://", value)
    if scheme:
        value = scheme.group() + "…"
    elif re.match(r"[/~\\]|\.\.|[A-Za-z]:[/\\]", value):
        value = "…/" + re.split(r"[/\\]", value.rstrip("/\\"))[-1]
    return option + equals + value
