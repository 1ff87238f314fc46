"""Attack with threads, forks, processes inside processes, and Ctrl-C at any moment.

Run ``python -m benchmarks.attack.processes --minutes 1``. Counts from many threads at once, and
from a process forked after headwise was used, must equal those of one thread. Work inside the work
of a worker must be answered, or refused in one line. What a command that Ctrl-C ends must do is in
``interrupts``. The exit code is 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from benchmarks.attack.certificates import target
from benchmarks.attack.interrupts import interrupt
from benchmarks.attack.sums import Sums

from headwise.errors import HeadwiseError
from headwise.runs import LocalExecutor, Store, run
from headwise.spectra import count

#: Seconds that anything here may take before it counts as a hang.
PATIENCE = 120.0


def ranks(seed: int) -> list[list[int]]:
    """Counts of a few matrices, by two methods."""
    sources = [target(seed + number, 40).source("cpu") for number in range(4)]
    return [
        [int(end) for end in (found.low, found.high)]
        for source in sources
        for found in (count(source), count(source, method="svd"))
    ]


def threads(dice: random.Random) -> str | None:
    """Count the same matrices from several threads at once, with one or several torch threads."""
    seed = dice.randrange(10**6)
    if dice.random() < 0.5:
        return threads_of(seed)
    # In a process of its own: no process may fork after torch has used several threads.
    code = "import sys; from benchmarks.attack import processes as p; import torch;"
    code += f"torch.set_num_threads({dice.choice((2, 4))}); sys.exit(p.threads_of({seed}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return None if done.returncode == 0 else f"threads: {done.stderr[-500:]}"


def threads_of(seed: int) -> str | None:
    """Count from eight threads and wait for their end; say what differs from one thread."""
    wanted, before = ranks(seed), _tasks()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ranks(seed), range(16)))
    # A joined thread may still be ending; torch hangs in a process that is forked meanwhile.
    end = time.monotonic() + PATIENCE
    while _tasks() > before and time.monotonic() < end:
        time.sleep(0.001)
    return None if all(one == wanted for one in found) else "threads: another count"


def _tasks() -> int:
    """Threads of this process that the system knows; zero where it does not tell."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else 0


def fork(dice: random.Random) -> str | None:
    """Count in a process forked after use, with a thread running that does not count."""
    seed = dice.randrange(10**6)
    wanted = json.dumps(ranks(seed)).encode()
    stop = threading.Event()
    waiting = threading.Thread(target=stop.wait)
    waiting.start()
    try:
        return _forked(seed, wanted)
    finally:
        stop.set()
        waiting.join()


def _forked(seed: int, wanted: bytes) -> str | None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE))
        try:
            os.write(write, json.dumps(ranks(seed)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        return f"fork: the child ended with {os.waitstatus_to_exitcode(status)}"
    return None if found == wanted else "fork: another count"


def _inside(folder: str, results: multiprocessing.SimpleQueue[str]) -> None:
    """Run specs with workers of its own."""
    try:
        with Store.open(Path(folder) / "inner.db") as store:
            work = store.plan([Sums(number=1, seconds=0.0)])
            results.put(str(run(work, LocalExecutor(workers=1), store)))
    except HeadwiseError as error:
        results.put(f"refused: {error}")
    except BaseException as error:
        results.put(f"{type(error).__name__}: {error}")


def nested(dice: random.Random) -> str | None:
    """Start workers from a process that is a worker itself."""
    daemon = dice.random() < 0.5
    context = multiprocessing.get_context(dice.choice(("fork", "spawn")))
    with tempfile.TemporaryDirectory() as folder:
        results = context.SimpleQueue()
        process = context.Process(target=_inside, args=(folder, results), daemon=daemon)
        process.start()
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            return "nested: a hang"
        said = results.get() if not results.empty() else f"exit code {process.exitcode}"
    good = said.startswith("refused") and "\n" not in said if daemon else said.startswith("1 answ")
    return None if good else f"nested, daemon={daemon}: {said[:300]}"


KINDS: dict[str, Callable[[random.Random], str | None]] = {
    "threads": threads,
    "fork": fork,
    "nested": nested,
    "interrupt": interrupt,
}


def attack(seed: int, minutes: float, kinds: tuple[str, ...] = tuple(KINDS)) -> dict[str, object]:
    """Attack until the time is up, each kind at least once; return the figures."""
    # With more threads torch itself hangs in a forked process, whatever it is asked.
    torch.set_num_threads(1)
    deadline, number = time.monotonic() + 60 * minutes, seed
    played, faults = Counter[str](), []
    while time.monotonic() < deadline or number < seed + len(kinds):
        kind = kinds[number % len(kinds)]
        fault = KINDS[kind](random.Random(number))
        played[kind] += 1
        if fault:
            faults.append({"seed": number, "fault": fault})
            print(json.dumps(faults[-1]), flush=True)
        number += 1
    return {"rounds": dict(played), "faults": len(faults), "seed": seed}


def main() -> None:
    """Attack until the time is up; print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS), help="by commas")
    chosen = parser.parse_args()
    found = attack(chosen.seed, chosen.minutes, tuple(chosen.kinds.split(",")))
    print(json.dumps(found, indent=1))
    raise SystemExit(1 if found["faults"] else 0)


if __name__ == "__main__":
    main()
