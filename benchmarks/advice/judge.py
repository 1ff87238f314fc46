"""Judge the rules by rows of finished sweeps: regret, its error, and what the choice costs.

    python -m benchmarks.advice.judge [--rows FILE …] [--page docs/advice-judged.md]
        [--tables docs/advice-rules.md]

Regret is the score of the best trained geometry less that of the chosen one, seed by seed (the
same seed has the same data order and test set), so its standard error is that of a paired
difference. "Best" is best in hindsight, by the mean over seeds, so regret leans towards too much.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.advice.inputs import RECORD, stored_evidence
from benchmarks.advice.rules import RULES, Question, Regime, Rule
from benchmarks.advice.tasks import BENCHES, SweepName
from benchmarks.recording import Row, read_rows

from headwise.geometry import HeadGeometry

RECORDS = Path(__file__).parent / "records"

Scores = Mapping[HeadGeometry, Mapping[int, float]]


@dataclass(frozen=True)
class Verdict:
    """What a rule's choice was worth on a task.

    ``regret`` is in points of accuracy, or of the trivial error for tasks with an error; ``ratio``
    is error / best error there. ``cost`` is attention parameters against the largest choice.
    """

    task: str
    regime: Regime
    rule: str
    chosen: tuple[HeadGeometry, ...]
    best: HeadGeometry
    regret: float
    error: float
    ratio: float | None
    cost: float
    by_seed: tuple[float, ...]


def scores_of(
    rows: Iterable[Row], task: str, trivial: float
) -> dict[HeadGeometry, dict[int, float]]:
    """Score by geometry and seed: accuracy, or minus the share of the trivial error."""
    found: dict[HeadGeometry, dict[int, float]] = {}
    for row in rows:
        if row["task"] == task:
            found.setdefault(_geometry(row), {})[row["seed"]] = _score(row, trivial)
    return found


def _geometry(row: Row) -> HeadGeometry:
    return HeadGeometry(row["width"], row["heads"], row["heads"], row["qk_rank"], row["v_rank"])


def _score(row: Row, trivial: float) -> float:
    if row["measure"] == "accuracy":
        return trivial if row["score"] is None else row["score"]
    return -1.0 if row["score"] is None else -row["score"] / trivial


SWEEPS_OF: dict[Regime, tuple[SweepName, ...]] = {
    "heads": ("heads",),
    "width": ("width",),
    "half": ("half",),
    "free": ("heads", "width"),
}

#: Regimes in which the best is sought among all that was trained, not among the choices alone.
OPEN: tuple[Regime, ...] = ("half", "free")

#: At half of the parameters more heads than this were trained on some tasks only.
MOST_HEADS: dict[Regime, int] = {"half": 32}


def choices(
    task: str, regime: Regime, trained: Collection[HeadGeometry] = ()
) -> tuple[HeadGeometry, ...]:
    """What a rule may choose in a regime, smallest rank first: more heads where trained."""
    sweeps = (BENCHES[task].geometries(sweep) for sweep in SWEEPS_OF[regime])
    found = dict.fromkeys(geometry for sweep in sweeps for geometry in sweep)
    most = MOST_HEADS.get(regime)
    return tuple(g for g in found if most is None or g.heads <= most or g in trained)


def everything(rows: Iterable[Row], task: str) -> tuple[HeadGeometry, ...]:
    """What was trained of a task with values of the same rank as queries and keys."""
    found = (_geometry(row) for row in rows if row["task"] == task)
    return tuple(dict.fromkeys(g for g in found if g.qk_rank == g.v_rank))


def complete(task: str, regime: Regime, scores: Scores) -> bool:
    """Whether every choice was trained: with gaps, the best and the chosen would be guesses."""
    return all(geometry in scores for geometry in choices(task, regime))


def verdict(name: str, rule: Rule, question: Question, task: str, scores: Scores) -> Verdict:
    """Regret and cost of what a rule chooses; the best is that of all scores given."""
    best = max(scores, key=lambda g: statistics.fmean(scores[g].values()))
    chosen = tuple(rule(question))
    # Seeds that everything was trained with: all rules then stand before the same court.
    seeds = sorted(set.intersection(*(set(scores[g]) for g in scores)))
    by_seed = tuple(
        scores[best][seed] - statistics.fmean(scores[g][seed] for g in chosen) for seed in seeds
    )
    cost = statistics.fmean(g.parameters for g in chosen) / max(g.parameters for g in scores)
    regret, error = mean_and_error(by_seed)
    ratio = _error_ratio(task, scores, best, chosen)
    return Verdict(task, question.regime, name, chosen, best, regret, error, ratio, cost, by_seed)


def _error_ratio(
    task: str, scores: Scores, best: HeadGeometry, chosen: Sequence[HeadGeometry]
) -> float | None:
    if BENCHES[task].measure == "accuracy":
        return None
    least = statistics.fmean(scores[best].values())
    found = statistics.fmean(statistics.fmean(scores[g].values()) for g in chosen)
    return found / least


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error; of one value the error is not known."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, float("nan")
    return mean, statistics.stdev(values) / len(values) ** 0.5


def judge(rows: Sequence[Row], inputs: Sequence[Row]) -> list[Verdict]:
    """Every rule on every task whose sweeps are complete, in every regime."""
    told = {row["task"]: row for row in inputs}
    found = []
    for task in BENCHES:
        if task not in told:
            continue
        evidence = stored_evidence(told[task])
        for regime in SWEEPS_OF:
            wanted = choices(task, regime)
            more = everything(rows, task) if regime in OPEN else ()
            scores = of_one_device(rows, task, told[task]["trivial"], wanted, more)
            if complete(task, regime, scores):
                wanted = choices(task, regime, scores)
                question = Question(regime, BENCHES[task].shape.heads, evidence, wanted)
                found += [verdict(n, rule, question, task, scores) for n, rule in RULES.items()]
    return found


def of_one_device(
    rows: Sequence[Row],
    task: str,
    trivial: float,
    wanted: Sequence[HeadGeometry],
    more: Sequence[HeadGeometry] = (),
) -> Scores:
    """The scores from the device that has most of the wanted cells, then most runs of them.

    ``more`` cells are kept beside those if that device has them.

    The same seed draws the same data everywhere, but rounding soon leads training another way: on
    two devices it is two runs, not a pair.
    """
    own = [row for row in rows if row["task"] == task]
    by_device = [
        scores_of([row for row in own if row["device"] == device], task, trivial)
        for device in sorted({row["device"] for row in own})
    ]
    kept = [{g: scores[g] for g in wanted if g in scores} for scores in by_device]
    if not kept:
        return {}
    most = max(range(len(kept)), key=lambda i: (len(kept[i]), sum(map(len, kept[i].values()))))
    return kept[most] | {g: by_device[most][g] for g in more if g in by_device[most]}


@dataclass(frozen=True)
class Summary:
    """A rule over several tasks: mean regret, paired error, mean cost.

    ``ratio`` is the geometric mean of error / best error over the tasks that have an error.
    """

    rule: str
    regret: float
    error: float
    cost: float
    behind: float
    behind_error: float
    ratio: float | None


def summary(verdicts: Sequence[Verdict], rule: str, ours: str = "headwise") -> Summary:
    """Means over tasks; ``behind`` is how much worse than ours, paired by task and seed."""
    own = [v for v in verdicts if v.rule == rule]
    first = {(v.task, v.regime): v for v in verdicts if v.rule == ours}
    behind = [_differences(v, first[v.task, v.regime]) for v in own]
    ratios = [math.log(v.ratio) for v in own if v.ratio is not None]
    return Summary(
        rule,
        statistics.fmean(v.regret for v in own),
        _joint_error([v.by_seed for v in own]),
        statistics.fmean(v.cost for v in own),
        statistics.fmean(statistics.fmean(one) for one in behind),
        _joint_error(behind),
        math.exp(statistics.fmean(ratios)) if ratios else None,
    )


def _differences(theirs: Verdict, ours: Verdict) -> list[float]:
    return [a - b for a, b in zip(theirs.by_seed, ours.by_seed, strict=True)]


def _joint_error(by_task: Sequence[Sequence[float]]) -> float:
    """The standard error of a mean over tasks whose own errors are independent."""
    return sum(mean_and_error(one)[1] ** 2 for one in by_task) ** 0.5 / len(by_task)


def main() -> None:
    """Judge, print, and write the page and the evidence table."""
    from benchmarks.advice.evidence_table import evidence_rows, partly_swept, swept_tasks
    from benchmarks.advice.judge_language import apart_rows
    from benchmarks.advice.lead import (
        LEAD_BEGIN,
        LEAD_END,
        PART_BEGIN,
        PART_END,
        lead_table,
        part_table,
    )
    from benchmarks.advice.page import report, write_page

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, nargs="+", default=sorted(RECORDS.glob("rows*.jsonl")))
    parser.add_argument("--inputs", type=Path, default=RECORD)
    parser.add_argument("--page", type=Path, help="put the leading tables into this page")
    parser.add_argument("--tables", type=Path, help="put all other tables into this page")
    parser.add_argument("--evidence", type=Path, help="write the table of evidence (JSON) here")
    parser.add_argument("--apart", type=Path, help="write what single ranks cost (JSON) here")
    parser.add_argument(
        "--language", type=Path, nargs="*", default=sorted(RECORDS.glob("language*.jsonl"))
    )
    given = parser.parse_args()
    rows, inputs = read_rows(given.rows), read_rows([given.inputs])
    text = report(judge(rows, inputs), rows, inputs)
    language = read_rows(given.language)
    tasks = swept_tasks(rows, inputs, language)
    lead, part = lead_table(tasks), part_table(partly_swept(rows, inputs), tasks)
    print(f"{lead}\n\n{part}\n\n{text}")
    if given.page is not None:
        write_page(given.page, lead, LEAD_BEGIN, LEAD_END)
        write_page(given.page, part, PART_BEGIN, PART_END)
    if given.tables is not None:
        write_page(given.tables, text)
    if given.evidence is not None:
        lines = ",\n ".join(json.dumps(row) for row in evidence_rows(tasks))
        given.evidence.write_text(f"[{lines}]\n", encoding="utf-8")
    if given.apart is not None:
        lines = ",\n ".join(json.dumps(row) for row in apart_rows(language))
        given.apart.write_text(f"[{lines}]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
