"""Successive halving: train all candidates a little, keep those that may still be best, go on."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from headwise.errors import BadInputError, UnreadableFileError
from headwise.progress import SILENT, Progress, tracked
from headwise.trials import prediction
from headwise.trials.prediction import Prediction, predict
from headwise.whole_files import write_whole

#: Rounds end at these shares of the full length; after each, at most half of the field stays.
ROUNDS = (1 / 8, 1 / 4, 1 / 2, 1.0)

#: Looks at the test data in each round.
LOOKS = 4

#: A candidate that is less likely than this to be best is stopped, whatever its place.
HOPELESS = 0.01


@runtime_checkable
class Runner(Protocol):
    """Trains candidates; everything the race needs to know of models and data."""

    def train(self, names: Sequence[str], until: int) -> Mapping[str, Sequence[float]]:
        """Train these candidates up to step ``until`` and return each seed's score (low = good)."""
        ...

    def save(self) -> None:
        """Keep the state, so that another process can go on."""
        ...


@dataclass
class Standing:
    """How far a race has come: the looks so far, who still runs, and the curves."""

    running: list[str]
    steps: list[int] = field(default_factory=list)
    curves: dict[str, list[list[float]]] = field(default_factory=dict)
    stopped: bool = False
    prior: dict[str, float] = field(default_factory=dict)

    def predictions(self, full: int) -> dict[str, Prediction]:
        """What the curves so far say about the full length."""
        curves = {name: np.array(curve, dtype=float) for name, curve in self.curves.items()}
        return predict(curves, self.steps, full, self.prior)


def looks(full: int) -> list[tuple[int, bool]]:
    """The steps at which scores are taken, and whether a round ends there."""
    found: dict[int, bool] = {}
    start = full * ROUNDS[0] / 2
    for share in ROUNDS:
        end = max(1, round(full * share))
        between = np.geomspace(max(1.0, start), end, LOOKS + 1)[1:]
        found.update({max(1, round(step)): False for step in between})
        found[end] = True
        start = end
    return sorted(found.items())


@dataclass(frozen=True)
class Limits:
    """What bounds a race.

    Attributes:
        seconds: How long it may take.
        path: Where its standing is kept.
        identity: Whose standing it is.
        progress: Receives news of the work.
        clock: Tells the time in seconds.
        plan: Steps at which to look, and whether a round ends there; by default ``looks``.
        prior: How much likelier than others a candidate is to be best before any training.
        fewest_looks: Fewer looks than this are no answer.
    """

    seconds: float | int = math.inf
    path: Path | None = None
    identity: str = ""
    progress: Progress = SILENT
    clock: Callable[[], float | int] = time.monotonic
    plan: Sequence[tuple[int, bool]] | None = None
    prior: Mapping[str, float] = field(default_factory=dict)
    fewest_looks: int = LOOKS


def race(runner: Runner, names: Sequence[str], full: int, limits: Limits | None = None) -> Standing:
    """Train until one candidate remains, the full length is reached, or the time is over.

    With a path the standing is saved there after every comparison, and a race that was killed
    resumes from it.

    Returns:
        The standing at the end.
    """
    limits = limits or Limits()
    standing = _read(limits) or Standing(
        list(names), curves={name: [] for name in names}, prior=dict(limits.prior)
    )
    points = looks(full) if limits.plan is None else limits.plan
    plan = _planned(points, len(names), max(standing.steps, default=0))
    pace = _Pace(limits.clock)
    progress = limits.progress
    with tracked(progress, "training candidates", total=sum(cost for *_, cost in plan)):
        for step, ends_round, cost in plan:
            if len(standing.running) == 1 < len(names):
                break
            work = (step - max(standing.steps, default=0)) * len(standing.running)
            if pace.late(work, limits.seconds):
                _refuse_no_round(standing, limits)
                standing.stopped = True
                break
            progress.show(f"step {step:,} of {full:,}, {len(standing.running)} candidates")
            _look(runner, standing, step)
            pace.add(work)
            if ends_round and step < full:
                standing.running = _survivors(standing, full)
            _write(limits, standing)
            runner.save()
            progress.advance(cost)
    return standing


def _planned(
    points: Sequence[tuple[int, bool]], count: int, done: int
) -> list[tuple[int, bool, int]]:
    """The looks after step ``done``, each with the steps it takes if half the field stops."""
    found, last = [], 0
    for step, ends_round in points:
        if step > done:
            found.append((step, ends_round, (step - last) * count))
        last = step
        if ends_round:
            count = max(2, math.ceil(count / 2))
    return found


class _Pace:
    """Seconds per step of one candidate in this process, and whether more work ends in time."""

    def __init__(self, clock: Callable[[], float | int]) -> None:
        self.clock, self.start, self.done = clock, clock(), 0

    def add(self, work: int) -> None:
        self.done += work

    def late(self, work: int, seconds: float | int) -> bool:
        spent = self.clock() - self.start
        return self.done > 0 and spent * (1 + work / self.done) > seconds


def _look(runner: Runner, standing: Standing, step: int) -> None:
    scores = runner.train(standing.running, step)
    for name in standing.running:
        standing.curves[name].append([float(score) for score in scores[name]])
    standing.steps.append(step)
    _refuse_all_diverged(standing)


def _refuse_all_diverged(standing: Standing) -> None:
    """Refuse to go on if no candidate has a finite score: more training would not help."""
    last = [standing.curves[name][-1] for name in standing.running]
    if not any(math.isfinite(score) for scores in last for score in scores):
        raise BadInputError(
            f"expected a finite score from at least one of {len(last)} candidates, got none after "
            f"{standing.steps[-1]} steps",
            hint="lower the learning rate, or check the data for NaN",
        )


def _refuse_no_round(standing: Standing, limits: Limits) -> None:
    if len(standing.steps) < limits.fewest_looks:
        raise BadInputError(
            f"expected time for one round of {len(standing.curves)} candidates, got "
            f"{limits.seconds:.0f} seconds, which end before it",
            hint="allow more minutes, or pass fewer steps or candidates",
        )


def _survivors(standing: Standing, full: int) -> list[str]:
    """The half with the best predicted scores, and at least two, less those without hope."""
    found = standing.predictions(full)
    order = sorted(standing.running, key=lambda name: found[name].score)
    half = order[: max(2, math.ceil(len(order) / 2))]
    least = HOPELESS + prediction.SURPRISE / len(found)
    hopeful = [name for name in half if found[name].probability >= least] or half[:1]
    return [name for name in standing.running if name in hopeful]


def _write(limits: Limits, standing: Standing) -> None:
    if limits.path is not None:
        content = json.dumps({"identity": limits.identity, **vars(standing)}).encode()
        write_whole(limits.path, content, hint="choose another folder")


def _read(limits: Limits) -> Standing | None:
    path = limits.path
    if path is None or not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = content.pop("identity")
        standing = Standing(**content)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UnreadableFileError(
            f"expected the standing of a trial in {path}, got something else",
            hint="remove it to start again",
        ) from None
    if known != limits.identity:
        raise UnreadableFileError(
            f"expected the standing of this trial in {path}, got that of another",
            hint="choose another folder, or remove it to start again",
        )
    standing.stopped = False
    return standing
