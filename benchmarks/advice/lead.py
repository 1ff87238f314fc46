"""The table that leads docs/advice-judged.md: the advice of today, task by task.

The advice for a task is made from the results of the other tasks alone. It is what
``headwise.advise(tokens, task=kind)`` would say if this task had never been trained.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.advice.evidence_table import Swept, evidence_rows
from benchmarks.advice.judge import mean_and_error
from benchmarks.advice.page import table
from benchmarks.advice.rules import RULES

from headwise.advice.decide import decide
from headwise.advice.judged import JudgedTask, from_row
from headwise.advice.question import Question
from headwise.geometry import HeadGeometry

LEAD_BEGIN = "<!-- lead: begin (made by benchmarks.advice.judge) -->"
LEAD_END = "<!-- lead: end -->"

NAMES = (
    "task kind",
    "task",
    "best",
    "usual",
    "advised",
    "regret of usual",
    "regret of advised",
    "held out",
)


def advised_now(task: Swept, others: Sequence[JudgedTask]) -> HeadGeometry:
    """The split that the advice names, made from the results of other tasks.

    A rank that was not trained is rounded up.
    """
    found = decide(task.evidence, Question(task=task.kind), judged=others)
    return task.question.with_rank(found.best.rank)


def lead_table(tasks: Sequence[Swept]) -> str:
    """The table as Markdown, kinds together."""
    ordered = sorted(tasks, key=lambda task: task.kind)
    return table([NAMES, *(_line(task, _advised_by_others(task, tasks)) for task in ordered)])


#: The table of tasks whose advice was recorded before some of their splits were trained.
PART_BEGIN = "<!-- part: begin (made by benchmarks.advice.judge) -->"
PART_END = "<!-- part: end -->"

PART_NAMES = ("task", "held out", "accuracy in percent", "advised", "usual", "gain of advised")


def part_table(partly: Sequence[Swept], tasks: Sequence[Swept]) -> str:
    """Score of every trained split, and what the advice of the judged tasks gains, as Markdown."""
    return table([PART_NAMES, *(_part_line(task, tasks) for task in partly)])


def _part_line(task: Swept, tasks: Sequence[Swept]) -> list[str]:
    advised = advised_now(task, list(map(from_row, evidence_rows(tasks))))
    (usual,) = RULES["usual (r = 64)"](task.question)
    value, error = task.gap(advised, usual)
    return [
        task.name,
        "yes" if task.held_out else "no",
        ", ".join(f"{g.heads} × {g.qk_rank}: {_mean(task, g)}" for g in task.splits),
        *(f"{g.heads} × {g.qk_rank}" for g in (advised, usual)),
        f"{value:.1f} ± {error:.1f} {task.unit}",
    ]


def _mean(task: Swept, split: HeadGeometry) -> str:
    mean, error = mean_and_error(list(task.scores[split].values()))
    return f"{mean:.1f} ± {error:.1f}"


def _advised_by_others(task: Swept, tasks: Sequence[Swept]) -> HeadGeometry:
    rows = evidence_rows([other for other in tasks if other is not task])
    return advised_now(task, list(map(from_row, rows)))


def _line(task: Swept, advised: HeadGeometry) -> list[str]:
    (usual,) = RULES["usual (r = 64)"](task.question)
    return [
        task.kind,
        task.name,
        *(f"{g.heads} × {g.qk_rank}" for g in (task.best, usual, advised)),
        _regret(task, usual),
        _regret(task, advised),
        "yes" if task.held_out else "no",
    ]


def _regret(task: Swept, chosen: HeadGeometry) -> str:
    value, error = task.gap(task.best, chosen)
    if chosen == task.best:
        return "0 (the best)"
    digits = 1 if task.unit == "points" else 3
    return f"{value:.{digits}f} ± {error:.{digits}f} {task.unit}"
