"""Attack every reader with damaged and hostile files.

Run ``python -m benchmarks.attack.files --minutes 3``. A reader must answer, or refuse in one line
with one of headwise's errors. Anything else is a failure: another exception, a message of several
lines, more than 20 seconds, more than a gigabyte, or the end of the process. The exit code is 1 if
there is any.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.attack.readers import Reader, readers

from headwise.errors import HeadwiseError

#: Seconds and bytes that one file may cost.
PATIENCE = 20
ROOM = 2**30

#: Files for each process, so that one that dies costs little.
SHARE = 2000


class SlowError(Exception):
    """A reader took longer than ``PATIENCE``."""


def content_of(reader: Reader, seed: int) -> bytes:
    """The damaged file with this number."""
    rng = np.random.default_rng(seed)
    first, other = (reader.contents[int(rng.integers(len(reader.contents)))] for _ in range(2))
    damage = reader.damages[int(rng.integers(len(reader.damages)))]
    return damage(rng, first, other)


def fault_of(reader: Reader, content: bytes, folder: Path) -> str | None:
    """What is wrong with how a reader takes this content, or None."""
    for left in folder.iterdir():
        left.unlink()
    path = folder / reader.name
    path.write_bytes(content)
    signal.alarm(PATIENCE)
    try:
        reader.read(path)
    except HeadwiseError as refusal:
        return f"a message of several lines: {refusal}" if "\n" in str(refusal) else None
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return None


def _too_slow(*_: object) -> None:
    raise SlowError(f"more than {PATIENCE} seconds")


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))


def _serve(named: dict[str, Reader], seeds: range, deadline: float, pipe: int) -> None:
    """In a child: attack with these files; report each before it is read."""
    faulthandler.disable()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _too_slow)
    _limit_memory()
    names = list(named)
    with os.fdopen(pipe, "w") as out, tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            if time.monotonic() > deadline:
                return
            name = names[seed % len(names)]
            content = content_of(named[name], seed)
            out.write(json.dumps({"seed": seed, "reader": name}) + "\n")
            out.flush()
            fault = fault_of(named[name], content, Path(folder))
            if fault is not None:
                out.write(json.dumps({"seed": seed, "reader": name, "fault": fault[:500]}) + "\n")
                out.flush()


def _attacked(named: dict[str, Reader], seeds: range, deadline: float) -> list[dict[str, Any]]:
    """What a child reported; the last file of one that died is a fault."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        with contextlib.suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            _serve(named, seeds, deadline, send)
            os._exit(0)
        os._exit(1)
    os.close(send)
    with os.fdopen(receive) as lines:
        reports = [json.loads(line) for line in lines]
    _, status = os.waitpid(child, 0)
    if status and reports:
        reports.append({**reports[-1], "fault": f"the process ended with status {status}"})
    return reports


def attack(seed: int, minutes: float, most: int | None = None) -> dict[str, Any]:
    """Attack until the time is up or ``most`` files are read; return the figures."""
    named = readers()
    deadline = time.monotonic() + 60 * minutes
    tried: Counter[str] = Counter()
    faults: list[dict[str, Any]] = []
    following, end = seed, sys.maxsize if most is None else seed + most
    while time.monotonic() < deadline and following < end:
        share = range(following, min(following + SHARE, end))
        reports = _attacked(named, share, deadline)
        found = [report for report in reports if "fault" in report]
        for report in found:
            print(json.dumps(report), file=sys.stderr, flush=True)
        faults += found
        tried.update(report["reader"] for report in reports if "fault" not in report)
        last = max((report["seed"] for report in reports), default=following)
        following = last + 1
    return {
        "files": sum(tried.values()),
        "faults": len(faults),
        "by reader": dict(tried),
        "faults by reader": dict(Counter(fault["reader"] for fault in faults)),
        "seed": seed,
    }


def main() -> None:
    """Attack until the time is up; print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", nargs=2, metavar=("READER", "SEED"), help="read one file again")
    chosen = parser.parse_args()
    if chosen.show:
        reader = readers()[chosen.show[0]]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / reader.name
            path.write_bytes(content_of(reader, int(chosen.show[1])))
            print(reader.read(path))
        return
    figures = attack(chosen.seed, chosen.minutes)
    print(json.dumps(figures, indent=1))
    raise SystemExit(1 if figures["faults"] else 0)


if __name__ == "__main__":
    main()
