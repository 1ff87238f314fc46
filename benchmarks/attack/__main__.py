"""Attack headwise in every way the project knows, for a while, and print the figures.

    python -m benchmarks.attack --minutes 6 --seed 0 --record benchmarks/records/attack.json

The minutes are shared out over certified counts, damaged files, kills, compiled code, disks,
processes and the page. The exit code is 1 if anything was wrong, lost, or ended in a traceback.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from headwise.runs.provenance import code_version

#: Part -> module with its options, and its share of the minutes.
PARTS = {
    "certificates": ("benchmarks.attack.certificates", 0.1),
    "queries and keys": ("benchmarks.attack.certificates --aim pairs --largest 30", 0.05),
    "deflation": ("benchmarks.attack.certificates --aim deflation", 0.05),
    "near-hardmax": ("benchmarks.attack.certificates --aim near-hardmax", 0.05),
    "files": ("benchmarks.attack.files", 0.2),
    "kills": ("benchmarks.attack.kills", 0.25),
    "compiled code": ("benchmarks.attack.compiled", 0.05),
    "disks": ("benchmarks.attack.disks", 0.05),
    "processes": ("benchmarks.attack.processes", 0.1),
    "page": ("benchmarks.attack.page", 0.1),
}


def figures(part: str, minutes: float, seed: int) -> dict[str, Any]:
    """Run one part as a separate process; what it printed."""
    module, share = PARTS[part]
    command = [sys.executable, "-m", *module.split(), "--minutes", f"{share * minutes:.3f}"]
    done = subprocess.run(
        [*command, "--seed", str(seed)], stdout=subprocess.PIPE, text=True, check=False
    )
    start = done.stdout.rfind("\n{\n") + 1
    found = json.loads(done.stdout[start:]) if done.stdout.strip() else {}
    return {**found, "exit code": done.returncode}


def main() -> None:
    """Attack part by part; print one line each and record the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by commas")
    parser.add_argument("--record", type=Path, help="write the figures to this JSON file")
    chosen = parser.parse_args()
    found = {}
    for part in chosen.only.split(","):
        print(f"{part}: {PARTS[part][1] * chosen.minutes:.1f} minutes", file=sys.stderr, flush=True)
        found[part] = figures(part, chosen.minutes, chosen.seed)
    report = {"code": code_version(), "seed": chosen.seed, "minutes": chosen.minutes, **found}
    print(json.dumps(report, indent=1))
    if chosen.record:
        chosen.record.write_text(json.dumps(report, indent=1) + "\n")
    raise SystemExit(max(one["exit code"] for one in found.values()))


if __name__ == "__main__":
    main()
