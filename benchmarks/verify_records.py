"""Recompute a random sample of the committed rows, and compare.

Rows of a device that is here are recomputed on it: exactly (floats to 1e-9 of themselves, whole
numbers and words equal) on a CPU; within four combined standard errors on an accelerator, or
when a row of an absent accelerator is short enough to be recomputed on the CPU. Ways of counting
that contradict a certificate count the rounding of one processor: they too are compared within
four standard errors. Of a training run the first 200 steps are run again and its learning curve
is compared. What is not recomputed is counted. Exits with 1 if a row differs. Run
`make verify-records`.
"""

from __future__ import annotations

import argparse
import math
import random
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from headwise.errors import HeadwiseError
from headwise.experiments.kinds import Kinds
from headwise.report import Table
from headwise.runs import Record, Row, parsed_spec, read_records
from headwise.runs.attempt import attempt
from headwise.runs.outcome import Failure
from record_exhibits import RECORDS
from verify_training import verify_cell

#: How far a recomputed float may lie from the recorded one, relative to it.
EXACT = 1e-9

#: How many combined standard errors two random means may lie apart, and how far without one.
STANDARD_ERRORS, OTHER_DEVICE = 4.0, 1e-6

#: Fields that say how an answer was found, and not what it is.
HOW = {"methods"}

#: Seconds that a row of an absent accelerator may have taken there to be tried on the CPU.
SHORT = 0.05

#: Kinds that compute on the CPU whatever device the run was given.
ON_CPU_ANYWAY = {"predict_rank"}


@dataclass(frozen=True)
class Checked:
    """One record and what became of it: "agrees", "differs" or why it was not recomputed."""

    file: str
    record: Record
    verdict: str
    where: str = ""

    def line(self) -> tuple[str, ...]:
        """Cells of a table."""
        spec = parsed_spec(Kinds, self.record.spec)
        return (self.file, spec.label, self.record.provenance.device, self.verdict, self.where)


def family(device: str) -> str:
    """What kind of device a provenance names: "cpu", or the model of the accelerator."""
    name, _, model = device.partition(" ")
    return model.strip("()") or name.partition(":")[0]


def devices_here() -> dict[str, str]:
    """Each kind of device on this machine, and what torch calls it."""
    found = {"cpu": "cpu"}
    if torch.cuda.is_available():
        found[torch.cuda.get_device_name()] = "cuda"
    return found


def checked(file: str, record: Record, patience: float) -> Checked:
    """Recompute a record if that can be done here, and compare."""
    here, recorded_on = devices_here(), family(record.provenance.device)
    if "curve_step" in record.rows[0]:
        return _first_steps(file, record, here.get(recorded_on))
    nearby = recorded_on in here or record.spec["kind"] in ON_CPU_ANYWAY
    limit = patience if nearby else SHORT
    if record.provenance.seconds > limit:
        absent = f"{recorded_on} is absent" if recorded_on not in here else "takes too long"
        return Checked(file, record, f"not recomputed: {absent}")
    outcome = attempt(parsed_spec(Kinds, record.spec), on=here.get(recorded_on, "cpu"))
    if isinstance(outcome, Failure):
        return Checked(file, record, "differs", outcome.reason)
    same = _exactly if recorded_on == "cpu" else _statistically
    where = first_difference(record.rows, outcome.rows, same)
    return Checked(file, record, "differs" if where else "agrees", where)


def _first_steps(file: str, record: Record, device: str | None) -> Checked:
    """Of what was trained the first steps are run again, on a device of the recorded kind."""
    if device is None:
        absent = f"{family(record.provenance.device)} is absent"
        return Checked(file, record, f"not recomputed: {absent}")
    found = verify_cell(record, device)
    return Checked(file, record, "agrees" if found.agrees else "differs", found.words)


def first_difference(old: tuple[Row, ...], new: tuple[Row, ...], same) -> str:
    """The first field in which the rows differ, in words; nothing if they do not."""
    if len(old) != len(new):
        return f"{len(old)} rows recorded, {len(new)} computed"
    for before, after in zip(old, new, strict=True):
        noisy = counts_noise(before) and counts_noise(after)
        compare, left_out = (_statistically, HOW | {"agreeing"}) if noisy else (same, HOW)
        for name in sorted((before.keys() | after.keys()) - left_out):
            if not compare(name, before, after):
                return f"{name}: {before.get(name)} recorded, {after.get(name)} computed"
    return ""


def counts_noise(row: Row) -> bool:
    """Whether a row contradicts the certificate: what it counts is one processor's rounding."""
    return "agreeing" in row and row["agreeing"] < row["count"]


def _exactly(name: str, before: Mapping, after: Mapping) -> bool:
    old, new = before.get(name), after.get(name)
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=EXACT, abs_tol=1e-15)
    return type(old) is type(new) and old == new


def _statistically(name: str, before: Mapping, after: Mapping) -> bool:
    old, new = before.get(name), after.get(name)
    if name in ("stderr", "std"):
        return True  # itself an estimate; it enters with the mean
    if isinstance(old, float) and isinstance(new, float):
        error = math.hypot(before.get("stderr", 0.0), after.get("stderr", 0.0))
        allowed = STANDARD_ERRORS * error if name in ("mean", "low", "high") else 0.0
        return abs(old - new) <= max(allowed, OTHER_DEVICE * abs(old))
    return old == new


def all_records(folder: Path) -> list[tuple[str, Record]]:
    """Every committed record with the file it is in, in a fixed order."""
    return [
        (str(path.relative_to(folder)), record)
        for path in sorted(folder.rglob("*.csv"))
        for record in read_records(path).values()
    ]


def drawn(
    records: list[tuple[str, Record]], count: int, chance: random.Random
) -> list[tuple[str, Record]]:
    """A random sample, the first of it a training run of a kind of device that is here, if any."""
    here = devices_here()
    trained = [one for one in records if _trained_here(one[1], here)]
    first = chance.sample(trained, min(1, len(trained), count))
    rest = [one for one in records if one not in first]
    return first + chance.sample(rest, min(count - len(first), len(rest)))


def _trained_here(record: Record, here: Mapping[str, str]) -> bool:
    return "curve_step" in record.rows[0] and family(record.provenance.device) in here


def table_of(found: list[Checked]) -> Table:
    """Every record of the sample; those that differ are stressed."""
    columns = ("file", "question", "recorded on", "verdict", "where")
    stressed = frozenset((i, 3) for i, one in enumerate(found) if one.verdict == "differs")
    return Table(columns, tuple(one.line() for one in found), stressed)


def main() -> None:
    """Draw the sample, recompute it, print the table; exit with 1 if a row differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None, help="by default a new one each time")
    parser.add_argument("--patience", type=float, default=30, help="seconds a row may have taken")
    parser.add_argument("--records", type=Path, default=RECORDS)
    asked = parser.parse_args()
    seed = secrets.randbelow(10**6) if asked.seed is None else asked.seed
    try:
        records = all_records(asked.records)
    except HeadwiseError as error:
        raise SystemExit(str(error)) from None
    sample = drawn(records, asked.sample, random.Random(seed))
    print(f"{len(sample)} of {len(records)} recorded answers, seed {seed}")
    found = [checked(file, record, asked.patience) for file, record in sample]
    if found:
        print(table_of(found).text())
    verdicts = Counter(one.verdict for one in found)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()) or "nothing there")
    raise SystemExit(1 if verdicts["differs"] else 0)


if __name__ == "__main__":
    main()
