"""Kill drivers, workers and whole groups at random moments; compare what is stored at the end.

Run ``python -m benchmarks.attack.kills --minutes 3``. Each round runs the same specs into a new
store, kills something with SIGKILL every moment or two, starts the driver again when it is gone,
and sometimes starts a second driver on the same store. At the end every answer must be there
once and equal, byte for byte, to one that was computed without any disturbance; no process may be
left. The exit code is 1 if anything is lost, doubled, different or left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.attack.sums import specs

from headwise.runs import Store

#: Seconds that a round may take before it counts as a hang, and that processes have to end.
PATIENCE = 300.0
GRACE = 20.0


@dataclass
class Figures:
    """What the rounds did, and what went wrong."""

    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add the figures of other rounds."""
        self.rounds += other.rounds
        self.kills += other.kills
        self.rows += other.rows
        self.faults += other.faults


@dataclass
class Round:
    """One store, its drivers, and the killer."""

    folder: Path
    executor: str
    count: int
    dice: random.Random
    figures: Figures
    drivers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    sessions: set[int] = field(default_factory=set)

    @property
    def store(self) -> Path:
        """Where the answers go."""
        return self.folder / "results.db"

    def start(self) -> None:
        """Start a driver in its own session, so that its children can be found."""
        command = [sys.executable, "-m", "benchmarks.attack.sums", self.executor]
        with (self.folder / "errors").open("ab") as errors:
            driver = subprocess.Popen(
                [*command, str(self.store), str(self.count)],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        self.drivers.append(driver)
        self.sessions.add(driver.pid)

    def kill_something(self) -> None:
        """Kill a driver, one of its processes, or all of them at once."""
        driver = self.dice.choice(self.drivers)
        group = [pid for pid in _members({driver.pid}) if pid != driver.pid]
        what = self.dice.choice(["driver", "group", "worker", "worker", "worker"])
        if what == "worker" and group:
            victims = [self.dice.choice(group)]
        elif what == "group":
            victims = [driver.pid, *group]
        else:
            what, victims = "driver", [driver.pid]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.figures.kills[what] += 1

    def wait_for_workers(self) -> None:
        """Wait until a driver has started a separate process, or is gone."""
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and any(d.poll() is None for d in self.drivers):
            if len(_members(self.sessions)) > len(self.drivers):
                return
            time.sleep(0.05)

    def play(self) -> None:
        """Disturb the run for a while, let it end, and compare."""
        deadline = time.monotonic() + PATIENCE
        attacks = self.dice.randint(1, 6)
        while time.monotonic() < deadline:
            self.drivers = [driver for driver in self.drivers if driver.poll() is None]
            if not self.drivers:
                if attacks <= 0 and len(answers(self.store)) == self.count:
                    break
                for _ in range(2 if self.dice.random() < 0.2 else 1):
                    self.start()
            # Some kills come while the driver starts, most when it has workers.
            if self.dice.random() < 0.2 or len(_members(self.sessions)) > len(self.drivers):
                time.sleep(self.dice.choice([0.02, 0.3, 1.0]) * self.dice.random())
            else:
                self.wait_for_workers()
            if attacks > 0:
                self.kill_something()
                attacks -= 1
        else:
            self.figures.faults.append(f"{self.executor}: not done after {PATIENCE:.0f} s")
        self.end()

    def end(self) -> None:
        """Compare the answers, and look for processes that are left."""
        self.figures.rounds += 1
        self.figures.faults += differences(self.store, self.count)
        self.figures.rows += 3 * self.count
        deadline = time.monotonic() + GRACE
        while (left := _members(self.sessions)) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            self.figures.faults.append(f"{self.executor}: {len(left)} processes are left")
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def answers(path: Path) -> dict[str, tuple[str, str]]:
    """Spec and rows of every answer as they are written in the store, by key."""
    if not path.exists():
        return {}
    with Store.open(path):
        pass
    query = "SELECT key, spec, rows FROM headwise_results WHERE failure IS NULL"
    connection = sqlite3.connect(path)
    try:
        found = connection.execute(query).fetchall()
    finally:
        connection.close()
    by_key = {key: (spec, rows) for key, spec, rows in found}
    if len(by_key) != len(found):
        raise AssertionError("a key is stored twice")
    return by_key


def differences(path: Path, count: int) -> list[str]:
    """What is lost or different, against answers that nothing disturbed."""
    found = answers(path)
    wanted = {spec.key: spec for spec in specs(count)}
    lost = [f"{key} is lost" for key in wanted.keys() - found.keys()]
    strange = [f"{key} was never asked" for key in found.keys() - wanted.keys()]
    other = [
        f"{key} is different: {found[key][1]}"
        for key in wanted.keys() & found.keys()
        if found[key][1] != _written(wanted[key].model_copy(update={"seconds": 0.0}).ask())
    ]
    return lost + strange + other


def _written(rows: object) -> str:
    return json.dumps(rows, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _members(sessions: set[int]) -> list[int]:
    """The living processes of these sessions."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ProcessLookupError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if os.getsid(int(entry.name)) in sessions and state != "Z":
                    found.append(int(entry.name))
    return found


def attack(executors: list[str], seed: int, minutes: float, count: int = 30) -> Figures:
    """Play rounds until the time is up; return the figures."""
    deadline, figures, number = time.monotonic() + 60 * minutes, Figures(), seed
    while figures.rounds == 0 or time.monotonic() < deadline:
        with tempfile.TemporaryDirectory() as folder:
            executor = executors[number % len(executors)]
            one = Round(Path(folder), executor, count, random.Random(number), figures)
            before = len(figures.faults)
            one.play()
            for fault in figures.faults[before:]:
                print(json.dumps({"seed": number, "fault": fault}), file=sys.stderr, flush=True)
        number += 1
    return figures


def report(figures: Figures) -> dict[str, object]:
    """The figures as they are recorded."""
    return {
        "rounds": figures.rounds,
        "kills": sum(figures.kills.values()),
        "kills by victim": dict(figures.kills),
        "rows compared": figures.rows,
        "faults": len(figures.faults),
    }


def main() -> None:
    """Attack until the time is up; print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--executors", default="local,cluster", help="by commas")
    parser.add_argument("--at-once", type=int, default=1, help="rounds at the same time")
    chosen = parser.parse_args()
    executors, whole = chosen.executors.split(","), Figures()
    with ThreadPoolExecutor(chosen.at_once) as pool:
        seeds = [chosen.seed + 10**5 * lane for lane in range(chosen.at_once)]
        for figures in pool.map(lambda seed: attack(executors, seed, chosen.minutes), seeds):
            whole.add(figures)
    print(json.dumps({**report(whole), "seed": chosen.seed}, indent=1))
    raise SystemExit(1 if whole.faults else 0)


if __name__ == "__main__":
    main()
