"""A scan of a checkpoint beside eager attention maps and matrix_rank in float64, interleaved.

    python -m benchmarks.bench_scan_checkpoint FOLDER --text FILE --layers 0,10,20 --out FILE.json

Both sides measure the same layers in turn, so that what else the machine does hits both. The scan
computes every number of its rows; the other side computes one rank. Counts are compared.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from benchmarks.recording import provenance

from headwise.hugging_face.loading import load_model
from headwise.hugging_face.places import find_source
from headwise.probing import scan
from headwise.probing.checkpoints import Inputs


def measured(model: Any, batch: dict[str, Any], layer: int) -> dict[str, Any]:
    """One layer both ways: clock and processor seconds of each part, and their counts."""
    with torch.no_grad():
        model.set_attn_implementation("eager")
        maps, eager = _timed(
            lambda: model(**batch, output_attentions=True).attentions[layer][0].double()
        )
        found, ours = _timed(lambda: scan(model, batch, layers=[layer]))
        ranks, theirs = _timed(lambda: torch.linalg.matrix_rank(maps, atol=1e-8, rtol=0.0))
    return {
        "layer": layer,
        "scan with forward pass": ours,
        "eager forward pass": eager,
        "matrix_rank": theirs,
        "ours, certified": [(row.rank_low, row.rank_high) for row in found.rows],
        "of eager maps in float32": ranks.tolist(),
    }


def _timed(act: Callable[[], Any]) -> tuple[Any, list[float]]:
    """What a call returns, and its seconds by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    made = act()
    return made, [time.perf_counter() - clock, time.process_time() - processor]


def _sums(rows: list[dict[str, Any]], name: str) -> list[float]:
    return [sum(row[name][place] for row in rows) for place in (0, 1)]


def main() -> None:
    """Measure the layers in turn, and write the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--layers", default="0,10,20")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    source = find_source(given.model)
    model = load_model(source)
    batch = Inputs(text=given.text.read_text(), length=given.length).made_for(model, source)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = [measured(model, batch, int(layer)) for layer in given.layers.split(",")]
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ours, eager, ranks = (
        _sums(rows, name)
        for name in ("scan with forward pass", "eager forward pass", "matrix_rank")
    )
    made = {
        "provenance": provenance("cpu", "float64", 0),
        "tokens": batch["input_ids"].shape[1],
        "heads": sum(len(row["ours, certified"]) for row in rows),
        "scan less forward pass, clock and processor": [
            a - b for a, b in zip(ours, eager, strict=True)
        ],
        "matrix_rank, clock and processor": ranks,
        "kB above the model, both sides": after - before,
        "rows": rows,
    }
    given.out.write_text(json.dumps(made, indent=1))
    print({name: value for name, value in made.items() if name != "rows"})


if __name__ == "__main__":
    main()
