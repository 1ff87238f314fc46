"""Train what is missing of the heads paper's figures, all ranks or heads of a setting at once.

python benchmarks/train_together.py heads2024/figure_rank_depth ... --device cuda --store STORE
writes the same rows as ``headwise reproduce --scale gpu``, several times faster where a GPU would
otherwise idle between small kernels. Cheap settings come first, or with ``--dear-first`` last;
``--seconds`` starts none later. With ``--checkpoints FOLDER`` a setting that was cut short goes
on when this is called again. With ``--from-records`` the rows that come with the package count as
answered, so that a widened schedule trains only what it adds. ``--only layers=3`` trains the
settings that have this value.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from headwise.experiments.ensembles import ask_together, stackable
from headwise.experiments.training_cost import run_seconds
from headwise.experiments.training_run import TrainingRun
from headwise.papers.catalogue import chosen
from headwise.papers.exhibit import Scale
from headwise.papers.recorded import recorded, recorded_scales
from headwise.papers.reproduction import Wanted, all_specs
from headwise.runs import Answer, Store
from headwise.runs.attempt import checked_rows, stamp
from headwise.training.curve import CurveRow
from scripts import run_script


def take_recorded(store: Store, names: list[str], scale: Scale) -> int:
    """Put into the store what the package's own rows answer; how many specs that is."""
    known = 0
    for exhibit in chosen(names):
        if scale in recorded_scales(exhibit):
            records = recorded(exhibit, scale)
            for spec in store.plan(exhibit.specs(scale)).work:
                if spec.key in records:
                    found = records[spec.key]
                    store.put(spec, Answer(spec.key, found.rows, found.provenance))
                    known += 1
    return known


def groups(
    store: Store, names: list[str], scale: Scale, only: Mapping[str, str]
) -> list[list[TrainingRun]]:
    """What is missing and has the wanted values, cheap groups first."""
    specs = store.plan(all_specs([Wanted(exhibit, scale) for exhibit in chosen(names)])).work
    found = stackable(
        spec
        for spec in specs
        if isinstance(spec, TrainingRun)
        and all(str(spec.content.get(name)) == value for name, value in only.items())
    )
    return sorted(found, key=lambda group: sum(map(run_seconds, group)))


def answer(
    group: Sequence[TrainingRun], on: str, command: str, folder: Path | None
) -> list[Answer]:
    """Train a group; its time, of the last attempt, is shared out equally."""
    start = time.perf_counter()

    def tell(row: CurveRow) -> None:
        if row.member == 0 and row.step >= 100:
            spent = time.perf_counter() - start
            print(f"  step {row.step} of {group[0].steps} after {spent:.0f} s", flush=True)

    rows = ask_together(group, on, folder=folder, sink=tell)
    seconds = (time.perf_counter() - start) / len(group)
    return [
        Answer(spec.key, checked_rows(own), stamp(spec, on, seconds, command))
        for spec, own in zip(group, rows, strict=True)
    ]


def main() -> int:
    """Train group after group, each stored as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exhibits", nargs="+", help="such as heads2024/figure_positions")
    parser.add_argument("--scale", type=Scale, default=Scale.GPU, help="default: gpu")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--store", required=True, help="where answers are looked up and kept")
    parser.add_argument("--checkpoints", type=Path, help="folder for settings in training")
    parser.add_argument("--dear-first", action="store_true", help="the longest setting first")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start none later")
    parser.add_argument("--from-records", action="store_true", help="train what has no row yet")
    parser.add_argument("--only", action="append", default=[], metavar="FIELD=VALUE")
    asked = parser.parse_args()
    only = dict(pair.split("=", 1) for pair in asked.only)
    command = (
        f"python benchmarks/train_together.py {' '.join(asked.exhibits)} --scale {asked.scale} "
        f"--device {asked.device} --store {Path(asked.store).name}"
        f"{' --from-records' if asked.from_records else ''}"
        f"{''.join(f' --only {pair}' for pair in asked.only)}"
    )
    start = time.monotonic()
    with Store.open(asked.store) as store:
        if asked.from_records:
            known = take_recorded(store, asked.exhibits, asked.scale)
            print(f"{known} answers come with headwise")
        left = groups(store, asked.exhibits, asked.scale, only)[:: -1 if asked.dear_first else 1]
        for number, group in enumerate(left):
            if time.monotonic() - start > asked.seconds:
                print(f"time is up, {len(left) - number} groups are left")
                return 0
            found = answer(group, asked.device, command, asked.checkpoints)
            for spec, one in zip(group, found, strict=True):
                store.put(spec, one)
            _tell(group, time.monotonic() - start)
    return 0


def _tell(group: Sequence[TrainingRun], spent: float) -> None:
    field = group[0].stacks_over
    told = {name: value for name, value in group[0].content.items() if name != field}
    values = [spec.content[field] for spec in group] if field else ""
    print(f"{spent:.0f} s: {field} {values} of {told}", flush=True)


if __name__ == "__main__":
    run_script(main)
