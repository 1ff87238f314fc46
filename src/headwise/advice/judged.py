"""Evidence from judged tasks: where did leaving the usual geometry pay off?

The table is ``judged.json``. ``python -m benchmarks.advice.judge --evidence`` writes it from the
recorded sweeps, so new sweeps extend it. All geometries of a row have heads × rank = width.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from headwise.advice.question import Task

TABLE = Path(__file__).with_name("judged.json")

#: The fewest judged tasks of a kind that count as evidence; one of them must be held out.
FEWEST = 2


@dataclass(frozen=True)
class JudgedTask:
    """What a sweep over heads × rank = width found on one task.

    Attributes:
        name: Name of the task.
        kind: Kind of the task.
        tokens: "ids" or "vectors".
        width: Width of the model.
        best: Heads and rank that scored best.
        usual: Heads and rank of the usual geometry.
        advised: Heads and rank that the tokens ask for.
        unit: "points" (of accuracy, or of the error without attention) or "nats" of loss.
        usual_regret: How far the usual geometry scored below the best, paired by seed.
        usual_error: Standard error of that.
        advised_regret: How far the geometry that the tokens ask for scored below the best.
        advised_error: Standard error of that.
        gain: Score of the geometry that the tokens ask for less that of the usual one.
        gain_error: Standard error of the gain.
        half_cost: What half the rank that the tokens ask for costs against it.
        held_out: Whether the rule was made without looking at this task.
    """

    name: str
    kind: Task
    tokens: str
    width: int
    best: tuple[int, int]
    usual: tuple[int, int]
    advised: tuple[int, int]
    unit: str
    usual_regret: float
    usual_error: float
    advised_regret: float
    advised_error: float
    gain: float
    gain_error: float
    half_cost: float
    held_out: bool


@dataclass(frozen=True)
class Support:
    """What the judged tasks of a kind say about leaving the usual geometry.

    Attributes:
        kind: Kind of the task.
        tokens: "ids", "vectors" or "none".
        tasks: The judged tasks of that kind on such tokens.
        enough: Whether the kind has at least two judged tasks, one of them held out.
        smaller: Whether ranks below the usual one did no harm there.
        larger: Whether less rank than the tokens ask for did harm there.
    """

    kind: Task
    tokens: str
    tasks: tuple[JudgedTask, ...]
    enough: bool
    smaller: bool
    larger: bool

    def allows(self, rank: int, usual: int) -> bool:
        """Whether there is evidence for this rank instead of the usual one."""
        return rank == usual or (self.smaller if rank < usual else self.larger)


@cache
def judged_tasks() -> tuple[JudgedTask, ...]:
    """Every judged task."""
    return tuple(map(from_row, json.loads(TABLE.read_text(encoding="utf-8"))))


def from_row(row: dict[str, Any]) -> JudgedTask:
    """A row of the table as a judged task."""
    pairs: dict[str, Any] = {name: tuple(row[name]) for name in ("best", "usual", "advised")}
    return JudgedTask(**row | pairs)


def support_for(kind: Task, tokens: str, judged: Sequence[JudgedTask] | None = None) -> Support:
    """The evidence for a kind of task on such tokens, from all judged tasks or those given.

    A kind counts from two judged tasks on, one of them held out, and less rank than usual must be
    better by more than twice the standard error of the mean gain. Only more rank for retrieval
    needs no held-out task: it is proved that heads of too low a rank err there.

    A task of unknown kind may be any: for vectors all judged tasks on vectors count, for ids none
    do. Without tokens nothing was measured, so no judged task applies.

    >>> support_for("classify", "vectors").smaller, support_for("next-token", "ids").smaller
    (True, False)
    """
    if tokens == "none" or (kind == "unknown" and tokens == "ids"):
        return Support(kind, tokens, (), enough=False, smaller=False, larger=False)
    known = judged_tasks() if judged is None else judged
    of_kind = [task for task in known if kind in (task.kind, "unknown")]
    enough = len(of_kind) >= FEWEST and any(task.held_out for task in of_kind)
    found = tuple(task for task in of_kind if task.tokens == tokens)
    smaller = [task for task in found if task.advised[1] < task.usual[1]]
    harmed = bool(found) and fmean(task.half_cost for task in found) > 0
    return Support(
        kind,
        tokens,
        found,
        enough=enough,
        smaller=enough and _is_better(smaller),
        larger=(enough or kind == "retrieve") and harmed,
    )


def _is_better(tasks: Sequence[JudgedTask]) -> bool:
    """Whether the mean gain is above twice its standard error."""
    if not tasks:
        return False
    error = sum(task.gain_error**2 for task in tasks) ** 0.5 / len(tasks)
    return fmean(task.gain for task in tasks) > 2 * error
