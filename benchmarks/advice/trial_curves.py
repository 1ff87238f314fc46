"""Record whole learning curves of small tasks, to judge trials offline; runs on a CPU.

    python -m benchmarks.advice.trial_curves --rows FILE [--tasks digits-w32,...]

Every split of the width trains to the end with six seeds, as ``headwise.trial`` would train it. One
row holds the curve of one run: test scores at each look, lower is better. Tasks in the file are
not trained again.
"""

from __future__ import annotations

import argparse
import json
import pydoc_data.topics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.recording import provenance, read_rows, told

from headwise.geometry import HeadGeometry
from headwise.training import Settings
from headwise.trials.candidates import name_of
from headwise.trials.ensembles import EnsembleRunner
from headwise.trials.problems import Problem
from headwise.trials.sources import Frame, read_problem

SEEDS = tuple(range(6))

#: Scores of each run, at equal distances in log steps.
LOOKS = 20

#: Characters of text that are kept.
MOST_TEXT = 400_000


@dataclass(frozen=True)
class Small:
    """A problem with the width of its models, and how long to train."""

    problem: Problem
    width: int
    steps: int
    rate: float = 3e-3
    depth: int = 2
    batch: int = 32


def _digits(width: int, patch: int, steps: int = 400) -> Small:
    return Small(read_problem("digits", None, Frame(patch=patch)), width, steps)


def _code() -> str:
    names = ("argparse", "inspect", "typing", "tarfile", "subprocess", "datetime", "pickle")
    modules = [Path(str(__import__(name).__file__)) for name in names]
    return "\n".join(path.read_text(encoding="utf-8") for path in modules)[:MOST_TEXT]


def _prose() -> str:
    return "\n".join(pydoc_data.topics.topics.values())[:MOST_TEXT]


def _language(text: Callable[[], str], width: int, steps: int = 400) -> Small:
    return Small(read_problem(text(), None, Frame(length=32)), width, steps)


def _origins() -> Small:
    """Which of the two texts do 48 characters come from, and from which half?"""
    parts = [half for text in (_code(), _prose()) for half in _halves(text)]
    pieces = [part[i : i + 48] for part in parts for i in range(0, 48 * 600, 48)]
    labels = [number for number in range(len(parts)) for _ in range(600)]
    frame = Frame(length=48, tokenizer="character")
    return Small(read_problem(pieces, labels, frame), 32, 300)


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


TASKS: dict[str, Callable[[], Small]] = {
    "digits-w32": partial(_digits, 32, 2),
    "digits-coarse-w32": partial(_digits, 32, 4),
    "code-characters-w32": partial(_language, _code, 32),
    "prose-characters-w32": partial(_language, _prose, 32),
    "origins-w32": _origins,
    "digits-w64": partial(_digits, 64, 2, 300),
}


def candidates(width: int) -> dict[str, HeadGeometry]:
    """Return the splits of a width into heads of a power of two, from 2 up."""
    ranks = [2**power for power in range(1, 20) if 2**power <= width]
    found = [HeadGeometry.free(width, width // rank, rank) for rank in ranks]
    return {name_of(geometry): geometry for geometry in found}


def record(name: str) -> list[dict[str, Any]]:
    """Train a task with every candidate and seed; one row for each run."""
    small, began = TASKS[name](), time.process_time()
    problem = small.problem
    entrants = candidates(small.width)
    settings = Settings(
        steps=small.steps,
        batch=small.batch,
        seeds=SEEDS,
        learning_rates=(small.rate,),
        evaluation=500,
        execution="eager",
    )
    task, measure = problem.task("cpu"), problem.measure
    runner = EnsembleRunner(entrants, problem.build, task, settings, measure=measure)
    curves: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for step in sorted({round(x) for x in np.geomspace(small.steps / 64, small.steps, LOOKS)}):
        for candidate, scores in runner.train(list(entrants), step).items():
            for seed, score in zip(SEEDS, scores, strict=True):
                curves.setdefault((candidate, seed), []).append((step, round(score, 5)))
    seconds = round(time.process_time() - began, 1)
    return [
        {
            "task": name,
            "measure": "nats" if measure == "loss" else "error rate",
            "width": small.width,
            "depth": small.depth,
            "heads": entrants[candidate].heads,
            "qk_rank": entrants[candidate].qk_rank,
            "v_rank": entrants[candidate].v_rank,
            "rate": small.rate,
            "batch": small.batch,
            "steps": small.steps,
            "score": curve[-1][1],
            "curve": curve[:-1],
            "processor_seconds_of_task": seconds,
            **provenance("cpu", "float32", seed),
            "command": " ".join(
                ["python -m benchmarks.advice.trial_curves", *map(told, sys.argv[1:])]
            ),
        }
        for (candidate, seed), curve in curves.items()
    ]


def main() -> None:
    """Record the tasks that were asked for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--tasks", default=",".join(TASKS), help="by commas")
    given = parser.parse_args()
    known = {row["task"] for row in read_rows([given.rows])}
    for name in given.tasks.split(","):
        if name not in known:
            rows = record(name)
            with given.rows.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            print(name, rows[0]["processor_seconds_of_task"], "s of processor time", flush=True)


if __name__ == "__main__":
    main()
