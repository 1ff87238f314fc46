"""Which plan should a trial follow? Chosen on recorded curves, without the task's own family.

    python -m benchmarks.advice.trial_plans [--result FILE]

A plan says how many seeds all candidates train with (one, then the others for those that are left;
or all at once) and after which share of the full length the field is halved for the first time.
For each task the plan is chosen on the tasks of other families: the lowest mean of regret over goal
(0.015 nats, 0.5 points) at 10, 20 and 40 % of the cost of the full sweep. The probability below
which a candidate is stopped is then chosen in the same way, with the plan in use.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.advice.recorded_curves import RECORDS, Recorded, recorded_tasks
from benchmarks.advice.trial_advice import family
from benchmarks.advice.trial_calibration import nearest_look, raced, seed_pairs
from benchmarks.recording import provenance

from headwise.trials import halving
from headwise.trials.prediction import ADVISED_PRIOR

#: How seeds train, and where the field is halved for the first time.
SEEDS, HALVINGS = ("one first", "together"), (1 / 16, 1 / 8, 1 / 4, 1 / 2)
IN_USE = ("one first", 1 / 4)

#: Probabilities below which a candidate is stopped.
THRESHOLDS = (0.01, 0.003, 0.001, 0.0)

#: Shares of the cost of the full sweep that are reported, and those that a plan is chosen on.
BUDGETS, CHOSEN_ON = (0.05, 0.07, 0.1, 0.14, 0.2, 0.4), (0.1, 0.2, 0.4)

#: What else a plan could be chosen on, to see whether that matters.
ALTERNATIVES = ((0.1,), (0.05, 0.1, 0.2, 0.4))

#: The regret that is asked for.
GOALS = {"nats": 0.015, "error rate": 0.005}

RESULT = RECORDS / "trial_plans_202611.json"

#: How seeds train and the first halving; for thresholds, "stopped below" and the probability.
Plan = tuple[str, float]


def looks_of(task: Recorded, halving: float) -> list[tuple[int, bool]]:
    """The recorded steps; a round that halves nobody ends before the first halving."""
    shares = [halving / 2 * 2**power for power in range(20) if halving * 2**power <= 2]
    ends = {nearest_look(task.steps, share * task.full) for share in shares}
    return [(step, step in ends) for step in task.steps]


def regrets(task: Recorded, plan: Plan) -> list[float]:
    """The mean regret of a plan at each budget."""
    seeds, halving = plan
    looks = looks_of(task, halving)
    found = []
    for share in BUDGETS:
        own = []
        for pair in seed_pairs(task):
            standing = raced(
                task,
                pair,
                share * task.sweep_cost,
                ADVISED_PRIOR,
                plan=looks,
                first=1 if seeds == "one first" else len(pair),
            )
            predictions = standing.predictions(task.full)
            chosen = min(predictions, key=lambda name: predictions[name].score)
            own.append(task.regret(chosen))
        found.append(float(np.mean(own)))
    return found


def regrets_below(task: Recorded, threshold: float) -> list[float]:
    """The mean regret at each budget of the plan in use, with another threshold."""
    usual = halving.HOPELESS
    halving.HOPELESS = threshold
    try:
        return regrets(task, IN_USE)
    finally:
        halving.HOPELESS = usual


def by_family(
    tasks: Sequence[Recorded],
    found: Mapping[Plan, Mapping[str, list[float]]],
    shares: Sequence[float] = CHOSEN_ON,
) -> dict[str, Plan]:
    """For each task the plan that is best on the tasks of other families at these budgets."""

    def cost(plan: Plan, left_out: str) -> float:
        others = [task for task in tasks if family(task.name) != left_out]
        places = [BUDGETS.index(share) for share in shares]
        return float(
            np.mean([found[plan][t.name][k] / GOALS[t.measure] for t in others for k in places])
        )

    return {t.name: min(found, key=lambda plan: cost(plan, family(t.name))) for t in tasks}


def summary(
    tasks: Sequence[Recorded], regret: Mapping[str, list[float]]
) -> dict[str, dict[str, float]]:
    """Mean regret at each budget, in nats and in points."""
    told = {}
    for unit, measure, scale in (("nats", "nats", 1.0), ("points", "error rate", 100.0)):
        own = np.array([regret[t.name] for t in tasks if t.measure == measure])
        means = scale * own.mean(axis=0) if len(own) else []
        told[unit] = {
            f"{share:g}": round(float(mean), 4) for share, mean in zip(BUDGETS, means, strict=False)
        }
    return told


def left_out(
    tasks: Sequence[Recorded],
    found: Mapping[Plan, Mapping[str, list[float]]],
    shares: Sequence[float],
) -> dict[str, Any]:
    """The plans that are chosen at these budgets, and how each does on the family left out."""
    chosen = by_family(tasks, found, shares)
    judged = {name: found[plan][name] for name, plan in chosen.items()}
    return {
        "chosen_on": shares,
        "mean_regret": summary(tasks, judged),
        "chosen": {name: name_of_plan(plan) for name, plan in chosen.items()},
    }


def name_of_plan(plan: Plan) -> str:
    """A plan or a threshold in a few words."""
    if plan[0] not in SEEDS:
        return f"{plan[0]} {plan[1]:g}"
    return f"seeds {plan[0]}, halved from {plan[1]:g}"


def main() -> None:
    """Replay every plan, choose, print and record."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--result", type=Path, default=RESULT)
    given = parser.parse_args()
    tasks = recorded_tasks()
    plans = list(itertools.product(SEEDS, HALVINGS))
    found = {plan: {task.name: regrets(task, plan) for task in tasks} for plan in plans}
    stopped = {
        ("stopped below", one): {task.name: regrets_below(task, one) for task in tasks}
        for one in THRESHOLDS
    }
    result: dict[str, Any] = {
        "budgets": BUDGETS,
        "left_out": [left_out(tasks, found, shares) for shares in (CHOSEN_ON, *ALTERNATIVES)],
        "mean_regret": {name_of_plan(plan): summary(tasks, found[plan]) for plan in plans},
        "threshold_left_out": left_out(tasks, stopped, CHOSEN_ON),
        "mean_regret_by_threshold": {
            name_of_plan(one): summary(tasks, own) for one, own in stopped.items()
        },
        "regret_by_task": {
            name_of_plan(plan): {name: [round(x, 5) for x in own] for name, own in one.items()}
            for plan, one in found.items()
        },
        **provenance("cpu", "float64", 0),
    }
    print(json.dumps({k: v for k, v in result.items() if k != "regret_by_task"}, indent=1))
    given.result.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
