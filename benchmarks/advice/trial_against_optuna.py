"""Trials against what people use, at equal training steps, on recorded curves.

    python -m benchmarks.advice.trial_against_optuna [--figure docs/figures/trial-regret]

Compared: ``headwise.trial``; Optuna's successive halving (ASHA) and Hyperband, both with TPE;
random search; and the advised geometry without any comparison. Every method is replayed on
the same recorded runs, may spend the same number of steps, and names one geometry. Its regret is
how far that geometry ends above the best, by the mean of all seeds. Needs optuna (extra ``bench``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.advice.recorded_curves import RECORDS, Recorded, recorded_tasks
from benchmarks.advice.trial_calibration import advised_name, raced
from benchmarks.recording import provenance

from headwise.report import render, save_rendered
from headwise.report.figures import COLOURS, MARKERS, in_style
from headwise.trials.prediction import ADVISED_PRIOR

#: Shares of the full sweep that a method may spend.
BUDGETS = (0.05, 0.07, 0.1, 0.14, 0.2, 0.4, 0.7)

#: Repetitions of each method: other orders of seeds, other draws.
REPEATS = 8

RESULT = RECORDS / "trial_against_optuna_202611.jsonl"

#: A method: task, steps it may spend, random seed; the name of the geometry it chooses.
Method = Callable[[Recorded, float, int], str]


def trial_with(seeds: int) -> Method:
    """The trial of this package with so many seeds."""

    def method(task: Recorded, budget: float, seed: int) -> str:
        order = np.random.default_rng(seed).permutation(task.scores.shape[2])[:seeds]
        standing = raced(task, [int(one) for one in order], budget, ADVISED_PRIOR)
        found = standing.predictions(task.full)
        return min(found, key=lambda name: found[name].score)

    return method


def advised_alone(task: Recorded, budget: float, seed: int) -> str:
    """Train the advised geometry and nothing else."""
    return advised_name(task)


def random_search(task: Recorded, budget: float, seed: int) -> str:
    """Full runs of random geometries and seeds while steps last; at least one."""
    rng, found = np.random.default_rng(seed), {}
    places = rng.permutation(len(task.candidates) * task.scores.shape[2])
    for place in places[: max(1, int(budget // task.full))]:
        candidate, run = divmod(int(place), task.scores.shape[2])
        score = task.scores[candidate, -1, run]
        found[candidate] = min(found.get(candidate, np.inf), score)
    return list(task.candidates)[min(found, key=lambda c: found[c])]


def optuna_with(make_pruner: Callable[[Recorded], Any]) -> Method:
    """Optuna: TPE proposes the rank, a pruner stops runs."""

    def method(task: Recorded, budget: float, seed: int) -> str:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=4)
        # Hyperband draws brackets from the study's name, which is random unless it is given.
        name = f"{task.name} {budget:g} {seed}"
        pruner = make_pruner(task)
        study = optuna.create_study(sampler=sampler, pruner=pruner, study_name=name)
        names, spent = list(task.candidates), 0
        used = dict.fromkeys(names, 0)
        furthest: dict[str, tuple[int, float]] = {}
        while spent < budget and len(study.trials) < 200:
            run = study.ask()
            place = run.suggest_int("rank", 0, len(names) - 1)
            name, seeds = names[place], task.scores.shape[2]
            order = np.random.default_rng([seed, place]).permutation(seeds)
            own = task.scores[place, :, order[used[name] % seeds]]
            used[name] += 1
            state, last = optuna.trial.TrialState.COMPLETE, 0
            for step, score in zip(task.steps, own, strict=True):
                if spent + step - last > budget:
                    state, spent = optuna.trial.TrialState.FAIL, budget
                    break
                spent, last = spent + step - last, step
                run.report(float(score), step)
                furthest[name] = max(furthest.get(name, (0, 0.0)), (step, -float(score)))
                if step < task.full and run.should_prune():
                    state = optuna.trial.TrialState.PRUNED
                    break
            value = float(own[-1]) if state == optuna.trial.TrialState.COMPLETE else None
            study.tell(run, value, state=state)
        complete = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
        if complete:
            return names[study.best_trial.params["rank"]]
        return max(furthest, key=lambda name: furthest[name]) if furthest else names[0]

    return method


def _asha(task: Recorded) -> Any:
    import optuna

    return optuna.pruners.SuccessiveHalvingPruner(min_resource=max(1, task.full // 16))


def _hyperband(task: Recorded) -> Any:
    import optuna

    least = max(1, task.full // 16)
    return optuna.pruners.HyperbandPruner(min_resource=least, max_resource=task.full)


METHODS: dict[str, Method] = {
    "headwise trial": trial_with(2),
    "Optuna, ASHA + TPE": optuna_with(_asha),
    "Optuna, Hyperband + TPE": optuna_with(_hyperband),
    "random search": random_search,
    "advised geometry alone": advised_alone,
}


def rows_of(tasks: list[Recorded]) -> list[dict[str, Any]]:
    """One row for each method, task, budget and repetition."""
    return [
        {
            "method": name,
            "task": task.name,
            "measure": task.measure,
            "budget": share,
            "repeat": seed,
            "chosen": (chosen := method(task, share * task.sweep_cost, seed)),
            "regret": round(task.regret(chosen), 5),
        }
        for task in tasks
        for name, method in METHODS.items()
        for share in BUDGETS
        for seed in range(REPEATS)
    ]


def mean_regret(rows: list[dict[str, Any]], method: str, share: float, measure: str) -> np.ndarray:
    """The mean regret of a method on each task of a measure."""
    own = [r for r in rows if (r["method"], r["budget"], r["measure"]) == (method, share, measure)]
    tasks = dict.fromkeys(row["task"] for row in own)
    return np.array([np.mean([r["regret"] for r in own if r["task"] == t]) for t in tasks])


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean regret by measure, budget and method, and how far behind the trial each is.

    The error is that of the mean of paired differences over tasks.
    """
    found = []
    for measure in dict.fromkeys(row["measure"] for row in rows):
        scale = 100.0 if measure == "error rate" else 1.0
        for share in BUDGETS:
            ours = scale * mean_regret(rows, "headwise trial", share, measure)
            for name in METHODS:
                theirs = scale * mean_regret(rows, name, share, measure)
                behind = theirs - ours
                error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 else np.nan
                found.append(
                    {
                        "unit": "points" if measure == "error rate" else "nats",
                        "tasks": len(ours),
                        "budget": share,
                        "method": name,
                        "mean_regret": round(float(theirs.mean()), 4),
                        "behind_trial": round(float(behind.mean()), 4),
                        "paired_error": round(float(error), 4),
                    }
                )
    return found


def figure(told: list[dict[str, Any]]) -> object:
    """Draw regret against cost, one panel for each unit."""
    from matplotlib.figure import Figure

    units = [unit for unit in ("nats", "points") if any(row["unit"] == unit for row in told)]
    with in_style():
        drawn = Figure(figsize=(4.8 * len(units) + 1.8, 3.8), layout="constrained")
        panels = drawn.subplots(1, len(units), squeeze=False)[0]
        for axes, unit in zip(panels, units, strict=True):
            for place, name in enumerate(METHODS):
                own = [r for r in told if r["unit"] == unit and r["method"] == name]
                x, y = [100 * r["budget"] for r in own], [r["mean_regret"] for r in own]
                look = {"color": COLOURS[place], "marker": MARKERS[place]}
                axes.plot(x, y, lw=2.4 if place == 0 else 1.3, label=name, **look)
            axes.set_xscale("log")
            ticks = [100 * share for share in BUDGETS]
            axes.set_xticks(ticks, [f"{tick:.0f} %" for tick in ticks], minor=False)
            axes.minorticks_off()
            axes.set_xlabel("training steps, share of the full sweep")
            axes.set_ylabel(f"mean regret, {unit}")
            count = next(row["tasks"] for row in told if row["unit"] == unit)
            axes.set_title(f"{count} recorded tasks in {unit}", loc="left")
            axes.set_ylim(bottom=0)
        panels[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawn


def main() -> None:
    """Replay every method, print the summary and record the rows."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--figure", type=Path, help="write the figure with this name")
    parser.add_argument("--result", type=Path, default=RESULT)
    given = parser.parse_args()
    rows = rows_of(recorded_tasks())
    told = summary(rows)
    for line in told:
        print(json.dumps(line))
    made = {"summary": told, **provenance("cpu", "float64", 0)}
    lines = [json.dumps(made), *(json.dumps(row) for row in rows)]
    given.result.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if given.figure is not None:
        save_rendered(render(figure(told), [".png", ".svg"]), given.figure)


if __name__ == "__main__":
    main()
