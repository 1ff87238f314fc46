"""Does training still begin as it was recorded? A cell's first steps, run again and compared.

    python benchmarks/verify_training.py [--device cuda] [--steps 200] [--seed 0]

takes one recorded cell at random, trains it to the last point of its learning curve that is not
beyond the steps, on this device, and compares the losses. Only a device of the recorded kind
can be expected to repeat a curve closely; on another kind the differences are printed, not judged.
A device without TF32 takes the products of a cell recorded in it in float32; it prints that.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from headwise.experiments.kinds import Kinds
from headwise.experiments.training_run import TrainingRun
from headwise.papers.catalogue import CATALOGUE
from headwise.papers.recorded import recorded, recorded_scales
from headwise.runs import Record, parsed_spec
from headwise.runs.provenance import device_name
from headwise.training import CurveRow, curve_steps
from scripts import run_script

#: Rounding differs between versions and kernels, and training makes it grow.
TOLERANCES = ((10, 1e-3), (200, 0.05))


@dataclass(frozen=True)
class Verified:
    """One cell: how far the new curve lies from the recorded one, relative, by step."""

    label: str
    device: str
    recorded_device: str
    differences: tuple[tuple[int, float], ...]
    precision: str = "float32"
    recorded_precision: str = "float32"

    @property
    def comparable(self) -> bool:
        """Whether both ran on the same kind of device, in the same numbers."""
        return (self.device, self.precision) == (self.recorded_device, self.recorded_precision)

    @property
    def agrees(self) -> bool:
        """Whether every point is as near as its step allows."""
        return bool(self.differences) and all(
            difference <= tolerance_at(step) for step, difference in self.differences
        )

    @property
    def words(self) -> str:
        """To which step, and how far apart at most."""
        worst = max((difference for _, difference in self.differences), default=float("nan"))
        last = max((step for step, _ in self.differences), default=0)
        return f"to step {last} at most {worst:.1e} apart"

    def __str__(self) -> str:
        verdict = "agrees" if self.agrees else "differs"
        if not self.comparable:
            recorded, run = self.recorded_device, self.device
            if self.precision != self.recorded_precision:
                recorded += f" in {self.recorded_precision}"
                run += f" in {self.precision}"
            verdict += f" (recorded on {recorded}, run on {run})"
        return f"{self.label}: {self.words}: {verdict}"


class _EnoughError(Exception):
    """The last point wanted has been reached."""


def tolerance_at(step: int) -> float:
    """How far apart two curves may lie after so many steps, relative."""
    return next((limit for until, limit in TOLERANCES if step <= until), TOLERANCES[-1][1])


def verify_cell(record: Record, device: str = "cpu", steps: int = 200) -> Verified:
    """Train a recorded cell's first steps again and compare them with its stored curve."""
    spec = parsed_spec(Kinds, record.spec)
    if not isinstance(spec, TrainingRun):
        raise TypeError(f"{spec.label} was not trained")
    here = made_possible(device, spec)
    again = _beginning(here, device, steps)
    differences: dict[int, float] = {}
    for row in record.rows:
        stored = zip(row["curve_step"], row["curve_train"], row["curve_test"], strict=True)
        for step, train_loss, test_loss in stored:
            if (row["seed"], step) in again and None not in (train_loss, test_loss):
                found = _apart(again[row["seed"], step], (train_loss, test_loss))
                differences[step] = max(found, differences.get(step, 0.0))
    return Verified(
        spec.label,
        device_name(device),
        record.provenance.device,
        tuple(sorted(differences.items())),
        here.dtype,
        spec.dtype,
    )


def made_possible(device: str, spec: TrainingRun) -> TrainingRun:
    """The spec, in float32 where it asks for TF32 and the device has none."""
    if spec.possible_on(device):
        return spec
    return spec.model_copy(update={"dtype": "float32"})


def trained_records() -> list[Record]:
    """Every trained cell that comes with headwise, each once."""
    found = {
        record.key: record
        for exhibit in CATALOGUE
        for scale in recorded_scales(exhibit)
        for record in recorded(exhibit, scale).values()
        if str(record.spec.get("kind", "")).startswith("train_") and "curve_step" in record.rows[0]
    }
    return list(found.values())


def verify_random_cell(
    records: Iterable[Record], seed: int, device: str = "cpu", steps: int = 200
) -> Verified | None:
    """Verify one of the records, chosen by the seed; None if there are none."""
    records = sorted(records, key=lambda record: record.key)
    return verify_cell(random.Random(seed).choice(records), device, steps) if records else None


def _beginning(
    spec: TrainingRun, device: str, steps: int
) -> dict[tuple[int, int], tuple[float, float]]:
    """Training and test loss by seed and step, up to the last curve point within the steps."""
    settings = spec.settings(device)
    last = max(s for s in curve_steps(spec.steps, settings.rows_per_decade) if s <= steps)
    found: dict[tuple[int, int], tuple[float, float]] = {}

    def take(row: CurveRow) -> None:
        train_loss = row.train_loss if row.epoch_loss is None else row.epoch_loss
        if train_loss is not None and row.test_loss is not None:
            found[row.seed, row.step] = (train_loss, row.test_loss)
        if row.step >= last and row.seed == spec.seeds[-1]:
            raise _EnoughError

    # The whole schedule is asked for, as the rate depends on it, and left at the point.
    with suppress(_EnoughError):
        spec.train_on(device, sink=take)
    return found


def _apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(one, other, strict=True))


def main() -> int:
    """Verify one random cell and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = parser.parse_args()
    found = verify_random_cell(trained_records(), given.seed, given.device, given.steps)
    if found is None:
        print("no trained rows come with headwise")
        return 0
    print(f"seed {given.seed}: {found}")
    return 0 if found.agrees or not found.comparable else 1


if __name__ == "__main__":
    run_script(main)
