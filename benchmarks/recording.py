"""What every benchmark shares: interleaved timing, and records that say what made them."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import torch

import headwise

RECORDS = Path(__file__).parent / "records"

#: One line of a JSON-lines file.
Row = dict[str, Any]


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """The rows of JSON-lines files; a file that is not there has none."""
    return [
        json.loads(line)
        for path in paths
        if path.exists()
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def interleaved(contestants: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median seconds of each contestant, taking turns so that all meet the same weather."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for contestant in contestants.values():
        contestant()
    for _ in range(repeats):
        for name, contestant in contestants.items():
            _wait()
            start = time.perf_counter()
            contestant()
            _wait()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


#: Names the revision where git cannot: in a copy that left its history behind.
REVISION = "HEADWISE_REVISION"


def code_version() -> str:
    """The package version and the revision it stands at, by git or by HEADWISE_REVISION."""
    if os.environ.get(REVISION):
        return f"{headwise.__version__}+{os.environ[REVISION]}"
    words = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        folder = Path(__file__).parent
        found = subprocess.run(words, capture_output=True, text=True, check=True, cwd=folder)
    except (OSError, subprocess.CalledProcessError):
        return headwise.__version__
    return f"{headwise.__version__}+{found.stdout.strip()}"


#: The code that runs is what was read at the start, whatever is changed before the end.
CODE = code_version()


def hardware(device: str) -> str:
    """The device in words, with nothing that names one machine."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"{torch.get_num_threads()} threads, {platform.machine()}"


def told(word: str) -> str:
    """A word of a command, less the folders of one machine."""
    return word.rsplit("/", 1)[-1] if word.startswith("/") else word


def provenance(device: str, dtype: str, seed: int) -> dict[str, object]:
    """What a reader needs to make the record again."""
    return {
        "command": " ".join(["python", Path(sys.argv[0]).name, *map(told, sys.argv[1:])]),
        "code": CODE,
        "torch": torch.__version__,
        "device": hardware(device),
        "dtype": dtype,
        "seed": seed,
        "date": date.today().isoformat(),
    }


def write_record(folder: Path, topic: str, record: dict[str, object], table: str) -> Path:
    """Write <topic>_<device>_<yyyymm>.json and .md; the table is what people read."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{topic}_{date.today():%Y%m}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    facts = "\n".join(f"- {key}: {value}" for key, value in record["provenance"].items())
    path.with_suffix(".md").write_text(f"# {topic}\n\n{facts}\n\n{table}\n")
    return path


def write_whole(path: Path, report: dict[str, Any]) -> None:
    """Write a JSON file whole or not at all, while it may be read or its writer killed."""
    draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    draft.write_text(json.dumps(report, indent=1) + "\n")
    draft.replace(path)


def markdown_table(rows: list[dict[str, object]]) -> str:
    """Rows as a table; numbers keep three figures."""
    names = list(rows[0])
    lines = [names, ["---"] * len(names)]
    lines += [[_cell(row[name]) for name in names] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
