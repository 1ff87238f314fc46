"""What the advice names for each recorded task, with the results of the task's family left out.

    python -m benchmarks.advice.trial_advice --cifar10 FOLDER [--record FILE]

The replayed trials start from this advice. ``FOLDER`` holds ``cifar-10-batches-py/``. Tasks in the
record are not measured again.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch
from benchmarks.advice.datasets import cifar10
from benchmarks.advice.evidence_table import kind_of
from benchmarks.advice.inputs import RECORD as SMALL_INPUTS
from benchmarks.advice.inputs import stored_evidence
from benchmarks.advice.judge_language import INPUTS as LANGUAGE_INPUTS
from benchmarks.advice.language_tasks import TASKS as LANGUAGE_TASKS
from benchmarks.advice.recorded_curves import RECORDS, Recorded, recorded_tasks
from benchmarks.advice.tasks import SHOWN
from benchmarks.advice.trial_curves import TASKS as TRIAL_TASKS
from benchmarks.recording import Row, provenance, read_rows

from headwise.advice import advise
from headwise.advice.decide import decide
from headwise.advice.evidence import Evidence
from headwise.advice.judged import judged_tasks
from headwise.advice.question import Constraints, Question
from headwise.trials.candidates import advice_for, name_of

RECORD = RECORDS / "trial_advice_202611.jsonl"


def family(task: str) -> str:
    """Tasks of one family are left out together: they share their data."""
    return task.split("-")[0]


def evidence_of(task: Recorded, folder: Path) -> Evidence:
    """What the advice sees of a task before training."""
    stored = {row["task"]: row for row in read_rows([SMALL_INPUTS, LANGUAGE_INPUTS])}
    if task.name in TRIAL_TASKS:
        small = TRIAL_TASKS[task.name]()
        return advice_for(small.problem, small.width).evidence
    if task.name in stored:
        return stored_evidence(stored[task.name])
    if family(task.name) == "imdb":
        return stored_evidence(stored["imdb"])
    pixels = torch.from_numpy(cifar10(folder)["x_train"][:SHOWN]).float()
    images = (pixels - pixels.mean((0, 2, 3), keepdim=True)) / pixels.std()
    return advise(images, width=task.width, patch=4, task="classify").evidence


def question_of(task: Recorded) -> Question:
    """What is asked: the kind of task, and the number of heads where all candidates share it."""
    heads = {geometry.heads for geometry in task.candidates.values()}
    by_measure = "next-token" if task.measure == "nats" else "classify"
    kind = kind_of(task.name) if task.name in LANGUAGE_TASKS else by_measure
    question = Question(task=kind)
    if len(heads) > 1:
        return question
    return replace(question, constraints=Constraints(heads=heads.pop()))


def advice_row(task: Recorded, folder: Path) -> Row:
    """The candidate that the advice names, and whether judged tasks of other families support it.

    A rank that is no candidate is rounded up.
    """
    others = [one for one in judged_tasks() if family(one.name) != family(task.name)]
    found = decide(evidence_of(task, folder), question_of(task), judged=others)
    ranked = sorted(task.candidates.values(), key=lambda geometry: geometry.qk_rank)
    above = [geometry for geometry in ranked if geometry.qk_rank >= found.best.rank]
    return {
        "task": task.name,
        "advised": name_of((above or ranked[-1:])[0]),
        "rank": found.best.rank,
        "supported": found.support.enough and bool(found.support.tasks),
        "judged_by": [one.name for one in found.support.tasks],
        **provenance("cpu", "float64", 0),
    }


def main() -> None:
    """Ask for advice on the tasks that are not recorded yet."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--cifar10", type=Path, required=True)
    parser.add_argument("--record", type=Path, default=RECORD)
    given = parser.parse_args()
    known = {row["task"] for row in read_rows([given.record])}
    for task in recorded_tasks():
        if task.name not in known:
            row = advice_row(task, given.cifar10)
            print(row["task"], row["advised"], row["supported"], row["judged_by"], flush=True)
            with given.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
