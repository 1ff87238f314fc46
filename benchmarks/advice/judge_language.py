"""Judge the splits of the width on the language tasks, in nats of validation loss.

    python -m benchmarks.advice.judge_language [--data local/language]

The command measures the tokens of every trained task that has no stored evidence yet. The rows
themselves are read by ``benchmarks.advice.judge``.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.advice.language_jobs import RATE
from benchmarks.advice.language_tasks import TASKS, Task
from benchmarks.recording import Row, provenance, read_rows

from headwise.geometry import HeadGeometry, usual

RECORDS = Path(__file__).parent / "records"
INPUTS = RECORDS / "inputs_language.jsonl"

#: Below this accuracy a recall task has not been learned, so its splits say nothing.
LEARNED = 0.5

#: Shorter training says too little about ranks: their cost grows with its length.
FEWEST_STEPS = 2000

Scores = dict[HeadGeometry, dict[int, float]]


def width_scores(rows: Iterable[Row], task: str) -> Scores:
    """Minus the loss in nats by split of the width and seed.

    Only the longest training counts, and of several learning rates the best of each split.
    """
    own = [row for row in rows if row["task"] == task and _splits_the_width(row)]
    longest = longest_training(own, task)
    by_rate: dict[HeadGeometry, dict[float, dict[int, float]]] = {}
    for row in own:
        if row["steps"] == longest and row["score"] is not None:
            seeds = by_rate.setdefault(_geometry(row), {}).setdefault(row["rate"], {})
            seeds[row["seed"]] = -row["score"]
    return {g: max(rates.values(), key=_mean) for g, rates in by_rate.items()}


def longest_training(rows: Iterable[Row], task: str) -> int:
    """The most steps that splits of the width were trained for, which is what counts."""
    own = (row for row in rows if row["task"] == task and _splits_the_width(row))
    return max((row["steps"] for row in own), default=0)


def _mean(seeds: dict[int, float]) -> float:
    return sum(seeds.values()) / len(seeds)


def _geometry(row: Row) -> HeadGeometry:
    return HeadGeometry(row["width"], row["heads"], row["heads"], row["qk_rank"], row["v_rank"])


def _splits_the_width(row: Row) -> bool:
    return row["qk_rank"] == row["v_rank"] and row["heads"] * row["qk_rank"] == row["width"]


def apart_rows(rows: Sequence[Row]) -> list[Row]:
    """What a smaller query-key or value rank alone cost, against the usual geometry.

    Of each task the longest training that both have counts.
    """
    found = []
    for name, task in TASKS.items():
        own = [row for row in rows if row["task"] == name and row["score"] is not None]
        common = usual(task.shape.width)
        for geometry in dict.fromkeys(map(_geometry, own)):
            ranks = sorted((geometry.qk_rank, geometry.v_rank))
            one_is_smaller = ranks[0] < ranks[1] == common.qk_rank
            if geometry.heads == common.heads and one_is_smaller:
                found += _apart_row(task, geometry, common, own)
    return found


def _apart_row(
    task: Task, geometry: HeadGeometry, usual: HeadGeometry, rows: Sequence[Row]
) -> list[Row]:
    by_steps: dict[int, dict[HeadGeometry, dict[int, float]]] = {}
    for row in rows:
        if row["rate"] == RATE:
            own = by_steps.setdefault(row["steps"], {}).setdefault(_geometry(row), {})
            own[row["seed"]] = row["score"]
    both = [steps for steps, known in by_steps.items() if {geometry, usual} <= set(known)]
    if not both or max(both) < FEWEST_STEPS:
        return []
    steps = max(both)
    ours, theirs = by_steps[steps][geometry], by_steps[steps][usual]
    costs = [ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))]
    keys = geometry.qk_rank < usual.qk_rank
    cached = [one.cache_bytes_per_token() for one in (geometry, usual)]
    rank = geometry.qk_rank if keys else geometry.v_rank
    return [
        {
            "task": task.name,
            "kind": task.kind,
            "part": "keys" if keys else "values",
            "share": rank / usual.qk_rank,
            "cache": cached[0] / cached[1],
            "cost": round(statistics.fmean(costs), 4),
            "error": round(statistics.stdev(costs) / len(costs) ** 0.5, 4),
            "unit": "nats",
            "steps": steps,
            "held_out": task.held_out,
        }
    ]


def is_learned(rows: Iterable[Row], task: str) -> bool:
    """Whether the rows of a task are evidence.

    Recall counts once some split has learned it with most of its seeds: a single lucky seed says
    nothing about the split.
    """
    own = [row for row in rows if row["task"] == task]
    if not own or own[0]["kind"] != "recall":
        return bool(own)
    seeds: dict[tuple[HeadGeometry, float, int], list[float]] = {}
    for row in own:
        key = (_geometry(row), row["rate"], row["steps"])
        seeds.setdefault(key, []).append(row["accuracy"])
    return max(statistics.median(found) for found in seeds.values()) >= LEARNED


def judged_names(rows: Sequence[Row]) -> list[str]:
    """The tasks that are trained and learned, in the order of their list."""
    return [name for name in TASKS if is_learned(rows, name)]


def measured(task: Task, folder: Path) -> Row:
    """Measure what the adviser sees of a task before training."""
    from headwise.advice.evidence import Sampling, measured_evidence
    from headwise.advice.tokens.source import Reading
    from headwise.advice.tokens.token_set import token_set, with_vocabulary

    ids = task.load(folder, "cpu").validation().ids
    tokens = with_vocabulary(token_set(ids, task.shape.width, task.name), task.shape.vocabulary)
    sampling = Sampling(0, mask="causal" if task.shape.causal else "none")
    evidence = measured_evidence(tokens, Reading(), sampling)
    return {"task": task.name, "evidence": asdict(evidence), **provenance("cpu", "float64", 0)}


def main() -> None:
    """Measure the trained tasks whose evidence is not stored yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("local/language"))
    given = parser.parse_args()
    known = {row["task"] for row in read_rows([INPUTS])}
    rows = read_rows(sorted(RECORDS.glob("language*.jsonl")))
    for name in judged_names(rows):
        if name not in known:
            row = measured(TASKS[name], given.data)
            with INPUTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
