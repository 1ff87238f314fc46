"""Refuse work that does not fit in memory, before anything is allocated."""

from __future__ import annotations

from pathlib import Path

import torch

from headwise.errors import TooLargeError

GROUP_FOLDER = Path("/sys/fs/cgroup")
MEMORY_FACTS = Path("/proc/meminfo")

#: So many bytes are not worth asking for: the answer takes as long as counting a small matrix.
ALWAYS_TRIED = 2**23


def available_bytes(device: torch.device) -> int | None:
    """Return the free memory of a device in bytes, or None if the system does not report it."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + held
    known = [x for x in (_system_bytes(), _group_bytes()) if x is not None]
    return min(known, default=None)


def refuse_if_too_large(what: str, needed: int, device: torch.device, alternative: str) -> None:
    """Raise TooLargeError if ``needed`` bytes are more than the device has free."""
    if needed <= ALWAYS_TRIED:
        return
    free = available_bytes(device)
    if free is not None and needed > free:
        raise TooLargeError(
            f"{what} needs {readable_bytes(needed)} of memory, {readable_bytes(free)} is free",
            hint=alternative,
        )


def readable_bytes(size: int | float) -> str:
    """Return a size with a unit, such as "3.2 MB"."""
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} EB"


def _system_bytes() -> int | None:
    try:
        lines = MEMORY_FACTS.read_text().splitlines()
    except OSError:
        return None
    found = [line for line in lines if line.startswith("MemAvailable:")]
    return int(found[0].split()[1]) * 1024 if found else None


def _group_bytes() -> int | None:
    """Return what is left under the container's memory limit, if it has one."""
    try:
        limit = (GROUP_FOLDER / "memory.max").read_text().strip()
        used = (GROUP_FOLDER / "memory.current").read_text().strip()
    except OSError:
        return None
    return None if limit == "max" else max(0, int(limit) - int(used))
