"""One ensemble of a run: trained to its end or to the end of the time, saved and taken up."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.real_plans import (
    Plan,
    accuracy,
    ensemble_of,
    geometry_name,
    settings_of,
    stepper,
    wait,
)
from benchmarks.recording import provenance, told

from headwise.attention import HeadGeometry
from headwise.data import EpochTask
from headwise.models import parameter_counts
from headwise.training import CurveRow, Ensemble, Saving, Settings
from headwise.training.checkpoint import resume, save

#: Steps between looks at the clock, and seconds between saves.
STRETCH, SAVE_EVERY = 50, 120.0

#: Looks at the validation part in one run.
LOOKS = 25

#: Steps that tell how long a run takes.
TRIAL_STEPS = 100

Row = dict[str, Any]


@dataclass
class Progress:
    """A run on its way: the curve so far, and the seconds spent on steps."""

    curve: list[CurveRow]
    done: int
    seconds: float = 0.0
    steps: int = 0


def run_group(
    plan: Plan,
    geometries: Sequence[HeadGeometry],
    task: EpochTask,
    given: argparse.Namespace,
    deadline: float,
) -> list[Row] | None:
    """Train one ensemble to its end; None if the time was up first."""
    settings = settings_of(plan, task, given)
    ensemble = ensemble_of(plan, geometries, task, settings)
    named = ", ".join(geometry_name(own) for own in geometries)
    key = json.dumps([asdict(plan), named, given.seeds, given.precision], default=str)
    saving = Saving.in_folder(given.checkpoints, key)
    known = resume(saving, ensemble.identity, ensemble.state, [])
    going = Progress(list(known), int(ensemble.state.step))
    take = stepper(ensemble) if going.done < settings.steps else None
    if given.whole and not _fits(ensemble, take, going, deadline):
        return None
    looks = _look_steps(settings)
    saved = time.monotonic()
    while going.done < settings.steps:
        goal = min(looks[going.done], going.done + STRETCH)
        _stretch(ensemble, take, going, goal)
        if going.done in looks.values():
            going.curve.extend(ensemble.rows())
            _tell(plan, named, going, settings)
        late = time.monotonic() > deadline
        if late or time.monotonic() - saved > SAVE_EVERY:
            save(saving, ensemble.identity, ensemble.state, [], going.curve)
            saved = time.monotonic()
        if late and going.done < settings.steps:
            print(f"time is up at step {going.done} of {settings.steps}; saved", flush=True)
            return None
    saving.path.unlink(missing_ok=True)
    return list(_rows(plan, geometries, ensemble, going, settings))


def _look_steps(settings: Settings) -> dict[int, int]:
    """For each step the next one after which the validation part is examined."""
    epochs = settings.steps // settings.epoch
    every = settings.epoch * max(1, epochs // LOOKS)
    ends = [*range(every, settings.steps, every), settings.steps]
    found, place = {}, 0
    for step in range(settings.steps):
        place += step >= ends[place]
        found[step] = ends[place]
    return found


def _stretch(ensemble: Ensemble, take: Any, going: Progress, goal: int) -> None:
    start = time.monotonic()
    for step in range(going.done, goal):
        take(step)
    wait(ensemble.settings.device)
    going.seconds += time.monotonic() - start
    going.steps += goal - going.done
    going.done = goal


def _fits(ensemble: Ensemble, take: Any, going: Progress, deadline: float) -> bool:
    """Whether the rest ends in time, by the first steps; they count as trained."""
    left = ensemble.settings.steps - going.done
    if left == 0:
        return True
    _stretch(
        ensemble, take, going, going.done + min(TRIAL_STEPS, left, ensemble.settings.epoch - 1)
    )
    needed = (ensemble.settings.steps - going.done) * going.seconds / going.steps
    fits = time.monotonic() + 1.05 * needed < deadline
    if not fits:
        print(f"left out: it would take {needed:.0f} s more", flush=True)
    return fits


def _tell(plan: Plan, named: str, going: Progress, settings: Settings) -> None:
    last = going.curve[-1].step
    scores = [row.test_score for row in going.curve if row.step == last]
    told_scores = " ".join("diverged" if s is None else f"{s:.4f}" for s in scores)
    rate = len(scores) * settings.batch * going.steps / going.seconds
    print(
        f"{plan.dataset} [{named}] epoch {last / settings.epoch:.0f}: validation {told_scores}; "
        f"{going.seconds:.0f} s, {rate:,.0f} images/s",
        flush=True,
    )


def _rows(
    plan: Plan,
    geometries: Sequence[HeadGeometry],
    ensemble: Ensemble,
    going: Progress,
    settings: Settings,
) -> Iterator[Row]:
    by_name = {geometry_name(own): own for own in geometries}
    tested = accuracy(ensemble, ensemble.task.parts.test)
    kept = accuracy(ensemble, ensemble.task.parts.validation)
    rate = len(ensemble.members) * settings.batch * going.steps / going.seconds
    for place, member in enumerate(ensemble.members):
        geometry = by_name[member.variant]
        yield {
            **_sizes(plan, geometry, ensemble.task),
            "test_accuracy": round(tested[place], 5),
            "validation_accuracy": round(kept[place], 5),
            "curve": [
                [round(r.step / settings.epoch, 3), r.test_score, r.epoch_loss]
                for r in going.curve
                if r.member == place
            ],
            "diverged": not bool(ensemble.state.alive[place]),
            "members": len(ensemble.members),
            "images_per_second": round(rate),
            "seconds": round(going.seconds, 1),
            "execution": settings.execution or "default",
            **provenance(settings.device.split(":")[0], settings.precision, member.seed),
            "command": " ".join(["python -m benchmarks.real_data", *map(told, sys.argv[1:])]),
        }


def _sizes(plan: Plan, geometry: HeadGeometry, task: EpochTask) -> Row:
    model = plan.model
    counts = parameter_counts(model.build(geometry, 0))
    named = {key: value for key, value in asdict(plan).items() if key != "model"}
    return {
        **named,
        "width": geometry.width,
        "heads": geometry.heads,
        "head_dim": geometry.qk_rank,
        "depth": model.depth,
        "mlp_width": model.mlp_width,
        "parameters": sum(counts.values()),
        "attention_parameters": counts["attention"],
        "trained_on": len(task.parts.train.labels),
        "validated_on": len(task.parts.validation.labels),
        "tested_on": len(task.parts.test.labels),
    }
