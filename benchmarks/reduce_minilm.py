"""Judge MiniLM with half of its query-key rank, on three calibration samples and one judged text.

    python -m benchmarks.reduce_minilm --model FOLDER --imdb FOLDER --rows rows.jsonl

Every row is ``headwise reduce MODEL --text TEXT --kv-bytes 50% --only keys --held-out 8192`` on
reviews for training, followed by the same reviews for testing, which judge. A run goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from benchmarks.recording import provenance, read_rows
from benchmarks.scripts import run_script

from headwise.reduction import reduce

#: Characters of a calibration text, and of the text that judges.
SIZES = (500_000, 60_000)


def main() -> None:
    """Reduce the model on every sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--imdb", type=Path, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--heal", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    done = {(row["sample"], row["healed"]) for row in read_rows([asked.rows])}
    given = {"kv_bytes": "50%", "only": "keys", "held_out": 8192}
    given |= {"heal": asked.heal, "device": asked.device, "seed": 0}
    for sample, text in enumerate(texts(asked.imdb, asked.samples)):
        if (sample, asked.heal) in done:
            continue
        start = time.process_time()
        found = reduce(asked.model, text, **given)
        row = {"sample": sample, **found.as_json(), "seconds": time.process_time() - start}
        row |= {"made_by": provenance(asked.device, "float32", given["seed"])}
        print(sample, found.after, flush=True)
        with asked.rows.open("a") as out:
            out.write(json.dumps(row) + "\n")


def texts(imdb: Path, samples: int) -> list[str]:
    """Return texts that calibrate on different reviews and end in the same ones."""
    train, test = reviews(imdb / "train"), reviews(imdb / "test")
    judged = taken(test, SIZES[1])
    return [f"{taken(train, SIZES[0])}\n{judged}" for _ in range(samples)]


def reviews(folder: Path):
    """Yield the reviews of a folder in a random order."""
    places = sorted(folder.glob("*/*.txt"))
    order = torch.randperm(len(places), generator=torch.Generator().manual_seed(0))
    for index in order.tolist():
        yield places[index].read_text(encoding="utf-8").replace("<br />", " ")


def taken(source, size: int) -> str:
    """Return the next reviews, of at least this many characters together."""
    found: list[str] = []
    while sum(map(len, found)) < size:
        found.append(next(source))
    return "\n".join(found)


if __name__ == "__main__":
    run_script(main)
