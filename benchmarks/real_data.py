"""Train the rank paper's classifiers on real data: one row for each geometry and seed.

    python -m benchmarks.real_data --speed --device cuda --data local/realdata
    python -m benchmarks.real_data --runs cifar10-192 --seeds 0,1 --minutes 9 \
        --device cuda --data local/realdata --rows rows.jsonl --checkpoints local/checkpoints

The runs: ``cifar10-192`` and ``cifar10-384`` (heads 1 to 16 at a fixed width), ``cifar10-heads``
(4 and 8 heads with head dimensions 2 to 32 at width 192), the same for ``cifar100`` and ``svhn``,
and ``imdb`` (8 heads, head dimensions 2, 3, 4, 8, 16). Geometries with the same heads × head
dimension train as one ensemble, all seeds together. Rows that are there are not made again. When
the minutes are up the ensemble in training is saved, and the same command goes on from there.
Small ensembles leave a GPU idle: ``--part 1/5`` to ``--part 5/5`` in five processes, each with
rows of its own, train the ensembles of a run side by side (under CUDA's MPS at full speed).
Needs torch, numpy, scipy and kornia alone. ``python -m benchmarks.packed_data`` makes the data.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.real_ensemble import Row, run_group
from benchmarks.real_plans import (
    RUNS,
    Plan,
    ensemble_of,
    geometry_name,
    load,
    settings_of,
    shortened,
    stackable,
    stepper,
    wait,
)

from headwise.attention import HeadGeometry
from headwise.data import EpochTask
from headwise.errors import HeadwiseError

#: What tells rows apart.
KEY = ("dataset", "width", "heads", "head_dim", "seed", "epochs", "rate", "dtype")


def key_of(row: Row) -> tuple[Any, ...]:
    """What tells a row apart from others."""
    return tuple(row[name] for name in KEY)


def train_all(given: argparse.Namespace) -> int:
    """Every ensemble of the runs that is not in the rows yet, until the time is up."""
    deadline = time.monotonic() + 60 * given.minutes
    tasks: dict[str, EpochTask] = {}
    for name in given.runs:
        plan, geometries = RUNS[name]
        plan = shortened(plan, given)
        geometries = [own for own in geometries if given.heads is None or own.heads in given.heads]
        if plan.dataset not in tasks:
            tasks = {plan.dataset: load(plan.dataset, given.data, given.device, given.most)}
        first, step = given.part
        for group in stackable(geometries)[first - 1 :: step]:
            if _done(group, plan, given):
                continue
            if time.monotonic() > deadline:
                print("time is up; run the same command again", flush=True)
                return 0
            print(
                f"{name}: {', '.join(map(geometry_name, group))}; seeds {given.seeds}", flush=True
            )
            rows = run_group(plan, group, tasks[plan.dataset], given, deadline)
            if rows is not None:
                _append(given.rows, rows)
                _print_ends(rows)
            elif not given.whole:
                return 0
    print("all done", flush=True)
    return 0


def _done(group: Sequence[HeadGeometry], plan: Plan, given: argparse.Namespace) -> bool:
    have = {key_of(row) for row in read_rows(given.rows)}
    sizes = [(plan.dataset, g.width, g.heads, g.qk_rank) for g in group]
    rest = (plan.epochs, plan.rate, given.precision)
    return all((*own, seed, *rest) in have for own in sizes for seed in given.seeds)


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSON-lines file; none if it is not there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _append(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _print_ends(rows: Sequence[Row]) -> None:
    for row in rows:
        print(
            f"  {row['dataset']} d={row['width']} heads={row['heads']} d_h={row['head_dim']} "
            f"seed {row['seed']}: test {row['test_accuracy']:.4f}, "
            f"validation {row['validation_accuracy']:.4f}",
            flush=True,
        )


def speed(given: argparse.Namespace) -> int:
    """Images per second alone and as an ensemble, graph and compiled, and the augmentation."""
    plan, geometries = RUNS[given.runs[0]]
    plan = shortened(plan, given)
    start = time.monotonic()
    task = load(plan.dataset, given.data, given.device, given.most or 20_000)
    print(f"loaded in {time.monotonic() - start:.1f} s", flush=True)
    _time_augmentation(task, plan)
    alone = [own for own in geometries if own.heads == 8]
    cases = [("alone", alone, (0,)), ("ensemble", geometries, given.seeds)]
    modes = ["graph", "compiled"] if given.device.startswith("cuda") else ["eager"]
    rates: dict[tuple[str, str], float] = {}
    for mode in modes:
        for case, group, seeds in cases:
            own = argparse.Namespace(**vars(given) | {"execution": mode, "seeds": seeds})
            try:
                rates[case, mode] = _rate(plan, group, task, own)
            except Exception as error:  # one way of running that fails must not hide the other
                print(f"{case}, {mode}: failed, {type(error).__name__}: {error}"[:2000], flush=True)
                continue
            count = len(group) * len(seeds)
            print(
                f"{case} of {count}, {mode}: {rates[case, mode]:,.0f} images/s, "
                f"{50_000 * count / rates[case, mode]:.2f} s an epoch of 50,000 for all",
                flush=True,
            )
    best = {case: max(rates.get((case, mode), 1e-9) for mode in modes) for case, _, _ in cases}
    print(
        f"alone {50_000 / best['alone']:.2f} s an epoch (goal 2 s or less); "
        f"ensemble {best['ensemble'] / best['alone']:.2f} times alone (goal 2)",
        flush=True,
    )
    return 0


def _time_augmentation(task: EpochTask, plan: Plan) -> None:
    task.epoch(0, 0, plan.batch)
    device = str(task.parts.train.labels.device)
    wait(device)
    start = time.monotonic()
    found = task.epoch(0, 1, plan.batch)
    wait(device)
    seconds, count = time.monotonic() - start, len(found.targets[0])
    print(f"augmentation: {50_000 * seconds / count:.2f} s for 50,000 images", flush=True)


def _rate(
    plan: Plan, group: Sequence[HeadGeometry], task: EpochTask, given: argparse.Namespace
) -> float:
    """Images per second over two epochs, their augmentation included."""
    start = time.monotonic()
    ensemble = ensemble_of(plan, group, task, settings_of(plan, task, given))
    take = stepper(ensemble)
    take(0)
    wait(given.device)
    print(f"  ready after {time.monotonic() - start:.0f} s", flush=True)
    # From one epoch to the next but one: each augments once.
    steps = 2 * ensemble.settings.epoch
    start = time.monotonic()
    for step in range(1, steps + 1):
        take(step)
    wait(given.device)
    seconds = time.monotonic() - start
    if given.profile:
        _profile(take, steps + 1, given.device)
    return len(ensemble.members) * plan.batch * steps / seconds


def _profile(take: Callable[[int], None], step: int, device: str) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        for number in range(step, step + 5):
            take(number)
        wait(device)
    print(found.key_averages().table(sort_by="self_device_time_total", row_limit=16), flush=True)


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=run_names, default=("cifar10-192",), help="by commas")
    parser.add_argument("--epochs", type=int, help="default: the run's own")
    parser.add_argument("--rate", type=float, help="the learning rate; default: the run's own")
    parser.add_argument("--seeds", type=_numbers, default=(0, 1), help="by commas")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--precision", default=None, help="default: bf16 on a GPU, else float32")
    parser.add_argument("--execution", choices=["graph", "compiled", "eager"])
    parser.add_argument("--data", type=Path, default=Path("local/realdata"))
    parser.add_argument("--rows", type=Path, default=Path("local/real_rows.jsonl"))
    parser.add_argument("--checkpoints", type=Path, default=Path("local/checkpoints"))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop and save after")
    parser.add_argument(
        "--whole", action="store_true", help="begin nothing that cannot end in time"
    )
    parser.add_argument(
        "--part", type=_part, default=(1, 1), help="K/N: every Nth ensemble, beginning with the Kth"
    )
    parser.add_argument("--heads", type=_numbers, help="only these numbers of heads, by commas")
    parser.add_argument("--speed", action="store_true", help="only measure the speed")
    parser.add_argument("--profile", action="store_true", help="with --speed: the largest kernels")
    parser.add_argument("--most", type=int, help="samples of each part, for a trial")
    parser.add_argument("--tiny", action="store_true", help="a tiny model, for a trial")
    given = parser.parse_args(words)
    given.precision = given.precision or ("bf16" if given.device.startswith("cuda") else "float32")
    return given


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def _part(text: str) -> tuple[int, int]:
    place, _, parts = text.partition("/")
    found = int(place), int(parts)
    if not 1 <= found[0] <= found[1]:
        raise argparse.ArgumentTypeError(f"expected K/N with 1 <= K <= N, got {text!r}")
    return found


def run_names(text: str) -> tuple[str, ...]:
    """Names of runs, by commas; one that is not there is refused."""
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in RUNS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no run {unknown[0]!r}; there are {', '.join(RUNS)}")
    return names


def main() -> int:
    """Measure the speed, or train."""
    given = arguments(sys.argv[1:])
    try:
        return speed(given) if given.speed else train_all(given)
    except HeadwiseError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
