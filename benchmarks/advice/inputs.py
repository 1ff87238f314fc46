"""What an adviser would see of each task before training, stored so that rules can be judged again.

    python -m benchmarks.advice.inputs [--tasks …] [--data FOLDER]

For each task: the adviser's own evidence (rank curves of the tokens from the model's start and
from the paper's, statistics of the tokens), and the first layer of the very model that the sweep
trains, measured at its start.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from benchmarks.advice.regression import MaskedPatches, NextState, NextWindow, NoisyPatches
from benchmarks.advice.sweep import task_names
from benchmarks.advice.tasks import BENCHES, Bench, Loaded
from benchmarks.recording import Row, provenance, read_rows

from headwise.advice.curves import RankCurve
from headwise.advice.evidence import Evidence, Sampling, measured_evidence
from headwise.advice.tokens.source import Reading
from headwise.advice.tokens.statistics import TokenStatistics
from headwise.advice.tokens.token_set import TokenSet, token_set, with_vocabulary
from headwise.attention import HeadGeometry
from headwise.data import trivial_error
from headwise.data.incontext import InContext
from headwise.data.neighbours import FarthestNeighbour
from headwise.probing import views
from headwise.spectra import measure

#: Seeds and sequences over which default initialisation is measured.
SEEDS, SEQUENCES = (0, 1, 2, 3), 4

RECORD = Path(__file__).parent / "records" / "inputs.jsonl"


def token_set_of(bench: Bench, loaded: Loaded) -> TokenSet:
    """The tokens as a person would hand them to the adviser."""
    found = token_set(loaded.tokens, bench.shape.width, bench.name)
    return with_vocabulary(found, loaded.vocabulary) if loaded.vocabulary else found


def inputs_of(bench: Bench, folder: Path) -> Row:
    """One line of the record."""
    start = time.monotonic()
    loaded = bench.load(folder, "cpu")
    evidence = measured_evidence(token_set_of(bench, loaded), Reading(), Sampling(0))
    evidence_seconds = time.monotonic() - start
    return {
        "task": bench.name,
        "trivial": trivial(loaded),
        "evidence": asdict(evidence),
        "evidence_seconds": round(evidence_seconds, 1),
        "own_start": [own_start(bench, loaded, g) for g in bench.geometries("heads")],
        **provenance("cpu", "float64", 0),
        "command": "python -m benchmarks.advice.inputs",
    }


def trivial(loaded: Loaded) -> float:
    """What can be had without attention: the score of a guess, or the least-squares error."""
    task = loaded.task
    if isinstance(task, FarthestNeighbour):
        return trivial_error(task.width, task.tokens, task.points)
    if isinstance(task, InContext):
        return float(task.dimensions)
    if isinstance(task, MaskedPatches | NextState | NextWindow | NoisyPatches):
        return task.trivial()
    labels = task.examine(10**6, torch.Generator()).targets[0]
    return float(labels.bincount().max() / len(labels))


@torch.no_grad()
def own_start(bench: Bench, loaded: Loaded, geometry: HeadGeometry) -> dict[str, float | int]:
    """The first layer as the sweep's model begins: ranks, logits, over seeds and heads."""
    found = [_of_seed(bench, loaded, geometry, seed) for seed in SEEDS]
    means = {name: statistics.fmean(one[name] for one in found) for name in found[0]}
    spread = statistics.stdev(one["rank_ratio"] for one in found) / len(SEEDS) ** 0.5
    return {"rank": geometry.qk_rank, **means, "rank_ratio_error": spread, "seeds": len(SEEDS)}


def _of_seed(bench: Bench, loaded: Loaded, geometry: HeadGeometry, seed: int) -> dict[str, float]:
    model = bench.build(geometry, seed).double()
    chosen = slice(seed * SEQUENCES, (seed + 1) * SEQUENCES)
    shown = (t[chosen].double() if t.is_floating_point() else t[chosen] for t in loaded.examples)
    first = next(iter(views(model, *shown).values()))
    report, scores = measure(first.logits()), first.queries @ first.shared_keys.mT * first.scale
    length = report.shape[-1]
    return {
        "rank_ratio": float((report.rank.low + report.rank.high).double().mean()) / 2 / length,
        "effective_rank": float(report.effective_rank.mean()),
        "stable_rank": float(report.stable_rank.mean()),
        "logit_spread": float(scores.std(-1).mean()),
    }


def stored_evidence(row: Row) -> Evidence:
    """The evidence of a line of the record, as the adviser's rule takes it."""
    told: dict[str, Any] = row["evidence"]
    curves = tuple(
        RankCurve(**{key: _tuple(value) for key, value in curve.items()})
        for curve in told["curves"]
    )
    known = TokenStatistics(**told["statistics"])
    # Older rows have "words", and "assumed_length", which is false for every recorded task.
    kept = {name: value for name, value in told.items() if name not in ("words", "assumed_length")}
    return Evidence(**{"source": row["task"], **kept, "curves": curves, "statistics": known})


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def main() -> None:
    """Measure the tasks that are not recorded yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=task_names, default=tuple(BENCHES))
    parser.add_argument("--data", type=Path, default=Path("local/advice-data"))
    parser.add_argument("--record", type=Path, default=RECORD)
    given = parser.parse_args()
    known = {row["task"] for row in read_rows([given.record])}
    for name in given.tasks:
        if name not in known:
            row = inputs_of(BENCHES[name], given.data)
            with given.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name}: {row['evidence_seconds']} s", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
