"""Evidence from judged tasks: where did leaving the usual geometry pay off?

The table is ``judged.json``. ``python -m benchmarks.advice.judge --evidence`` writes it from the
recorded sweeps, so new sweeps extend it. All geometries of a row have heads × rank = width.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from headwise.advice.question import Task

TABLE = Path(__file__).with_name("judged.json")


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
        usual_regret: How far the usual geometry scored below the best, in points.
        advised_regret: The same for the geometry that the tokens ask for.
        gain: Score of the advised less that of the usual geometry, in points, paired by seed.
        gain_error: Standard error of the gain.
        half_cost: What half the advised rank costs against it, in points.
        held_out: Whether the rule was made without looking at this task.
    """

    name: str
    kind: Task
    tokens: str
    width: int
    best: tuple[int, int]
    usual: tuple[int, int]
    advised: tuple[int, int]
    usual_regret: float
    advised_regret: float
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
        smaller: Whether ranks below the usual one did no harm there.
        larger: Whether less rank than the tokens ask for did harm there.
    """

    kind: Task
    tokens: str
    tasks: tuple[JudgedTask, ...]
    smaller: bool
    larger: bool

    def allows(self, rank: int, usual: int) -> bool:
        """Whether there is evidence for this rank instead of the usual one."""
        return rank == usual or (self.smaller if rank < usual else self.larger)


@cache
def judged_tasks() -> tuple[JudgedTask, ...]:
    """Every judged task."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))
    pairs = ("best", "usual", "advised")
    return tuple(JudgedTask(**row | {name: tuple(row[name]) for name in pairs}) for row in rows)


def support_for(kind: Task, tokens: str) -> Support:
    """The evidence for a kind of task on such tokens.

    A task of unknown kind may be any: for vectors all judged tasks on vectors count. For ids none
    do, since next-token and masked-token prediction are not judged yet. Without tokens nothing
    was measured, so no judged task applies.

    >>> support_for("classify", "vectors").smaller, support_for("next-token", "ids").smaller
    (True, False)
    """
    if tokens == "none" or (kind == "unknown" and tokens == "ids"):
        return Support(kind, tokens, (), smaller=False, larger=False)
    found = tuple(t for t in judged_tasks() if t.tokens == tokens and kind in (t.kind, "unknown"))
    smaller = [task for task in found if task.advised[1] < task.usual[1]]
    return Support(
        kind,
        tokens,
        found,
        smaller=bool(smaller) and fmean(task.gain for task in smaller) > 0,
        larger=bool(found) and fmean(task.half_cost for task in found) > 0,
    )
