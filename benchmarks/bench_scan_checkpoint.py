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
from pathlib import Path
from typing import Any

import torch
from benchmarks.recording import code_version

from headwise.hugging_face.loading import find_source, load_model
from headwise.probing import Inputs, scan


def measured(model: Any, batch: dict[str, Any], layer: int) -> dict[str, Any]:
    """One layer both ways: seconds of each, without the forward pass, and their counts."""
    with torch.no_grad():
        start = time.perf_counter()
        model(**batch)
        forward = time.perf_counter() - start
        start = time.perf_counter()
        found = scan(model, batch, layers=[layer])
        ours = time.perf_counter() - start
        start = time.perf_counter()
        model.set_attn_implementation("eager")
        maps = model(**batch, output_attentions=True).attentions[layer][0]
        eager = time.perf_counter() - start
        start = time.perf_counter()
        ranks = torch.linalg.matrix_rank(maps.double(), atol=1e-8, rtol=0.0)
        theirs = time.perf_counter() - start
    return {
        "layer": layer,
        "forward": forward,
        "scan": ours,
        "eager": eager,
        "matrix_rank": theirs,
        "ours, certified": [(row.rank_low, row.rank_high) for row in found.rows],
        "of eager maps in float32": ranks.tolist(),
    }


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
    made = {
        "code": code_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "tokens": batch["input_ids"].shape[1],
        "scan / layer": sum(r["scan"] - r["forward"] for r in rows) / len(rows),
        "matrix_rank / layer": sum(r["matrix_rank"] for r in rows) / len(rows),
        "kB above the model, both sides": after - before,
        "rows": rows,
    }
    made["ratio"] = made["matrix_rank / layer"] / made["scan / layer"]
    given.out.write_text(json.dumps(made, indent=1))
    print({name: value for name, value in made.items() if name != "rows"})


if __name__ == "__main__":
    main()
