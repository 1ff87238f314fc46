"""Judged tasks: tasks on which many geometries were trained, so that the best of them is known.

``python -m benchmarks.advice.judge --evidence`` writes the table, ``judged.json``, from recorded
sweeps. All its geometries have heads × rank = width.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from headwise.advice.question import Task
from headwise.report.results import short_repr

TABLE = Path(__file__).with_name("judged.json")

#: What a smaller query-key or value rank alone saves and costs; ``--apart`` writes it.
APART = Path(__file__).with_name("apart.json")

#: The fewest judged tasks of a kind on such tokens that count as evidence.
FEWEST = 2

#: What the tokens of a judged task are made of.
Data = Literal["images", "text", "code", "points", "sequences", "symbols"]


@dataclass(frozen=True)
class JudgedTask:
    """What a sweep over heads × rank = width found on one task.

    Attributes:
        name: Name of the task.
        kind: Kind of the task.
        tokens: "ids" or "vectors".
        data: What the tokens are made of.
        steps: Length of training.
        width: Width of the model.
        best: Heads and rank that scored best.
        usual: Heads and rank of the usual geometry.
        by_rank: Heads and rank that the rank rule names: by the tokens, limited by the other tasks.
            The advice leaves the usual geometry for it only where tasks support that.
        unit: "points" (of accuracy, or of the error without attention) or "nats" of loss.
        usual_regret: How far the usual geometry scored below the best, paired by seed.
        usual_error: Standard error of that.
        by_rank_regret: How far the geometry of the rank rule scored below the best.
        by_rank_error: Standard error of that.
        gain: Score of the geometry of the rank rule less that of the usual one.
        gain_error: Standard error of the gain.
        half_cost: What half that rank costs against it.
        most: The largest rank that scored within one standard error of the best.
        held_out: Whether the rule was made without looking at this task.
    """

    name: str
    kind: Task
    tokens: str
    data: Data
    steps: int
    width: int
    best: tuple[int, int]
    usual: tuple[int, int]
    by_rank: tuple[int, int]
    unit: str
    usual_regret: float
    usual_error: float
    by_rank_regret: float
    by_rank_error: float
    gain: float
    gain_error: float
    half_cost: float
    most: int
    held_out: bool

    __repr__ = short_repr


@cache
def judged_tasks() -> tuple[JudgedTask, ...]:
    """Every judged task."""
    return tuple(map(from_row, json.loads(TABLE.read_text(encoding="utf-8"))))


def from_row(row: dict[str, Any]) -> JudgedTask:
    """A row of the table as a judged task."""
    pairs: dict[str, Any] = {name: tuple(row[name]) for name in ("best", "usual", "by_rank")}
    return JudgedTask(**row | pairs)


def task_numbers(tasks: Sequence[JudgedTask]) -> dict[str, Any]:
    """What the judged tasks of a kind found, as values of a finding."""
    return {
        "tasks": [task.name for task in tasks],
        "data": sorted({task.data for task in tasks}),
        "gains": [[task.name, task.gain, task.gain_error, task.unit] for task in tasks],
        "trained": [[task.name, task.data, task.by_rank[1], task.steps] for task in tasks],
        "halves": [[task.half_cost, task.unit] for task in tasks],
        "advised": sorted({task.by_rank[1] for task in tasks}),
        "trials": [
            [task.name, *task.best, task.usual_regret, task.usual_error, task.unit]
            for task in tasks
            if task.usual_regret > 2 * task.usual_error
        ],
    }


@dataclass(frozen=True)
class RankApart:
    """What a smaller query-key or value rank cost on one task, the other rank being usual.

    Attributes:
        task: Name of the task.
        kind: Kind of the task.
        part: Which rank is smaller: "keys" or "values".
        share: The smaller rank as a share of the usual one.
        cache: KV bytes as a share of those with equal ranks.
        cost: How much worse the score is, paired by seed.
        error: Standard error of that.
        unit: "nats" or "points".
        steps: Length of training.
        held_out: Whether the rule was made without looking at this task.
    """

    task: str
    kind: Task
    part: str
    share: float
    cache: float
    cost: float
    error: float
    unit: str
    steps: int
    held_out: bool


@cache
def ranks_apart(kind: Task) -> tuple[RankApart, ...]:
    """What sweeps over one of the two ranks found on tasks of a kind."""
    rows = json.loads(APART.read_text(encoding="utf-8"))
    return tuple(found for row in rows if (found := RankApart(**row)).kind == kind)


def thin_keys(rows: Sequence[RankApart]) -> float | None:
    """The smallest share of the query-key rank that did no harm on any task, one held out.

    No harm is a cost of at most one standard error. None if each of them did harm.

    Returns:
        A share of the rank of values.

    Example:
        >>> rows = ranks_apart("next-token")
        >>> sorted({row.share for row in rows if row.part == "keys"}), thin_keys(rows)
        ([0.25, 0.5], None)
    """
    keys = [row for row in rows if row.part == "keys"]
    for share in sorted({row.share for row in keys}):
        own = [row for row in keys if row.share == share]
        several = len(own) >= FEWEST and any(row.held_out for row in own)
        if several and all(row.cost <= row.error for row in own):
            return share
    return None


def costs_apart(kind: Task) -> dict[str, Any] | None:
    """The costs of a kind of task by part, share of the rank and share of KV bytes, if known."""
    rows = ranks_apart(kind)
    parts: dict[tuple[str, float, float], list[list[Any]]] = {}
    for row in rows:
        told = [row.task, row.cost, row.error, row.unit, row.steps]
        parts.setdefault((row.part, row.share, row.cache), []).append(told)
    costs = [[*part, own] for part, own in parts.items()]
    return {"task": kind, "thin": thin_keys(rows), "costs": costs} if rows else None
