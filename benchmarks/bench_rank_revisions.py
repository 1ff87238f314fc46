"""What certified counts cost in this checkout beside another one, on the rows of bench_rank.

    git worktree add /tmp/before COMMIT
    python benchmarks/bench_rank_revisions.py /tmp/before --out FILE

Each checkout counts in a process of its own. The two take turns, so both see the same machine, and
their counts are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]

#: Runs in each checkout: a number asks for one timed count of that row, "counts" for all counts.
WORKER = """
import json, sys, time
import torch
from bench_rank import CPU, logits
from headwise.spectra import LogWeights, count
torch.set_num_threads(int(sys.argv[1]))
sources = [LogWeights(logits(work, "cpu")) for work in CPU]
for line in sys.stdin:
    if line.strip() == "counts":
        print(json.dumps([count(source).values.tolist() for source in sources]), flush=True)
        continue
    source = sources[int(line)]
    start = time.perf_counter(), time.process_time()
    count(source)
    print(json.dumps([time.perf_counter() - start[0], time.process_time() - start[1]]), flush=True)
"""


class Checkout:
    """A process that counts with the code of one checkout."""

    def __init__(self, folder: Path, threads: int) -> None:
        paths = os.pathsep.join(map(str, (folder / "src", folder / "benchmarks")))
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(threads)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, what: str | int) -> Any:
        """Return the counts of every row, or wall and processor seconds of one count."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def compare(before: Checkout, now: Checkout, row: int, repeats: int) -> dict[str, float]:
    """Time both in turns and return medians, and the median of the ratios of neighbours."""
    pairs = [(before.ask(row), now.ask(row)) for _ in range(repeats)]
    return {
        "before ms": 1e3 * statistics.median(b[0] for b, _ in pairs),
        "now ms": 1e3 * statistics.median(n[0] for _, n in pairs),
        "now / before": statistics.median(n[0] / b[0] for b, n in pairs),
        "now / before, processor time": statistics.median(n[1] / b[1] for b, n in pairs),
    }


def main() -> None:
    """Compare the counts, then the times of every row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="another checkout of this repository")
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--only", default="", help="rows whose name begins with this")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    from bench_rank import CPU
    from recording import provenance

    checkouts = Checkout(given.before, given.threads), Checkout(HERE, given.threads)
    counts = [one.ask("counts") for one in checkouts]
    if counts[0] != counts[1]:
        raise SystemExit("the counts of the two checkouts differ")
    rows = []
    for number, work in enumerate(CPU):
        if not work.name.startswith(given.only):
            continue
        for one in checkouts:
            one.ask(number)
        rows.append({"work": work.name, "n": work.n, **compare(*checkouts, number, given.repeats)})
        print(json.dumps(rows[-1]), flush=True)
    revision = ["git", "-C", str(given.before), "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(revision, capture_output=True, text=True, check=True).stdout.strip()
    record = {"provenance": provenance("cpu", "float64", 0), "before": found, "rows": rows}
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
