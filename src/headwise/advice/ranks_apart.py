"""What a smaller query-key rank or value rank alone saves and costs, from recorded sweeps.

``python -m benchmarks.advice.judge --apart`` writes the table, ``apart.json``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from headwise.advice.question import Task
from headwise.advice.rule import FEWEST

APART = Path(__file__).with_name("apart.json")


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
