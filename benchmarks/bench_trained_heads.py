"""Certified counts of a checkpoint's own heads beside plain SVD, interleaved, in processor time.

    python -m benchmarks.bench_trained_heads FOLDER --text FILE --layers 0,10,20 --out FILE.json

Trained heads lie in the middle regime: their logits are neither soft nor sharp.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from benchmarks.recording import provenance

from headwise.attention.view import AttentionView
from headwise.hugging_face.loading import load_model
from headwise.hugging_face.places import find_source
from headwise.probing import capture
from headwise.probing.checkpoints import Inputs
from headwise.spectra import LogWeights, count

EPSILON = 1e-8


def heads(folder: str, text: str, length: int, layers: set[int]) -> dict[str, LogWeights]:
    """The logits of every head of these layers, in float64."""
    source = find_source(folder)
    model = load_model(source)
    batch = Inputs(text=text, length=length).made_for(model, source)
    found: dict[str, LogWeights] = {}
    seen: list[str] = []

    def receive(name: str, view: Any) -> None:
        seen.append(name)
        if len(seen) - 1 in layers and isinstance(view, AttentionView):
            exact = replace(view, queries=view.queries.double(), keys=view.keys.double())
            for head in range(view.shape[1]):
                found[f"{len(seen) - 1}.{head}"] = exact.head(0, head).logits()

    with torch.no_grad(), capture(model, receive):
        model(**batch)
    return found


def seconds(act: Callable[[], object]) -> float:
    """Processor time of this thread."""
    start = time.thread_time()
    act()
    return time.thread_time() - start


def compared(name: str, logits: LogWeights, repeats: int) -> dict[str, Any]:
    """One head both ways, the least of the repeats, and both counts."""
    matrix = torch.softmax(logits.values, -1)
    times = [
        (seconds(lambda: torch.linalg.svdvals(matrix)), seconds(lambda: count(logits)))
        for _ in range(repeats)
    ]
    certified = count(logits).flat[0]
    by_svd = int((torch.linalg.svdvals(matrix) >= EPSILON).sum())
    return {
        "head": name,
        "svd": min(svd for svd, _ in times),
        "count": min(own for _, own in times),
        "by svd": by_svd,
        "certified": [certified.low, certified.high],
        "method": certified.method,
    }


def main() -> None:
    """Compare the heads one by one, and write the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--layers", default="0,10,20")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    chosen = {int(layer) for layer in given.layers.split(",")}
    logits = heads(given.model, given.text.read_text(), given.length, chosen)
    rows = [compared(name, each, given.repeats) for name, each in logits.items()]
    ours, theirs = (sum(row[name] for row in rows) for name in ("count", "svd"))
    made = {
        "provenance": provenance("cpu", "float64", 0),
        "heads": len(rows),
        "svd, mean seconds": theirs / len(rows),
        "count, mean seconds": ours / len(rows),
        "svd / count": theirs / ours,
        "heads slower than svd": sum(row["count"] > row["svd"] for row in rows),
        "differing counts": sum(row["certified"] != [row["by svd"]] * 2 for row in rows),
        "rows": rows,
    }
    given.out.write_text(json.dumps(made, indent=1))
    print({name: value for name, value in made.items() if name != "rows"})


if __name__ == "__main__":
    main()
