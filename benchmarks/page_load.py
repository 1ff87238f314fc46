"""Twenty clients look at the page for a minute: errors, times, and the memory of the server.

python -m benchmarks.page_load --clients 20 --seconds 60 --rows 10000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from headwise.probing.stored import ScannedHead
from headwise.runs import Answer, Store
from headwise.runs.attempt import stamp

#: What a client asks for, each as the page does.
ADDRESSES = (
    "/ask",
    "/law",
    "/exhibits",
    "/static/style.css",
    "/api/law?length=1024&mask=causal&percent=90&head_dim=16",
    "/api/head?length=64&head_dim=16&seed={seed}",
    "/api/bounds?width=768&error=0.{error:02d}",
    "/api/verdicts",
    "/api/exhibits/rank2026/table_2",
    "/api/models",
    "/api/jobs",
    "/api/runs",
)


def fill(place: Path, rows: int) -> None:
    """Store this many heads of one model, without pictures."""
    numbers = {"tokens": 128.0, "head_dim": 64, "coarse_rank": 7.0, "rank_low": 9, "rank_high": 9}
    with Store.open(place) as store:
        known = None
        for number in range(rows):
            layer, head = f"layer.{number // 100}", number % 100
            spec = ScannedHead(model="m", inputs="i", layer=layer, head=head, longest_dense=2048)
            known = known or stamp(spec, "cpu", 0.0)
            store.put(spec, Answer(spec.key, ({"layer": layer, "head": head} | numbers,), known))


def client(address: str, until: float, seconds: dict[str, list[float]], faults: list[str]) -> None:
    """Ask for one thing after the other, as a person who never rests."""
    draw = random.Random(threading.get_ident())
    while time.monotonic() < until:
        asked = draw.choice(ADDRESSES)
        filled = asked.format(seed=draw.randrange(1000), error=draw.randrange(1, 50))
        start = time.perf_counter()
        try:
            with urllib.request.urlopen(address + filled, timeout=60) as answer:
                answer.read()
        except OSError as error:
            faults.append(f"{filled}: {error}")
        seconds.setdefault(asked, []).append(time.perf_counter() - start)
        time.sleep(draw.random() * 0.5)


def memory(process: int) -> dict[str, float]:
    """Largest resident memory and processor seconds of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    peak = int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024
    return {"peak_mb": peak, "cpu_s": (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")}


def main() -> None:
    """Serve, ask, and print one JSON object."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--clients", type=int, default=20)
    asked.add_argument("--seconds", type=float, default=60)
    asked.add_argument("--rows", type=int, default=10_000)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "results.db"
        fill(place, given.rows)
        serving = [sys.executable, "-m", "headwise", "serve", "--no-browser", "--port", "0"]
        started = time.perf_counter()
        with subprocess.Popen(
            [*serving, "--store", str(place)], stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            address = re.search(r"http://[^/]+", server.stdout.readline()).group()
            first = {"started_s": time.perf_counter() - started, **memory(server.pid)}
            seconds, faults = _looked(address, given.clients, given.seconds)
            found = {"start": first, "end": memory(server.pid), "faults": faults[:5]}
            server.kill()
    found["requests"] = sum(map(len, seconds.values()))
    found["failed"] = len(faults)
    found["median_ms"] = {k: round(1000 * statistics.median(v), 1) for k, v in seconds.items()}
    print(json.dumps(vars(given) | found, indent=1))


def _looked(
    address: str, clients: int, duration: float
) -> tuple[dict[str, list[float]], list[str]]:
    seconds: dict[str, list[float]] = {}
    faults: list[str] = []
    until = time.monotonic() + duration
    threads = [
        threading.Thread(target=client, args=(address, until, seconds, faults))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seconds, faults


if __name__ == "__main__":
    main()
