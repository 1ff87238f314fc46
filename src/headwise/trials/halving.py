"""Successive halving: train all candidates a little, keep those that may still be best, go on.

All candidates train with the first seed. The other seeds come last, and only for those that are
left: early in training the order of geometries changes by more than seeds differ, so steps are
better spent on length than on seeds.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from headwise.errors import BadInputError, UnreadableFileError
from headwise.progress import SILENT, Progress, tracked
from headwise.trials import prediction
from headwise.trials.prediction import Prediction, predicted
from headwise.whole_files import write_whole

#: Rounds end at these shares of the full length. After the first, only those without hope stop;
#: after each later one, at most half of the field stays. That the field is not halved before a
#: quarter, and that one seed comes first, is the best of eight plans on recorded curves at 10, 20
#: and 40 % of the cost of the full sweep, whichever family of tasks is left out
#: (``benchmarks.advice.trial_plans``).
ROUNDS = (1 / 8, 1 / 4, 1 / 2, 1.0)

#: Looks at the test data in each round.
LOOKS = 4

#: A candidate that is less likely than this to be best is stopped, whatever its place. It is what
#: the candidate has beyond its equal share of ``prediction.SURPRISE``. Chosen as the rounds were;
#: with 1 % some later winners were stopped early, and less changes little.
HOPELESS = 0.003


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
    """How far a race has come: the looks so far, who still runs, and the curves.

    ``others`` are curves of the other seeds, for those that are left after the last round.
    """

    running: list[str]
    steps: list[int] = field(default_factory=list)
    curves: dict[str, list[list[float]]] = field(default_factory=dict)
    stopped: bool = False
    prior: dict[str, float] = field(default_factory=dict)
    others: dict[str, list[list[float]]] = field(default_factory=dict)

    def scores(self, name: str) -> list[list[float]]:
        """The scores of a candidate by look and seed; other seeds count once they are complete."""
        first, more = self.curves[name], self.others.get(name, [])
        if len(more) < len(self.steps):
            return first
        return [[*one, *rest] for one, rest in zip(first, more, strict=True)]

    def predictions(self, full: int) -> dict[str, Prediction]:
        """What the curves so far say about the full length."""
        curves = {name: np.array(self.scores(name), dtype=float) for name in self.curves}
        return predicted(curves, self.steps, full, self.prior)


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


@dataclass(frozen=True)
class Repeats:
    """The seeds after the first.

    Attributes:
        seeds: How many.
        runner: Makes what trains them.
    """

    seeds: int
    runner: Callable[[], Runner]


def race(
    runner: Runner,
    names: Sequence[str],
    full: int,
    limits: Limits | None = None,
    repeats: Repeats | None = None,
) -> Standing:
    """Train until one candidate remains, the full length is reached, or the time is over.

    Those that reach the full length then train with the seeds of ``repeats``. With a path the
    standing is saved there after every comparison, and a race that was killed resumes from it.

    Returns:
        The standing at the end.
    """
    limits = limits or Limits()
    standing = _read(limits) or Standing(
        list(names), curves={name: [] for name in names}, prior=dict(limits.prior)
    )
    points = looks(full) if limits.plan is None else limits.plan
    plan = _planned(points, len(names), max(standing.steps, default=0))
    course = _Course(limits, standing, _Pace(limits.clock), full, _seeds_words(1, repeats))
    again = 0 if repeats is None else 2 * full * repeats.seeds
    total = sum(cost for *_, cost in plan) + again
    with tracked(limits.progress, "trial", total=total):
        for step, ends_round, cost in plan:
            if len(standing.running) == 1 < len(names):
                break
            work = (step - max(standing.steps, default=0)) * len(standing.running)
            if course.late(work):
                _refuse_no_round(standing, limits)
                break
            course.look(runner, step, standing.curves, work)
            if ends_round and step < full:
                halve = step > _first_end(points)
                standing.running = _survivors(standing, full, halve=halve)
            course.keep(runner, cost)
        if repeats is not None:
            _repeat(replace(course, seeds=_seeds_words(2, repeats)), repeats)
    return standing


def _seeds_words(first: int, repeats: Repeats | None) -> str:
    """The seeds that train now: the first alone, then all others together."""
    if repeats is None:
        return ""
    last = 1 + repeats.seeds
    alone = first in (1, last)
    return f"seed {first} of {last}, " if alone else f"seeds {first}-{last}, "


@dataclass(frozen=True)
class _Course:
    """A race on its way: its limits, where it stands, how fast it goes, and which seeds train."""

    limits: Limits
    standing: Standing
    pace: _Pace
    full: int
    seeds: str = ""

    def late(self, work: int) -> bool:
        """Whether so much more work would end too late; the race is stopped then."""
        self.standing.stopped = self.pace.late(work, self.limits.seconds)
        return self.standing.stopped

    def look(
        self, runner: Runner, step: int, curves: dict[str, list[list[float]]], work: int
    ) -> None:
        """Train those that run up to a step and add their scores to their curves."""
        running = self.standing.running
        where = f"{self.seeds}step {step:,}/{self.full:,}"
        self.limits.progress.show(f"{where}, {len(running)} running")
        scores = runner.train(running, step)
        for name in running:
            curves.setdefault(name, []).append([float(score) for score in scores[name]])
        if curves is self.standing.curves:
            self.standing.steps.append(step)
        _refuse_all_diverged(curves, running, step)
        self.pace.add(work)

    def keep(self, runner: Runner, cost: int) -> None:
        """Save where it stands."""
        _write(self.limits, self.standing)
        runner.save()
        self.limits.progress.advance(cost)


def _repeat(course: _Course, repeats: Repeats) -> None:
    """Train those that are left with the other seeds, look by look, if time allows for all."""
    standing = course.standing
    if standing.stopped or standing.steps[-1] < course.full or len(standing.running) < 2:
        return
    runner, each = repeats.runner(), repeats.seeds * len(standing.running)
    done = len(standing.others.get(standing.running[0], []))
    for last, step in itertools.pairwise([0, *standing.steps]):
        if step <= max([0, *standing.steps[:done]]):
            continue
        # Seeds that do not reach the end tell nothing, so all that is left must fit.
        if course.late(each * (course.full - last)):
            return
        work = each * (step - last)
        course.look(runner, step, standing.others, work)
        course.keep(runner, work)


def _planned(
    points: Sequence[tuple[int, bool]], count: int, done: int
) -> list[tuple[int, bool, int]]:
    """The looks after step ``done``, each with the steps it takes if half the field stops."""
    found, last = [], 0
    for step, ends_round in points:
        if step > done:
            found.append((step, ends_round, (step - last) * count))
        last = step
        if ends_round and step > _first_end(points):
            count = max(2, math.ceil(count / 2))
    return found


def _first_end(points: Sequence[tuple[int, bool]]) -> int:
    """The step at which the first round ends."""
    return min((step for step, ends_round in points if ends_round), default=0)


class _Pace:
    """Seconds per step of one candidate in this process, and whether more work ends in time."""

    def __init__(self, clock: Callable[[], float | int]) -> None:
        self.clock, self.start, self.done = clock, clock(), 0

    def add(self, work: int) -> None:
        self.done += work

    def late(self, work: int, seconds: float | int) -> bool:
        spent = self.clock() - self.start
        return self.done > 0 and spent * (1 + work / self.done) > seconds


def _refuse_all_diverged(
    curves: Mapping[str, list[list[float]]], running: Sequence[str], step: int
) -> None:
    """Refuse to go on if no candidate has a finite score: more training would not help."""
    last = [curves[name][-1] for name in running]
    if not any(math.isfinite(score) for scores in last for score in scores):
        raise BadInputError(
            f"expected a finite score from at least one of {len(last)} candidates, got none after "
            f"{step} steps",
            hint="lower the learning rate, or check the data for NaN",
        )


def _refuse_no_round(standing: Standing, limits: Limits) -> None:
    if len(standing.steps) < limits.fewest_looks:
        raise BadInputError(
            f"expected time for one round of {len(standing.curves)} candidates, got "
            f"{limits.seconds:.0f} seconds, which end before it",
            hint="allow more minutes, or pass fewer steps or candidates",
        )


def _survivors(standing: Standing, full: int, *, halve: bool = True) -> list[str]:
    """Those with hope, and of them the half with the best predicted scores, at least two."""
    found = standing.predictions(full)
    order = sorted(standing.running, key=lambda name: found[name].score)
    half = order[: max(2, math.ceil(len(order) / 2))] if halve else order
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
