"""What goes along with a call of ``benchmarks.gpu_session``: made here, sized, and named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu_plan import CALLS, PREPARE

#: The tree and what is carried are together at most so large.
MOST_SENT = 64 * 2**20


def tell(number: int) -> int:
    """What a call does, what it carries, and its command."""
    call = CALLS[number]
    print(f"call {number}, {call.minutes:g} minutes: {call.about}\n")
    for job in call.jobs:
        words = [word for word in ("first", "low") if getattr(job, word)]
        after = f" ({', '.join(words)})" if words else ""
        print(f"{job.name}{after}: ~{job.seconds:.0f} s alone" if job.seconds else job.name)
        for line in job.lines:
            print(f"    {line}")
    sizes = {name: size_of(Path(name)) for name in call.carry}
    tree = sum(path.stat().st_size for path in _tree())
    total = tree + sum(sizes.values())
    print(f"\nthe tree: {tree / 2**20:.1f} MiB")
    for name, size in sizes.items():
        print(f"{name}: " + (f"{size / 2**20:.1f} MiB" if size else "NOT THERE, run --prepare"))
    print(f"together: {total / 2**20:.1f} MiB" + " TOO LARGE" * (total > MOST_SENT))
    print(f"\ncommand:   {command(number)}")
    print(f"carry:     {json.dumps(call.carry)}\ntimeout_s: {min(600, 60 * call.minutes + 45):.0f}")
    return 0


def command(number: int) -> str:
    """The command of a call, with the revision that git cannot tell elsewhere."""
    words = ["git", "rev-parse", "--short=10", "HEAD"]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    return (
        f"HEADWISE_REVISION={found} PYTHONPATH=src:. PYTHONUNBUFFERED=1 "
        f'python3 -m benchmarks.gpu_session --call {number} --out "$OUT" '
        f"--minutes {CALLS[number].minutes:g}"
    )


def size_of(path: Path) -> int:
    """The bytes of a file or of everything in a folder; 0 if it is not there."""
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(file.stat().st_size for file in files)


def _tree() -> Iterator[Path]:
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return (path for path in map(Path, filter(None, found.split("\0"))) if path.is_file())


def prepare(sets: Path) -> int:
    """Make every path that is not there yet; print the size of each."""
    for name, line in PREPARE.items():
        if not size_of(Path(name)):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            text = line.format(python=sys.executable, sets=sets)
            print(text, flush=True)
            paths = {"PYTHONPATH": os.pathsep.join(["src", "."])}
            subprocess.run(["bash", "-c", text], check=True, env=os.environ | paths)
    for name in dict.fromkeys(name for call in CALLS.values() for name in call.carry):
        print(f"{name}: {size_of(Path(name)) / 2**20:.1f} MiB")
    return 0
