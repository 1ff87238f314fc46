"""Are a trial's probabilities right? Brier score and reliability on recorded curves.

    python -m benchmarks.advice.trial_calibration [--figure docs/figures/trial-calibration]

A trial is replayed on every recorded task, with pairs of seeds (up to six) and with budgets of
5, 10, 20 and 40 % of the full sweep. A candidate's probability of being best is compared with
whether it is best by the mean of all seeds at the full length. The factor on the walk's error, the
weight of the advised geometry and the share that is spread equally are chosen task by task from
tasks of other families alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.advice.recorded_curves import RECORDS, Recorded, Replay, recorded_tasks
from benchmarks.advice.trial_advice import RECORD as ADVICE
from benchmarks.advice.trial_advice import family
from benchmarks.recording import provenance, read_rows

from headwise.geometry import usual
from headwise.report import render, save_rendered
from headwise.report.figures import COLOURS, in_style
from headwise.trials import prediction
from headwise.trials.candidates import name_of
from headwise.trials.halving import ROUNDS, Limits, Repeats, Standing, race

BUDGETS = (0.05, 0.1, 0.2, 0.4)

#: What is tried: factors on the error of the walk, weights of the advised geometry, and shares
#: of probability that are spread equally.
TEMPERS, PRIORS = (0.7, 1.0, 1.5, 2.0, 3.0), (1.0, 2.0, 4.0)
SURPRISES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
PLAIN = (1.0, 1.0, 0.0)

MOST_PAIRS = 6

#: Draws of each replay; fewer than in use, because there are thousands of replays.
DRAWS = 4_000
SHARES = (0.0, 0.25, 0.5, 1.0)
BINS = (0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 1.0)
RESULT = RECORDS / "trial_calibration_202611.json"


@cache
def _advice() -> dict[str, str]:
    return {row["task"]: row["advised"] for row in read_rows([ADVICE])}


def advised_name(task: Recorded) -> str:
    """The candidate that the advice names for a task, with the task's family left out.

    A task that is not recorded has the usual one.
    """
    return _advice().get(task.name) or name_of(usual(task.width))


@dataclass(frozen=True)
class Told:
    """One probability that a trial gave, whether it came true, and what there was to go by.

    ``reached`` is the share of the full length that was trained, ``equal`` the chance if all
    candidates have the same.
    """

    task: str
    budget: float
    probability: float
    best: bool
    reached: float = 0.0
    equal: float = 0.0


def plan_of(task: Recorded) -> list[tuple[int, bool]]:
    """The recorded steps as looks; rounds end at those nearest to the usual shares."""
    ends = {nearest_look(task.steps, share * task.full) for share in ROUNDS}
    return [(step, step in ends) for step in task.steps]


def nearest_look(steps: Sequence[int], wanted: float) -> int:
    """The recorded step that is nearest in log steps."""
    return min(steps, key=lambda step: abs(np.log(step / wanted)))


def seed_pairs(task: Recorded) -> Iterator[tuple[int, ...]]:
    """Pairs of seeds, the same ones every time; each seed comes first once."""
    seeds = task.scores.shape[2]
    pairs = ((first, (first + 1) % seeds) for first in range(seeds))
    return itertools.islice(pairs, MOST_PAIRS)


def replayed(task: Recorded, seeds: Sequence[int], budget: float, prior: float) -> dict[str, float]:
    """The probabilities of a trial of these seeds that may cost a share of the full sweep."""
    return {name: one.probability for name, one in _told(task, seeds, budget, prior).items()}


def _told(task: Recorded, seeds: Sequence[int], budget: float, prior: float) -> dict[str, Told]:
    """What a trial of these seeds says, by candidate."""
    standing = raced(task, seeds, budget * task.sweep_cost, prior)
    reached, equal = standing.steps[-1] / task.full, 1 / len(task.candidates)
    return {
        name: Told(task.name, budget, one.probability, name == task.best, reached, equal)
        for name, one in standing.predictions(task.full).items()
    }


def raced(
    task: Recorded,
    seeds: Sequence[int],
    steps: float,
    prior: float,
    *,
    plan: Sequence[tuple[int, bool]] | None = None,
    first: int = 1,
) -> Standing:
    """Where a trial of these seeds, of which some come first, stands after so many steps."""
    early, late = Replay(task, seeds[:first]), Replay(task, seeds[first:])
    limits = Limits(
        steps,
        clock=lambda: early.spent() + late.spent(),
        plan=plan_of(task) if plan is None else plan,
        prior={advised_name(task): prior},
        fewest_looks=1,
    )
    repeats = Repeats(len(late.seeds), lambda: late) if late.seeds else None
    return race(early, list(task.candidates), task.full, limits, repeats)


def told_of(task: Recorded, temper: float, prior: float, surprise: float) -> list[Told]:
    """Every probability of every replay of a task."""
    return [_spread(one, surprise) for one in _replays(task, temper, prior)]


def _spread(one: Told, surprise: float) -> Told:
    """Spread a share equally, as a trial does until someone has trained to the end."""
    if one.reached == 1:
        return one
    return replace(one, probability=(1 - surprise) * one.probability + surprise * one.equal)


@cache
def _replays(task: Recorded, temper: float, prior: float) -> list[Told]:
    """What trials say before any of it is spread equally."""
    prediction.WALK_TEMPER, prediction.SURPRISE, prediction.DRAWS = temper, 0.0, DRAWS
    return [
        one
        for budget in BUDGETS
        for seeds in seed_pairs(task)
        for one in _told(task, seeds, budget, prior).values()
    ]


def brier(told: Sequence[Told]) -> float:
    """The mean squared difference between probability and outcome."""
    return float(np.mean([(one.probability - one.best) ** 2 for one in told]))


def left_out(grid: dict[tuple, dict[str, list[Told]]]) -> dict[str, tuple]:
    """For each task the setting with the lowest mean Brier score on the other tasks."""
    names = next(iter(grid.values())).keys()
    return {
        name: min(
            grid,
            key=lambda setting: np.mean(
                [
                    brier(told)
                    for other, told in grid[setting].items()
                    if family(other) != family(name)
                ]
            ),
        )
        for name in names
    }


def reliability(told: Sequence[Told]) -> list[dict[str, float]]:
    """Mean probability and share that came true, by bins of probability."""
    found = []
    for low, high in itertools.pairwise(BINS):
        own = [t for t in told if low <= t.probability < high or (high == 1 == t.probability)]
        if own:
            share = float(np.mean([t.best for t in own]))
            stated = float(np.mean([t.probability for t in own]))
            found.append({"stated": stated, "true": share, "count": len(own)})
    return found


def by_share(told: Sequence[Told]) -> list[dict[str, Any]]:
    """Brier scores by the cost, and by the share of the full length that was trained."""
    groups = [(f"{100 * b:g} % of the cost", [t for t in told if t.budget == b]) for b in BUDGETS]
    for low, high in itertools.pairwise(SHARES):
        own = [t for t in told if low <= t.reached < high]
        groups.append((f"{100 * low:g} to {100 * high:g} % of the length", own))
    groups.append(("the full length", [t for t in told if t.reached == 1]))
    return [
        {
            "stopped_at": name,
            "count": len(own),
            "brier": round(brier(own), 4),
            "equal_chances": round(brier([replace(t, probability=t.equal) for t in own]), 4),
        }
        for name, own in groups
        if own
    ]


def figure(curves: dict[str, list[dict[str, float]]]) -> object:
    """Draw the share that came true against the probability that was stated."""
    from matplotlib.figure import Figure

    with in_style():
        drawn = Figure(figsize=(5.2, 4.6), layout="constrained")
        axes = drawn.subplots()
        axes.plot([0, 1], [0, 1], color="#888888", lw=0.8, ls="--", label="calibrated")
        # Counts of the first curve stand above it and those of the second below.
        looks = zip(curves.items(), COLOURS, "os", ((-16, 6), (4, -10)), strict=False)
        for (label, bins), colour, marker, shift in looks:
            x, y = [b["stated"] for b in bins], [b["true"] for b in bins]
            axes.plot(x, y, color=colour, marker=marker, label=label)
            for one in bins:
                at = (one["stated"], one["true"])
                axes.annotate(
                    f"{one['count']:.0f}",
                    at,
                    xytext=shift,
                    fontsize=7,
                    textcoords="offset points",
                    color=colour,
                )
        axes.set_xlabel("stated probability of being best")
        axes.set_ylabel("share that was best")
        axes.set_title("Trials replayed on recorded curves", loc="left")
        axes.legend(loc="upper left")
    return drawn


def main() -> None:
    """Calibrate, print and record."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--figure", type=Path, help="write the figure with this name")
    parser.add_argument("--result", type=Path, default=RESULT)
    given = parser.parse_args()
    tasks = recorded_tasks()
    grid = {
        setting: {task.name: told_of(task, *setting) for task in tasks}
        for setting in itertools.product(TEMPERS, PRIORS, SURPRISES)
    }
    chosen = left_out(grid)
    raw = [one for told in grid[PLAIN].values() for one in told]
    judged = [one for name, setting in chosen.items() for one in grid[setting][name]]
    uniform = [replace(one, probability=one.equal) for one in raw]
    everything = min(grid, key=lambda s: np.mean([brier(told) for told in grid[s].values()]))
    result = {
        "tasks": [task.name for task in tasks],
        "replays": len(raw),
        "brier_untempered": round(brier(raw), 4),
        "brier_left_out": round(brier(judged), 4),
        "brier_equal_chances": round(brier(uniform), 4),
        "chosen_on_all": list(everything),
        "chosen_left_out": {name: list(setting) for name, setting in chosen.items()},
        "brier_by_task": {
            name: [round(brier(grid[PLAIN][name]), 4), round(brier(grid[setting][name]), 4)]
            for name, setting in chosen.items()
        },
        "brier_left_out_by_share": by_share(judged),
        "reliability_untempered": reliability(raw),
        "reliability_left_out": reliability(judged),
        **provenance("cpu", "float64", 0),
    }
    print(json.dumps(result, indent=1))
    given.result.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if given.figure is not None:
        shown = {"settings chosen on other families": reliability(judged)}
        save_rendered(render(figure(shown), [".png", ".svg"]), given.figure)


if __name__ == "__main__":
    main()
