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

    def predictions(self, full: int) -> dict[str, Prediction]:
        """What the curves so far say about the full length."""
        curves = {name: np.array(curve, dtype=float) for name, curve in self.curves.items()}
        return predict(curves, self.steps, full)


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


def race(
    runner: Runner,
    names: Sequence[str],
    full: int,
    *,
    seconds: float | int = math.inf,
    path: Path | None = None,
    identity: str = "",
    progress: Progress = SILENT,
    clock: Callable[[], float | int] = time.monotonic,
) -> Standing:
    """Train until one candidate remains, the full length is reached, or the time is over.

    With ``path`` the standing is kept there after every look, and a race that was killed goes on
    from it; ``identity`` says whose standing it is.
    """
    standing = _read(path, identity) or Standing(list(names), curves={n: [] for n in names})
    start = clock()
    plan = [look for look in looks(full) if look[0] > max(standing.steps, default=0)]
    with tracked(progress, "training candidates", total=len(plan)):
        for step, ends_round in plan:
            if len(standing.running) == 1 < len(names):
                break
            if _too_late(standing, step, clock() - start, seconds):
                standing.stopped = True
                break
            progress.show(f"step {step} of {full}, {len(standing.running)} candidates")
            _look(runner, standing, step)
            if ends_round and step < full:
                standing.running = _survivors(standing, full)
            _write(path, identity, standing)
            runner.save()
            progress.advance()
    return standing


def _look(runner: Runner, standing: Standing, step: int) -> None:
    scores = runner.train(standing.running, step)
    for name in standing.running:
        standing.curves[name].append([float(score) for score in scores[name]])
    standing.steps.append(step)


def _too_late(standing: Standing, step: int, spent: float | int, seconds: float | int) -> bool:
    """Whether the next look would end after the limit, at the pace so far."""
    if not standing.steps or spent == 0:
        return False
    late = spent * step / standing.steps[-1] > seconds
    if late and len(standing.steps) < LOOKS:
        raise BadInputError(
            f"expected time for one round of {len(standing.curves)} candidates, got {seconds:.0f} "
            f"seconds, which end before it",
            hint="allow more minutes, or pass fewer steps or candidates",
        )
    return late


def _survivors(standing: Standing, full: int) -> list[str]:
    """The more promising half, and at least two, less those without hope."""
    found = standing.predictions(full)
    order = sorted(standing.running, key=lambda name: -found[name].probability)
    half = order[: max(2, math.ceil(len(order) / 2))]
    hopeful = [name for name in half if found[name].probability >= HOPELESS] or half[:1]
    return [name for name in standing.running if name in hopeful]


def _write(path: Path | None, identity: str, standing: Standing) -> None:
    if path is not None:
        content = json.dumps({"identity": identity, **vars(standing)}).encode()
        write_whole(path, content, hint="choose another folder")


def _read(path: Path | None, identity: str) -> Standing | None:
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
    if known != identity:
        raise UnreadableFileError(
            f"expected the standing of this trial in {path}, got that of another",
            hint="choose another folder, or remove it to start again",
        )
    standing.stopped = False
    return standing
