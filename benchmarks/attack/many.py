"""Attack the certified counts with many processes at once, and keep one file of figures.

    python -m benchmarks.attack.many --processes cpu=12,cuda=2 --minutes 8 --seed 1 --out FILE.json

Every process has one thread and seeds of its own. FILE.json is written again every few seconds, so
that a run that is stopped keeps what it knew. Each wrong count is in it with family, seed, method,
tolerance, truth and answer. Repeat one with ``--replay SEED --device cpu``. The exit code is 1 if a
count is wrong, a matrix failed or a process ended early.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from benchmarks.attack.certificates import AIMS, attack, target
from benchmarks.recording import CODE, hardware, write_whole

#: Seeds for each process.
SEEDS = 10**7

#: Seconds between two writings of the file.
PAUSE = 3.0


@dataclass
class Lane:
    """One process and what it has printed."""

    device: str
    seed: int
    process: subprocess.Popen[str]
    so_far: dict[str, Any] = field(default_factory=dict)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, device: str, seed: int, chosen: argparse.Namespace) -> Lane:
        """Start a process with one thread."""
        command = [sys.executable, "-m", "benchmarks.attack.certificates"]
        options = {name: getattr(chosen, name) for name in ("minutes", "largest", "aim")}
        for name, value in {**options, "seed": seed, "device": device, "every": PAUSE}.items():
            command += [f"--{name}", str(value)]
        one = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | dict.fromkeys(one, "1"),
        )
        return cls(device, seed, process)

    def read(self) -> None:
        """Read until the process ends; what is no finding is kept as its last words."""
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._take(line)

    def _take(self, line: str) -> None:
        news: Any = None
        with suppress(ValueError):
            news = json.loads(line)
        match news:
            case {"so far": figures}:
                self.so_far = figures
            case {"wrong": one}:
                self.wrong.append(one)
            case {"failed": one}:
                self.failed.append(one)
            case _:
                self.other = [*self.other[-9:], line.rstrip()]

    @property
    def ended_early(self) -> bool:
        """Whether the process is gone without its last figures, which know every finding."""
        told = len(self.wrong) + len(self.failed)
        known = self.so_far.get("wrong", -1) + self.so_far.get("failed", 0)
        code = self.process.poll()
        return code is not None and (code != int(told > 0) or known != told)


def summary(lanes: list[Lane], device: str) -> dict[str, Any]:
    """The figures of all processes on one device."""
    own = [lane for lane in lanes if lane.device == device]
    by_method: Counter[str] = Counter()
    for lane in own:
        by_method.update(lane.so_far.get("by method", {}))
    return {
        "device": hardware(device),
        "processes": len(own),
        "seeds": [lane.seed for lane in own],
        **{
            name: sum(lane.so_far.get(name, 0) for lane in own)
            for name in ("matrices", "counts checked", "of them exact")
        },
        "wrong": sum(len(lane.wrong) for lane in own),
        "failed": sum(len(lane.failed) for lane in own),
        "ended early": sum(lane.ended_early for lane in own),
        "by method": dict(by_method),
        "wrong counts": [one for lane in own for one in lane.wrong],
        "failures": [one for lane in own for one in lane.failed],
        "last words": [lane.other for lane in own if lane.ended_early],
    }


def attack_with_many(processes: dict[str, int], chosen: argparse.Namespace) -> dict[str, Any]:
    """Start the processes, write their sums while they run, and return the last report."""
    lanes: list[Lane] = []
    for device in (device for device, count in processes.items() for _ in range(count)):
        seed = chosen.seed + SEEDS * len(lanes)
        lanes.append(Lane.start(device, seed, chosen))
    readers = [threading.Thread(target=lane.read, daemon=True) for lane in lanes]
    for reader in readers:
        reader.start()
    start = time.monotonic()

    def report() -> dict[str, Any]:
        return {
            "command": " ".join(["python -m benchmarks.attack.many", *sys.argv[1:]]),
            "code": CODE,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "seconds": round(time.monotonic() - start, 1),
            "parts": {device: summary(lanes, device) for device in processes},
        }

    try:
        while any(reader.is_alive() for reader in readers):
            time.sleep(PAUSE)
            write_whole(chosen.out, report())
    finally:
        for lane in lanes:
            if lane.process.poll() is None:
                lane.process.kill()
        for reader in readers:
            reader.join(PAUSE)
        write_whole(chosen.out, report())
    return report()


def replay(chosen: argparse.Namespace) -> bool:
    """Attack one matrix again; print what is wrong, and return whether anything is."""
    one = target(chosen.replay, chosen.largest, chosen.aim)
    wrong = [asdict(found) for found in attack(one, chosen.device, Counter())]
    print(json.dumps(wrong, indent=1))
    return bool(wrong)


def main() -> None:
    """Attack, or replay one seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", default="cpu=2", help="how many on which device, by commas")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=50, help="side of the largest matrix")
    parser.add_argument("--aim", choices=AIMS, default="all", help="which matrices")
    parser.add_argument("--out", type=Path, default=Path("counts.json"))
    parser.add_argument("--replay", type=int, help="attack the matrix with this seed alone")
    parser.add_argument("--device", default="cpu", help="with --replay")
    chosen = parser.parse_args()
    if chosen.replay is not None:
        raise SystemExit(int(replay(chosen)))
    # A stop at a time limit ends like an interrupt: with the figures written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    pairs = (part.split("=") for part in chosen.processes.split(","))
    report = attack_with_many({device: int(count) for device, count in pairs}, chosen)
    for part in report["parts"].values():
        print(json.dumps({name: part[name] for name in list(part)[:9]}))
    parts = report["parts"].values()
    raise SystemExit(int(any(p["wrong"] or p["failed"] or p["ended early"] for p in parts)))


if __name__ == "__main__":
    main()
