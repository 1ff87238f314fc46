"""Judged tasks: tasks on which many geometries were trained, so that the best of them is known.

``python -m benchmarks.advice.judge --evidence`` writes the table, ``judged.json``, from recorded
sweeps. All its geometries have heads × rank = width.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from headwise.advice.question import Task

TABLE = Path(__file__).with_name("judged.json")

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


@cache
def judged_tasks() -> tuple[JudgedTask, ...]:
    """Every judged task."""
    return tuple(map(from_row, json.loads(TABLE.read_text(encoding="utf-8"))))


def from_row(row: dict[str, Any]) -> JudgedTask:
    """A row of the table as a judged task."""
    pairs: dict[str, Any] = {name: tuple(row[name]) for name in ("best", "usual", "by_rank")}
    return JudgedTask(**row | pairs)
