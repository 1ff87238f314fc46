"""Train the rank paper's classifiers on real data: one row for each geometry and seed.

    python -m benchmarks.real_data --speed --device cuda --data local/realdata
    python -m benchmarks.real_data --runs cifar10-192 --epochs 100 --seeds 0,1 --minutes 9 \
        --device cuda --data local/realdata --rows rows.jsonl --checkpoints local/checkpoints

The runs: ``cifar10-192`` and ``cifar10-384`` (heads 1 to 16 at a fixed width), ``cifar10-heads``
(4 and 8 heads with head dimensions 2 to 32 at width 192), the same for ``cifar100`` and ``svhn``,
and ``imdb`` (8 heads, head dimensions 2, 3, 4, 8, 16). Geometries with the same heads × head
dimension train as one ensemble, all seeds together. Rows that are there are not made again. When
the minutes are up the ensemble in training is saved, and the same command goes on from there.
Needs torch, numpy, scipy and kornia alone. ``python -m benchmarks.packed_data`` makes the data.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from benchmarks.packed_data import read
from benchmarks.recording import provenance, told

from headwise.attention import HeadGeometry
from headwise.data import (
    EpochTask,
    ImageAugmentation,
    Labelled,
    Parts,
    Standardised,
    WordDropout,
    as_words,
    cut_validation,
)
from headwise.errors import BadInputError, HeadwiseError
from headwise.models import parameter_counts
from headwise.models.rank_paper import TextModel, VisionModel, fixed_heads, fixed_width
from headwise.training import AdamW, CurveRow, Ensemble, Saving, Settings
from headwise.training.checkpoint import resume, save
from headwise.training.precision import products, rounded
from headwise.training.replay import replayed

#: Steps between looks at the clock, and seconds between saves.
STRETCH, SAVE_EVERY = 50, 120.0

#: Looks at the validation part in one run.
LOOKS = 25

#: Samples at a time when a part is examined, as in the paper.
EVALUATION_BATCH = 1024

#: Steps that tell how long a run takes.
TRIAL_STEPS = 100

Row = dict[str, Any]
Model = VisionModel | TextModel


@dataclass(frozen=True)
class Plan:
    """How a set is trained; the same for every geometry."""

    dataset: str
    model: Model
    epochs: int
    batch: int = 128
    rate: float = 1e-3
    warm_up_epochs: float = 5.0
    weight_decay: float = 5e-5
    betas: tuple[float, float] = (0.9, 0.999)
    label_smoothing: float = 0.1


def _vision(dataset: str, width: int, epochs: int, **changes: Any) -> Plan:
    classes = 100 if dataset == "cifar100" else 10
    return Plan(dataset, VisionModel(width=width, classes=classes, **changes), epochs)


def _runs() -> dict[str, tuple[Plan, list[HeadGeometry]]]:
    found: dict[str, tuple[Plan, list[HeadGeometry]]] = {}
    # A fifth of the images takes five times the epochs for the same number of steps.
    for dataset, epochs in (("cifar10", 100), ("cifar100", 250), ("svhn", 250)):
        for width in (192, 384):
            found[f"{dataset}-{width}"] = (_vision(dataset, width, epochs), fixed_width(width))
        both = [g for heads in (4, 8) for g in fixed_heads(192, heads)]
        found[f"{dataset}-heads"] = (_vision(dataset, 192, epochs), both)
    text = Plan("imdb", TextModel(), epochs=10, batch=64, rate=3e-4, warm_up_epochs=1.0)
    found["imdb"] = (text, fixed_heads(128, 8, (2, 3, 4, 8, 16)))
    return found


RUNS = _runs()


# ── data ────────────────────────────────────────────────────────────────────────────────────


def load(name: str, folder: Path, device: str, most: int | None = None) -> EpochTask:
    """A packed set as a task, on its device; ``most`` samples of each part for a trial."""
    arrays = read(name, folder, whole=most is None)
    arrays = {key: array[:most] for key, array in arrays.items()}
    train, test = (_labelled(arrays, part) for part in ("train", "test"))
    kept, aside = (torch.from_numpy(p) for p in cut_validation(train.labels.numpy()))
    parts = Parts(*(p.to(device) for p in (train.at(kept), train.at(aside), test)))
    if name == "imdb":
        return EpochTask(parts, augment=WordDropout(), present=as_words)
    digits = name == "svhn"
    augment = ImageAugmentation("svhn" if digits else "cifar10", mirrored=not digits)
    return EpochTask(parts, augment=augment, present=Standardised.of(parts.train.inputs[0]))


def _labelled(arrays: dict[str, Any], part: str) -> Labelled:
    names = [f"{kind}_{part}" for kind in "xn" if f"{kind}_{part}" in arrays]
    if f"x_{part}" not in names:  # a trial before the test images arrived
        names, part = ["x_train"], "train"
    inputs = [torch.from_numpy(_signed(arrays[name])) for name in names]
    labels = torch.from_numpy(arrays[f"y_{part}"]).long()
    return Labelled(tuple(inputs), labels[: len(inputs[0])])


def _signed(array: Any) -> Any:
    return array.astype("int32") if array.dtype == "uint16" else array


# ── one ensemble ────────────────────────────────────────────────────────────────────────────


def stackable(geometries: Sequence[HeadGeometry]) -> list[list[HeadGeometry]]:
    """Geometries whose parameters have the same shapes, the largest first."""
    found: dict[tuple[int, int], list[HeadGeometry]] = {}
    for geometry in geometries:
        found.setdefault((geometry.width, geometry.heads * geometry.qk_rank), []).append(geometry)
    return [found[key] for key in sorted(found, reverse=True)]


def settings_of(plan: Plan, task: EpochTask, given: argparse.Namespace) -> Settings:
    """The settings of a plan on a device."""
    batches = len(task.parts.train.labels) // plan.batch
    if batches == 0:
        raise BadInputError(
            f"expected at least {plan.batch} samples to train on, "
            f"got {len(task.parts.train.labels)}",
            hint="bring more of the set, or pass a smaller batch",
        )
    return Settings(
        steps=plan.epochs * batches,
        batch=plan.batch,
        seeds=given.seeds,
        learning_rates=(plan.rate,),
        warm_up=min(1.0, plan.warm_up_epochs / plan.epochs),
        precision=given.precision,
        evaluation=len(task.parts.validation.labels),
        device=given.device,
        epoch=batches,
        optimiser=AdamW(plan.betas, plan.weight_decay),
        execution=given.execution,
    )


def ensemble_of(
    plan: Plan, geometries: Sequence[HeadGeometry], task: EpochTask, settings: Settings
) -> Ensemble:
    """All seeds of some geometries."""
    builders = {_name(own): partial(plan.model.build, own) for own in geometries}
    return Ensemble(builders, task, settings)


def _name(geometry: HeadGeometry) -> str:
    return f"{geometry.heads} heads of {geometry.qk_rank}"


def stepper(ensemble: Ensemble) -> Callable[[int], None]:
    """A step by its number: a replayed graph on a GPU, plain calls elsewhere."""
    advance = ensemble.advance
    if ensemble.settings.replayed:
        generators = ensemble.noise.generators
        advance = replayed(ensemble.advance, ensemble.state, generators)

    def take(step: int) -> None:
        ensemble.noise.prepare(step)
        advance()

    return take


@torch.no_grad()
def accuracy(ensemble: Ensemble, part: Labelled) -> list[float]:
    """The share of right answers of every member."""
    parameters = ensemble.layout.cut(ensemble.state.flat)
    members, settings = len(ensemble.members), ensemble.settings
    right = torch.zeros(members, device=settings.device)
    with products(settings), rounded(settings):
        for places in torch.arange(len(part.labels)).split(EVALUATION_BATCH):
            piece = part.at(places.to(part.labels.device))
            inputs = ensemble.task.shown(piece).inputs
            spread = tuple(t.expand(members, *t.shape) for t in inputs)
            right += (ensemble.forward(parameters, spread).argmax(-1) == piece.labels).sum(1)
    return (right / len(part.labels)).tolist()


def wait(device: str) -> None:
    """Until a GPU has done what it was told."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


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
    named = ", ".join(_name(own) for own in geometries)
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
    by_name = {_name(own): own for own in geometries}
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


# ── all of them ─────────────────────────────────────────────────────────────────────────────


def key_of(row: Row) -> tuple[Any, ...]:
    """What tells rows apart."""
    return tuple(row[name] for name in ("dataset", "width", "heads", "head_dim", "seed", "epochs"))


def train_all(given: argparse.Namespace) -> int:
    """Every ensemble of the runs that is not in the rows yet, until the time is up."""
    deadline = time.monotonic() + 60 * given.minutes
    tasks: dict[str, EpochTask] = {}
    for name in given.runs:
        plan, geometries = RUNS[name]
        plan = shortened(plan, given)
        if plan.dataset not in tasks:
            tasks = {plan.dataset: load(plan.dataset, given.data, given.device, given.most)}
        for group in stackable(geometries):
            if _done(group, plan, given):
                continue
            if time.monotonic() > deadline:
                print("time is up; run the same command again", flush=True)
                return 0
            print(f"{name}: {', '.join(map(_name, group))}; seeds {given.seeds}", flush=True)
            rows = run_group(plan, group, tasks[plan.dataset], given, deadline)
            if rows is not None:
                _append(given.rows, rows)
                _print_ends(rows)
            elif not given.whole:
                return 0
    print("all done", flush=True)
    return 0


def shortened(plan: Plan, given: argparse.Namespace) -> Plan:
    """The plan with what was asked for on the command line."""
    if given.tiny:
        small = {"depth": 2, "mlp_width": 16}
        plan = replace(plan, model=replace(plan.model, **small), batch=16)
    return plan if given.epochs is None else replace(plan, epochs=given.epochs)


def _done(group: Sequence[HeadGeometry], plan: Plan, given: argparse.Namespace) -> bool:
    have = {key_of(row) for row in read_rows(given.rows)}
    sizes = [(plan.dataset, g.width, g.heads, g.qk_rank) for g in group]
    return all((*own, seed, plan.epochs) in have for own in sizes for seed in given.seeds)


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


# ── speed ───────────────────────────────────────────────────────────────────────────────────


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
            rates[case, mode] = _rate(plan, group, task, own)
            count = len(group) * len(seeds)
            print(
                f"{case} of {count}, {mode}: {rates[case, mode]:,.0f} images/s, "
                f"{50_000 * count / rates[case, mode]:.2f} s an epoch of 50,000 for all",
                flush=True,
            )
    best = {case: max(rates[case, mode] for mode in modes) for case, _, _ in cases}
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
    parser.add_argument("--speed", action="store_true", help="only measure the speed")
    parser.add_argument("--profile", action="store_true", help="with --speed: the largest kernels")
    parser.add_argument("--most", type=int, help="samples of each part, for a trial")
    parser.add_argument("--tiny", action="store_true", help="a tiny model, for a trial")
    given = parser.parse_args(words)
    given.precision = given.precision or ("bf16" if given.device.startswith("cuda") else "float32")
    return given


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


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
