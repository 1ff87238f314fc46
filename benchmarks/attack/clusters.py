"""A Dask scheduler and its workers, as somebody else would have started them, to be killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.attack.database import free_port

#: Seconds that a scheduler may take to start.
STARTING = 60.0


@dataclass
class Cluster:
    """A scheduler and two workers on the loopback interface."""

    folder: Path
    port: int = field(default_factory=free_port)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start it."""
        self.start()

    @property
    def address(self) -> str:
        """What drivers connect to; the same after a restart."""
        return f"tcp://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the scheduler and its workers, and wait for the scheduler."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        here = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
        for words in (("scheduler", "--port", self.port), ("worker", "--nworkers", 2)):
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *map(str, words), *here],
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.started.append(process)
        deadline = time.monotonic() + STARTING
        while not (file.exists() and file.read_text()):
            if time.monotonic() > deadline:
                raise TimeoutError("the scheduler does not start")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill everything."""
        for pid in members({process.pid for process in self.started}):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while self.started:
            self.started.pop().wait()

    def kill_worker(self, dice: random.Random) -> bool:
        """Kill one process of the workers; their nanny starts another."""
        nanny = self.started[-1].pid
        workers = [pid for pid in members({nanny}) if pid != nanny]
        if not workers:
            return False
        with suppress(ProcessLookupError):
            os.kill(dice.choice(workers), signal.SIGKILL)
            return True
        return False


def members(sessions: set[int]) -> list[int]:
    """The living processes of these sessions."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ProcessLookupError):
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if os.getsid(int(entry.name)) in sessions and state != "Z":
                    found.append(int(entry.name))
    return found
