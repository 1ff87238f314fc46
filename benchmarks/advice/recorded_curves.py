"""Recorded learning curves as arrays, and a runner that replays them for a race."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.recording import Row, read_rows

from headwise.geometry import HeadGeometry
from headwise.trials.candidates import name_of

RECORDS = Path(__file__).parent / "records"

#: Tasks whose curves say nothing: no geometry has learned recall with most seeds, and every one
#: copies without an error.
TELL_NOTHING = ("associative-w128-n128", "copying-w128-n256")


@dataclass(frozen=True, eq=False)
class Recorded:
    """One task whose candidates were all trained to the end.

    Attributes:
        name: The task.
        measure: "nats" or "error rate"; lower is better.
        width: Width of the models.
        candidates: Geometry by name, smallest rank first.
        steps: Steps at which scores were taken; the last is the full length.
        scores: Scores (candidates, steps, seeds).
        truth: What a geometry is worth at the full length (candidates, seeds): the last score,
            or the score on other test data where there are some.
    """

    name: str
    measure: str
    width: int
    candidates: dict[str, HeadGeometry]
    steps: tuple[int, ...]
    scores: np.ndarray
    truth: np.ndarray

    @property
    def full(self) -> int:
        """The full length of training."""
        return self.steps[-1]

    @property
    def final(self) -> np.ndarray:
        """What each candidate is worth at the full length, over all seeds."""
        return self.truth.mean(axis=1)

    @property
    def best(self) -> str:
        """The candidate with the best final mean."""
        return list(self.candidates)[int(self.final.argmin())]

    @property
    def sweep_cost(self) -> int:
        """Steps of the full sweep: every candidate and seed to the end."""
        return len(self.candidates) * self.scores.shape[2] * self.full

    def regret(self, name: str) -> float:
        """How far a candidate ends above the best."""
        return float(self.final[list(self.candidates).index(name)] - self.final.min())


def recorded_tasks(folder: Path = RECORDS) -> list[Recorded]:
    """Every task with recorded curves."""
    rows = read_rows(sorted([*folder.glob("language*.jsonl"), *folder.glob("trial_curves*.jsonl")]))
    rows += [_as_curve_row(row) for row in read_rows(sorted(folder.glob("classes*.jsonl")))]
    names = dict.fromkeys(row["task"] for row in rows)
    return [_recorded([r for r in rows if r["task"] == n]) for n in names if n not in TELL_NOTHING]


def _as_curve_row(row: Row) -> Row:
    """A row of ``benchmarks.real_data``: epochs become steps, validation accuracy an error rate."""
    batches = row["trained_on"] // row["batch"]
    points = [[round(epoch * batches), 1 - accuracy] for epoch, accuracy, _ in row["curve"]]
    return {
        **row,
        "task": f"{row['dataset']}-w{row['width']}",
        "measure": "error rate",
        "qk_rank": row["head_dim"],
        "v_rank": row["head_dim"],
        "steps": points[-1][0],
        "score": points[-1][1],
        "truth": 1 - row["test_accuracy"],
        "curve": points[:-1],
    }


def _recorded(rows: Sequence[Row]) -> Recorded:
    """The splits of the width at the longest training and its first learning rate.

    Where the rank of a fixed number of heads was swept instead, all ranks count.
    """
    alike = [r for r in rows if r["qk_rank"] == r["v_rank"]]
    whole = [r for r in alike if r["heads"] * r["qk_rank"] == r["width"]]
    splits = whole if len({r["qk_rank"] for r in whole}) > 1 else alike
    longest = max(row["steps"] for row in splits)
    chosen = [r for r in splits if r["steps"] == longest]
    chosen = [r for r in chosen if r["rate"] == chosen[0]["rate"]]
    ranks = sorted({row["qk_rank"] for row in chosen})
    seeds = sorted({row["seed"] for row in chosen})
    width, first = chosen[0]["width"], chosen[0]
    steps = (*(step for step, _ in first["curve"]), longest)
    places = {(row["qk_rank"], row["seed"]): _curve(row) for row in chosen}
    ends = {(row["qk_rank"], row["seed"]): row.get("truth", row["score"]) for row in chosen}
    scores = np.array([[places[rank, seed] for seed in seeds] for rank in ranks])
    heads = {row["qk_rank"]: row["heads"] for row in chosen}
    geometries = [HeadGeometry.free(width, heads[rank], rank) for rank in ranks]
    return Recorded(
        first["task"],
        first["measure"],
        width,
        {name_of(geometry): geometry for geometry in geometries},
        steps,
        scores.transpose(0, 2, 1),
        np.array([[ends[rank, seed] for seed in seeds] for rank in ranks]),
    )


def _curve(row: Row) -> list[float]:
    values = [*(score for _, score in row["curve"]), row["score"]]
    return [float("nan") if value is None else value for value in values]


class Replay:
    """A runner that looks scores up, and a clock that counts the steps it was asked for."""

    def __init__(self, task: Recorded, seeds: Iterable[int]) -> None:
        self.task, self.seeds = task, list(seeds)
        self.reached = dict.fromkeys(task.candidates, 0)

    def train(self, names: Sequence[str], until: int) -> dict[str, list[float]]:
        """The recorded scores at a step, which must be one of the recorded ones."""
        at, order = self.task.steps.index(until), list(self.task.candidates)
        for name in names:
            self.reached[name] = until
        return {
            name: self.task.scores[order.index(name), at, self.seeds].tolist() for name in names
        }

    def save(self) -> None:
        """Do nothing."""

    def spent(self) -> int:
        """Steps of all runs so far."""
        return len(self.seeds) * sum(self.reached.values())
