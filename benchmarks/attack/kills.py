"""Kill drivers, workers, schedulers and databases at random; compare what is stored at the end.

Run ``python -m benchmarks.attack.kills --minutes 3``. Each round runs the same specs into a new
store, kills something with SIGKILL every moment or two, starts the driver again when it is gone,
and sometimes starts a second driver on the same store. At the end every answer must be there
once and equal, byte for byte, to one that was computed without any disturbance; no process may be
left, and no driver may have printed a traceback. The exit code is 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.attack.clusters import Cluster, members
from benchmarks.attack.database import PROGRAMS, Server
from benchmarks.attack.stored import answers, differences
from benchmarks.recording import CODE, write_whole

#: Seconds that a round may take before it counts as a hang, and that processes have to end.
PATIENCE = 300.0
GRACE = 20.0

#: Specs of one round.
SPECS = 30

#: Store and executor of a round.
SETTINGS = (
    *("sqlite/local", "sqlite/cluster", "sqlite/elsewhere"),
    *("postgres/local", "postgres/cluster", "postgres/elsewhere"),
)


@dataclass
class Figures:
    """What the rounds did, and what went wrong."""

    rounds: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    settings: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Add the figures of other rounds."""
        self.rounds += other.rounds
        self.kills += other.kills
        self.settings += other.settings
        self.rows += other.rows
        self.faults += other.faults


@dataclass
class World:
    """The servers that rounds share; each is started when it is first needed."""

    folder: Path
    database: Server | None = None
    cluster: Cluster | None = None

    def store(self, kind: str, folder: Path) -> str:
        """An empty store."""
        if kind == "sqlite":
            return str(folder / "results.db")
        self.database = self.database or Server()
        return self.database.clear("attacked")

    def executor(self, kind: str) -> str:
        """What the driver is to use."""
        if kind != "elsewhere":
            return kind
        self.cluster = self.cluster or Cluster(self.folder)
        return self.cluster.address

    def close(self) -> None:
        """End the servers."""
        if self.database:
            self.database.remove()
        if self.cluster:
            self.cluster.kill()


@dataclass
class Round:
    """One store, its drivers, and the killer."""

    folder: Path
    setting: str
    count: int
    dice: random.Random
    figures: Figures
    world: World
    drivers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    sessions: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Prepare the store and, if needed, the cluster."""
        store, executor = self.setting.split("/")
        self.store = self.world.store(store, self.folder)
        self.executor = self.world.executor(executor)

    def start(self) -> None:
        """Start a driver in its own session, so that its children can be found."""
        errors = self.folder / "errors"
        if self.world.cluster and errors.exists() and "no worker left" in errors.read_text():
            # Dask gives up workers killed while they start; their owner starts them again.
            errors.rename(self.folder / f"errors-{len(self.sessions)}")
            self.world.cluster.kill()
            self.world.cluster.start()
        command = [sys.executable, "-m", "benchmarks.attack.sums", self.executor]
        with errors.open("ab") as said:
            driver = subprocess.Popen(
                [*command, self.store, str(self.count)],
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
        self.drivers.append(driver)
        self.sessions.add(driver.pid)

    def kill_something(self) -> None:
        """Kill a driver, one of its processes, all of them, or what they depend on."""
        choices = ["driver", "group", "worker", "worker", "worker"]
        choices += ["database", "session"] * self.setting.startswith("postgres")
        choices += ["far worker", "far worker", "scheduler"] * self.setting.endswith("elsewhere")
        what = self.dice.choice(choices)
        if what in ("driver", "group", "worker"):
            self._kill_driver(what)
            return
        self.note(what, self._kill_server(what))

    def note(self, what: str, kills: int) -> None:
        """Count kills."""
        self.figures.kills[what] += kills
        self.figures.settings[self.setting] += kills

    def _kill_driver(self, what: str) -> None:
        driver = self.dice.choice(self.drivers)
        group = [pid for pid in members({driver.pid}) if pid != driver.pid]
        if what == "worker" and group:
            victims = [self.dice.choice(group)]
        elif what == "group":
            victims = [driver.pid, *group]
        else:
            what, victims = "driver", [driver.pid]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.note(what, 1)

    def _kill_server(self, what: str) -> int:
        """Kill a part of the database or of the cluster; return how many processes."""
        database, cluster = self.world.database, self.world.cluster
        if what == "session" and database:
            return database.kill_session(self.dice)
        if what == "far worker" and cluster:
            return cluster.kill_worker(self.dice)
        server = database if what == "database" else cluster
        assert server is not None
        server.kill()
        time.sleep(2 * self.dice.random())
        server.start()
        return 1

    def wait_for_workers(self) -> None:
        """Wait until a driver has started a separate process, or is gone."""
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and any(d.poll() is None for d in self.drivers):
            if len(members(self.sessions)) > len(self.drivers):
                return
            time.sleep(0.05)

    def play(self) -> None:
        """Disturb the run for a while, let it end, and compare."""
        deadline = time.monotonic() + PATIENCE
        attacks = self.dice.randint(1, 6)
        while time.monotonic() < deadline:
            self.drivers = [driver for driver in self.drivers if driver.poll() is None]
            if not self.drivers:
                if attacks <= 0 and self.is_complete():
                    break
                for _ in range(2 if self.dice.random() < 0.2 else 1):
                    self.start()
            # Some kills come while the driver starts, most when it has workers.
            if self.dice.random() < 0.2 or len(members(self.sessions)) > len(self.drivers):
                time.sleep(self.dice.choice([0.02, 0.3, 1.0]) * self.dice.random())
            else:
                self.wait_for_workers()
            if attacks > 0:
                self.kill_something()
                attacks -= 1
        else:
            self.figures.faults.append(f"{self.setting}: not done after {PATIENCE:.0f} s")
            for driver in self.drivers:
                driver.kill()
        self.end()

    def is_complete(self) -> bool:
        """Whether every spec has an answer."""
        if self.world.database:
            self.world.database.wait()
        return len(answers(self.store)) == self.count

    def end(self) -> None:
        """Compare the answers, and look for tracebacks and for processes that are left."""
        self.figures.rounds[self.setting] += 1
        self.figures.faults += differences(self.store, self.count)
        self.figures.rows += 3 * self.count
        said = "".join(file.read_text(errors="replace") for file in self.folder.glob("errors*"))
        # A child that Python was starting when its parent was killed says so in its own words.
        if any("headwise/" in part or "sums.py" in part for part in said.split("Traceback")[1:]):
            self.figures.faults.append(f"{self.setting}: a traceback: {said[-2000:]}")
        deadline = time.monotonic() + GRACE
        while (left := members(self.sessions)) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            self.figures.faults.append(f"{self.setting}: {len(left)} processes are left")
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def attack(
    settings: list[str], seed: int, minutes: float, figures: Figures, tell: Callable[[], None]
) -> None:
    """Play rounds until the time is up; add to the figures, and tell after each round."""
    deadline, number = time.monotonic() + 60 * minutes, seed
    with tempfile.TemporaryDirectory() as servers:
        world = World(Path(servers))
        try:
            while not figures.rounds or time.monotonic() < deadline:
                setting = settings[number % len(settings)]
                with tempfile.TemporaryDirectory() as folder:
                    one = (Path(folder), setting, SPECS, random.Random(number))
                    before = len(figures.faults)
                    Round(*one, figures, world).play()
                for fault in figures.faults[before:]:
                    print(json.dumps({"seed": number, "fault": fault}), file=sys.stderr, flush=True)
                number += 1
                tell()
        finally:
            world.close()


def possible() -> list[str]:
    """The settings for which this machine has a database server."""
    return [one for one in SETTINGS if PROGRAMS or not one.startswith("postgres")]


def report(figures: Figures) -> dict[str, object]:
    """The figures as they are recorded."""
    return {
        "rounds": sum(figures.rounds.values()),
        "rounds by setting": dict(figures.rounds),
        "kills": sum(figures.kills.values()),
        "kills by setting": dict(figures.settings),
        "kills by victim": dict(figures.kills),
        "rows compared": figures.rows,
        "faults": len(figures.faults),
        "what": figures.faults,
    }


def main() -> None:
    """Attack until the time is up; print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settings", default=",".join(possible()), help=", ".join(SETTINGS))
    parser.add_argument("--at-once", type=int, default=1, help="rounds at the same time")
    parser.add_argument("--out", type=Path, help="write the figures here after each round")
    chosen = parser.parse_args()
    settings, lanes = chosen.settings.split(","), [Figures() for _ in range(chosen.at_once)]

    def whole() -> dict[str, object]:
        total = Figures()
        for lane in lanes:
            total.add(lane)
        return {**report(total), "seed": chosen.seed, "minutes": chosen.minutes, "code": CODE}

    def tell() -> None:
        if chosen.out:
            write_whole(chosen.out, whole())

    def play(lane: int) -> None:
        attack(settings, chosen.seed + 10**5 * lane, chosen.minutes, lanes[lane], tell)

    with ThreadPoolExecutor(chosen.at_once) as pool:
        list(pool.map(play, range(chosen.at_once)))
    print(json.dumps(whole(), indent=1))
    raise SystemExit(1 if any(lane.faults for lane in lanes) else 0)


if __name__ == "__main__":
    main()
