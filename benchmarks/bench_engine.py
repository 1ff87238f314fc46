"""What the engine costs per spec: start-up, hand-out, provenance and storage of no work at all.

Run with make bench-engine. Every figure is the median of several rounds; the record says how
busy the machine was.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

from headwise.progress import NoProgress
from headwise.runs import ClusterExecutor, LocalExecutor, Store, run, write_records
from headwise.runs.examples import Square
from headwise.runs.provenance import code_version

RECORD = Path(__file__).parent / "records" / "engine_cpu_202611"
ROUNDS = 5


def milliseconds_per_spec(executor_of, specs: int) -> list[float]:
    """Wall time per spec between the first outcome and the last, so that starting is apart."""
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "r.db") as store:
            plan = store.plan([Square(number=number) for number in range(specs)])
            clock = Clock()
            run(plan, executor_of(), store, progress=clock)
            rounds.append(1000 * (clock.times[-1] - clock.times[0]) / (specs - 1))
    return rounds


class Clock(NoProgress):
    """Notes when each outcome was stored."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def advance(self, steps: int = 1) -> None:
        """Note the time."""
        self.times.append(time.perf_counter())


def seconds_to_start(executor_of) -> list[float]:
    """Wall time from nothing to the first stored outcome."""
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "r.db") as store:
            start, clock = time.perf_counter(), Clock()
            run(store.plan([Square(number=1)]), executor_of(), store, progress=clock)
            rounds.append(clock.times[0] - start)
    return rounds


def seconds_with_many_rows(count: int) -> dict[str, list[float]]:
    """Loading and exporting a store of many rows."""
    from headwise.runs.attempt import attempt

    specs = [Square(number=number) for number in range(count)]
    found = {"load": [], "load by spec": [], "plan": [], "export to CSV": []}
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "r.db") as store:
        for spec in specs:
            store.put(spec, attempt(spec))
        for _ in range(ROUNDS):
            for name, work in (
                ("load", store.records),
                ("load by spec", lambda: store.records_of(specs)),
                ("plan", lambda: store.plan(specs)),
            ):
                start = time.perf_counter()
                work()
                found[name].append(time.perf_counter() - start)
            records = store.records()
            start = time.perf_counter()
            write_records(records.values(), Path(folder) / "rows.csv")
            found["export to CSV"].append(time.perf_counter() - start)
    return found


def main() -> None:
    """Measure, write the record, and print it."""
    before = os.getloadavg()
    figures = {
        # First: the first round also starts the process that workers are forked from.
        "local executor: s to the first outcome": seconds_to_start(
            lambda: LocalExecutor(workers=2)
        ),
        "local executor, 1 worker: ms per spec": milliseconds_per_spec(
            lambda: LocalExecutor(workers=1), 1000
        ),
        "local executor, 2 workers: ms per spec": milliseconds_per_spec(
            lambda: LocalExecutor(workers=2), 1000
        ),
        "Dask, 2 workers: ms per spec": milliseconds_per_spec(
            lambda: ClusterExecutor("local:2"), 200
        ),
        "Dask: s to the first outcome": seconds_to_start(lambda: ClusterExecutor("local:2")),
    }
    many = seconds_with_many_rows(10_000)
    figures |= {f"10,000 rows, {name}: s": rounds for name, rounds in many.items()}
    record = {
        "topic": "engine",
        "code": code_version(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load before": round(before[0], 2),
        "load after": round(os.getloadavg()[0], 2),
        "rounds": {name: [round(value, 4) for value in found] for name, found in figures.items()},
    }
    RECORD.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    RECORD.with_suffix(".md").write_text(as_markdown(record))
    print(as_markdown(record))


def as_markdown(record: dict) -> str:
    """The record as a table."""
    lines = [
        "# What the engine costs",
        "",
        f"`make bench-engine`, headwise {record['code']}, Python {record['python']}, "
        f"{record['processors']} processor cores with other work on them (load average "
        f"{record['load before']} before, {record['load after']} after). Median, least and most "
        f"of {ROUNDS} rounds. A spec here is one multiplication, so all of it is overhead: "
        "handing out, asking, provenance, one SQLite transaction per spec. The slowest start of "
        "the local executor is the first, which also starts the process that workers come from.",
        "",
        "| | median | least | most |",
        "|---|---|---|---|",
    ]
    for name, rounds in record["rounds"].items():
        values = (statistics.median(rounds), min(rounds), max(rounds))
        lines.append(f"| {name} | " + " | ".join(f"{value:.3g}" for value in values) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
