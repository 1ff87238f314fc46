"""The table of evidence that the advice rests on: one row for each judged task.

All geometries of a row have heads × rank = width. Regrets and gains are paired by seed: points of
accuracy, points of the error without attention, or nats of validation loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.advice.inputs import stored_evidence
from benchmarks.advice.judge import Scores, choices, judge, mean_and_error, of_one_device
from benchmarks.advice.judge_language import INPUTS, judged_names, longest_training, width_scores
from benchmarks.advice.language_tasks import TASKS
from benchmarks.advice.rules import RULES, Question
from benchmarks.advice.tasks import BENCHES
from benchmarks.recording import Row, read_rows

from headwise.advice.evidence import Evidence
from headwise.advice.judged import Data, from_row
from headwise.advice.rule import choose_rank, support_for
from headwise.geometry import HeadGeometry

#: The kind of each judged task, as ``headwise.advise(task=…)`` names it.
KINDS = {
    "imdb": "classify",
    "cifar10": "classify",
    "cifar100": "classify",
    "svhn": "classify",
    "digits-patches": "classify",
    "digits-pixels": "classify",
    "package-sections": "classify",
    "code-libraries": "classify",
    "in-context": "regress",
    "in-context-4": "regress",
    "next-state": "regress",
    "digits-masked": "regress",
    "next-window": "regress",
    "digits-denoised": "regress",
}

#: What the tokens of each judged task are made of, by the first word of its name.
DATA: dict[str, Data] = {
    "imdb": "text",
    "package": "text",
    "prose": "text",
    "code": "code",
    "cifar10": "images",
    "cifar100": "images",
    "svhn": "images",
    "digits": "images",
    "in": "points",
    "farthest": "points",
    "next": "sequences",
    "associative": "symbols",
    "copying": "symbols",
    "sorting": "symbols",
}

#: Regression tasks that the factor for regression was set after: they are held out no longer.
USED = ("in-context",)

#: The kinds of language tasks that ``headwise.advise`` has another name for.
LANGUAGE_KINDS = {"recall": "retrieve", "token-classes": "classify"}


@dataclass(frozen=True, eq=False)
class Swept:
    """A task whose splits of the width were all trained."""

    name: str
    kind: str
    held_out: bool
    evidence: Evidence
    scores: Scores
    unit: str
    steps: int

    @property
    def tokens(self) -> str:
        """The type of its tokens, as the evidence names it."""
        return "ids" if self.evidence.learned else "vectors"

    @property
    def data(self) -> Data:
        """What its tokens are made of."""
        return DATA[self.name.partition("-")[0]]

    @property
    def splits(self) -> tuple[HeadGeometry, ...]:
        """What was trained, smallest rank first."""
        return tuple(sorted(self.scores, key=lambda g: g.qk_rank))

    @property
    def best(self) -> HeadGeometry:
        """The split with the highest mean score."""
        return max(self.splits, key=lambda g: mean_and_error(list(self.scores[g].values()))[0])

    @property
    def question(self) -> Question:
        """What a rule is asked: which of the splits?"""
        return Question("width", 1, self.evidence, self.splits)

    def is_near_best(self, split: HeadGeometry) -> bool:
        """Whether a split scored within one standard error of the best."""
        behind, error = self.gap(self.best, split)
        return behind <= error

    def gap(self, better: HeadGeometry, than: HeadGeometry) -> tuple[float, float]:
        """The mean paired difference of two splits, and its standard error."""
        ours, theirs = self.scores[better], self.scores[than]
        seeds = sorted(set(ours) & set(theirs))
        mean, error = mean_and_error([ours[seed] - theirs[seed] for seed in seeds])
        digits = 2 if self.unit == "points" else 4
        return round(mean, digits), round(error, digits)


def kind_of(task: str) -> str:
    """The kind of a task, as ``headwise.advise(task=…)`` names it."""
    if task in TASKS:
        return LANGUAGE_KINDS.get(TASKS[task].kind, TASKS[task].kind)
    return "retrieve" if task.startswith("farthest") else KINDS[task]


def stored(inputs: Iterable[Row]) -> dict[str, Evidence]:
    """The stored evidence by task."""
    return {row["task"]: stored_evidence(row) for row in inputs}


def swept_tasks(
    rows: Sequence[Row], inputs: Sequence[Row], language: Sequence[Row] = ()
) -> list[Swept]:
    """The tasks that are evidence: every split of the width trained, and the task learned."""
    return [*_small(rows, inputs), *_language(language)]


def partly_swept(rows: Sequence[Row], inputs: Sequence[Row]) -> list[Swept]:
    """The tasks of which some splits are trained: too few to be evidence, enough to compare."""
    complete = _complete(rows, inputs)
    found = [_scored(rows, row) for row in inputs if row["task"] not in complete]
    return [task for task in found if task.scores]


def _small(rows: Sequence[Row], inputs: Sequence[Row]) -> list[Swept]:
    told = {row["task"]: row for row in inputs}
    return [_scored(rows, told[name]) for name in _complete(rows, inputs)]


def _complete(rows: Sequence[Row], inputs: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(v.task for v in judge(rows, inputs) if v.regime == "width"))


def _scored(rows: Sequence[Row], told: Row) -> Swept:
    name = told["task"]
    scores = of_one_device(rows, name, told["trivial"], choices(name, "width"))
    points = {g: {s: 100 * x for s, x in seeds.items()} for g, seeds in scores.items()}
    held_out, evidence = BENCHES[name].judged and name not in USED, stored_evidence(told)
    (steps,) = {row["steps"] for row in rows if row["task"] == name} or {0}
    return Swept(name, kind_of(name), held_out, evidence, points, "points", steps)


def _language(rows: Sequence[Row]) -> list[Swept]:
    known = stored(read_rows([INPUTS]))
    return [
        Swept(
            name,
            kind_of(name),
            TASKS[name].held_out,
            known[name],
            width_scores(rows, name),
            "nats",
            longest_training(rows, name),
        )
        for name in judged_names(rows)
        if name in known
    ]


def evidence_rows(tasks: Sequence[Swept]) -> list[Row]:
    """What leaving the usual geometry brought on each task.

    The geometry that left it has the rank suggested by the tokens, or less where the other tasks
    limit it.
    """
    asked = [asked_by_tokens(task) for task in tasks]
    told = [_row(task, advised) for task, advised in zip(tasks, asked, strict=True)]
    return [
        _row(task, _limited(task, advised, [row for row in told if row is not own]))
        for task, advised, own in zip(tasks, asked, told, strict=True)
    ]


@cache
def asked_by_tokens(task: Swept) -> HeadGeometry:
    """The split suggested by the tokens, if nothing is known of other tasks."""
    if task.kind == "regress":
        return task.question.with_rank(choose_rank(task.evidence, task="regress").rank)
    return RULES["headwise"](task.question)[0]


def _limited(task: Swept, advised: HeadGeometry, others: Sequence[Row]) -> HeadGeometry:
    """The same split, with no more rank than paid on other tasks of its kind."""
    ceiling = support_for(task.kind, task.tokens, [from_row(row) for row in others]).ceiling
    chosen = choose_rank(task.evidence, task=task.kind).limited(ceiling)
    limited = task.question.with_rank(chosen.rank)
    return min(advised, limited, key=lambda split: split.qk_rank)


def _row(task: Swept, by_rank: HeadGeometry) -> Row:
    (usual,) = RULES["usual (r = 64)"](task.question)
    lower = [g for g in task.splits if g.qk_rank < by_rank.qk_rank]
    half = lower[-1] if lower else by_rank
    usual_regret, usual_error = task.gap(task.best, usual)
    by_rank_regret, by_rank_error = task.gap(task.best, by_rank)
    gain, gain_error = task.gap(by_rank, usual)
    pairs = {"best": task.best, "usual": usual, "by_rank": by_rank}
    return {
        "name": task.name,
        "kind": task.kind,
        "tokens": task.tokens,
        "data": task.data,
        "steps": task.steps,
        "width": task.evidence.width,
        **{name: [g.heads, g.qk_rank] for name, g in pairs.items()},
        "unit": task.unit,
        "usual_regret": usual_regret,
        "usual_error": usual_error,
        "by_rank_regret": by_rank_regret,
        "by_rank_error": by_rank_error,
        "gain": gain,
        "gain_error": gain_error,
        "half_cost": task.gap(by_rank, half)[0],
        "most": max(g.qk_rank for g in task.splits if task.is_near_best(g)),
        "held_out": task.held_out,
    }
