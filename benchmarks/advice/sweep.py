"""Train every geometry of a sweep and write one row for each seed as soon as it is known.

    python -m benchmarks.advice.sweep --tasks digits-patches --rows rows.jsonl
    python -m benchmarks.advice.sweep --tasks cifar10,imdb --data FOLDER --device cuda ...

Sweeps: "heads" fixes the number of heads and changes the rank of queries, keys and values alike;
"width" keeps heads × rank = width; "half" keeps heads × rank at half of the largest of "heads";
"single" has one head whose values keep the full width, and "values" the fixed heads with values of
width / heads, so that the rank of queries and keys alone changes. Cells that are in the rows file
already are skipped; with ``--checkpoints FOLDER`` those that were cut short go on from where they
were saved last. Needs torch, numpy and scipy alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import torch
from benchmarks.advice.tasks import BENCHES, Bench, Loaded, SweepName
from benchmarks.recording import Row, provenance, read_rows, told

from headwise.attention import HeadGeometry
from headwise.models import parameter_counts
from headwise.training import AdamW, CurveRow, Saving, Settings, train

#: The order of head dimensions: what says most about the curve comes first.
TELLING = (8, 64, 1, 16, 4, 2, 32)

#: More heads than this cost far more time than parameters; such cells come last in a sweep.
MANY_HEADS = 32


@dataclass(frozen=True)
class Cell:
    """One geometry of one task."""

    task: str
    geometry: HeadGeometry

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What tells cells apart."""
        return (self.task, self.geometry.heads, self.geometry.qk_rank, self.geometry.v_rank)

    @property
    def slow(self) -> bool:
        """Whether it has so many heads that attention takes most of the time."""
        return self.geometry.heads > MANY_HEADS


def key_of(row: Row) -> tuple[str, int, int, int]:
    """The cell a row belongs to."""
    return (row["task"], row["heads"], row["qk_rank"], row["v_rank"])


def cells(
    benches: Iterable[Bench],
    sweeps: Iterable[SweepName],
    done: set[tuple[str, int, int, int]],
    most: int | None = None,
) -> list[Cell]:
    """What is left to train: sweep by sweep, in each the telling head dimensions first.

    ``most`` is how many head dimensions of each sweep are wanted.
    """
    wanted = {
        cell.key: cell
        for sweep in sweeps
        for bench in benches
        for cell in sorted(_of(bench, sweep), key=_telling)[:most]
    }
    return [cell for key, cell in wanted.items() if key not in done]


def _of(bench: Bench, sweep: SweepName) -> list[Cell]:
    return [Cell(bench.name, geometry) for geometry in bench.geometries(sweep)]


def _telling(cell: Cell) -> tuple[bool, int]:
    return cell.slow, TELLING.index(cell.geometry.qk_rank)


def groups(left: Sequence[Cell], most: int) -> list[list[Cell]]:
    """Neighbours of one task, and alike in cost, that train side by side."""
    found: list[list[Cell]] = []
    for cell in left:
        last = found[-1] if found else []
        if last and len(last) < most and (last[0].task, last[0].slow) == (cell.task, cell.slow):
            last.append(cell)
        else:
            found.append([cell])
    return found


def settings_of(bench: Bench, given: argparse.Namespace) -> Settings:
    """The settings of a task on a device."""
    plan, on_gpu = bench.training, given.device.startswith("cuda")
    return Settings(
        steps=plan.steps,
        batch=plan.batch,
        seeds=given.seeds,
        learning_rates=(plan.rate,),
        precision=given.precision or ("tf32" if on_gpu else "float32"),
        evaluation=plan.evaluation,
        device=given.device,
        optimiser=AdamW(weight_decay=plan.decay),
        execution=given.execution,
        rows_per_decade=1,  # the last row is the one that counts
    )


def trained_rows(
    bench: Bench,
    loaded: Loaded,
    together: Sequence[Cell],
    settings: Settings,
    folder: Path | None = None,
) -> list[Row]:
    """Train all seeds of some cells, those that stack at once, and say where each ended."""
    start = time.monotonic()
    stacks = stackable(together)
    ends = [_trained(bench, loaded, stack, settings, folder) for stack in stacks]
    for stack in stacks if folder is not None else ():
        Saving.in_folder(folder, _named(stack)).path.unlink(missing_ok=True)
    seconds = (time.monotonic() - start) / len(together)
    return [
        _row(bench, stack[int(end.variant)], settings, end, seconds)
        for stack, rows in zip(stacks, ends, strict=True)
        for end in rows
    ]


def stackable(together: Iterable[Cell]) -> list[list[Cell]]:
    """Cells whose parameters have the same shapes: they train as one ensemble."""
    found: dict[tuple[int, int], list[Cell]] = {}
    for cell in together:
        heads, geometry = cell.geometry.heads, cell.geometry
        shapes = (heads * geometry.qk_rank, heads * geometry.v_rank)
        found.setdefault(shapes, []).append(cell)
    return list(found.values())


def _trained(
    bench: Bench, loaded: Loaded, stack: Sequence[Cell], settings: Settings, folder: Path | None
) -> Sequence[CurveRow]:
    builders = {
        str(number): partial(bench.build, cell.geometry) for number, cell in enumerate(stack)
    }
    saving = None if folder is None else Saving.in_folder(folder, _named(stack))
    return train(builders, loaded.task, settings, saving=saving).last


def _named(stack: Sequence[Cell]) -> str:
    return ", ".join(" ".join(map(str, cell.key)) for cell in stack)


def _row(bench: Bench, cell: Cell, settings: Settings, end: CurveRow, seconds: float) -> Row:
    geometry, plan = cell.geometry, bench.training
    return {
        "task": bench.name,
        "measure": bench.measure,
        "judged": bench.judged,
        "width": geometry.width,
        "depth": bench.shape.depth,
        "heads": geometry.heads,
        "qk_rank": geometry.qk_rank,
        "v_rank": geometry.v_rank,
        "attention_parameters": bench.shape.depth * geometry.parameters,
        "model_parameters": sum(parameter_counts(bench.build(geometry, 0)).values()),
        "score": end.test_score,
        "test_loss": end.test_loss,
        "train_loss": end.epoch_loss,
        "diverged_at": end.diverged_at,
        "steps": plan.steps,
        "batch": plan.batch,
        "rate": plan.rate,
        "seconds": round(seconds, 2),
        **provenance(settings.device.split(":")[0], _dtype(bench, settings), end.seed),
        "command": " ".join(["python -m benchmarks.advice.sweep", *map(told, sys.argv[1:])]),
    }


def _dtype(bench: Bench, settings: Settings) -> str:
    on_gpu = settings.device.startswith("cuda")
    if on_gpu and bench.shape.attention == "bf16":
        return f"{settings.precision}, attention bf16"
    if not on_gpu and settings.precision == "bf16":
        return "bf16, attention float32"
    return settings.precision


def sweep(given: argparse.Namespace) -> int:
    """Train the missing cells one by one; print a cell that fails and skip it."""
    start, failed = time.monotonic(), 0
    changes = {"steps": given.steps, "rate": given.rate}
    benches = {name: _bench(name, changes) for name in given.tasks}
    done = {key_of(row) for row in read_rows([given.rows, *given.known])}
    loaded: dict[str, Loaded] = {}
    left = cells(benches.values(), given.sweeps, done, given.ranks)
    for group in _in_time(groups(left, given.together), start, given.seconds):
        name = group[0].task
        try:
            if name not in loaded:
                loaded[name] = benches[name].load(given.data, given.device)
            settings = settings_of(benches[name], given)
            rows = trained_rows(benches[name], loaded[name], group, settings, given.checkpoints)
        except Exception:
            failed += 1
            print(f"{[cell.key for cell in group]} failed\n{traceback.format_exc()}", flush=True)
            continue
        _append(given.rows, rows)
        _tell(rows, time.monotonic() - start)
    return failed


def _tell(rows: Sequence[Row], spent: float) -> None:
    for key, same in groupby(rows, key_of):
        ends = list(same)
        scores = " ".join("-" if r["score"] is None else f"{r['score']:.4f}" for r in ends)
        print(f"{spent:.0f} s {key} {scores} ({ends[0]['seconds']} s)", flush=True)


def _bench(name: str, changes: dict[str, float | None]) -> Bench:
    """A task, with the steps and the learning rate that were asked for instead of its own."""
    wanted = {key: value for key, value in changes.items() if value is not None}
    return replace(BENCHES[name], training=replace(BENCHES[name].training, **wanted))


def _in_time(left: list[list[Cell]], start: float, seconds: float) -> Iterator[list[Cell]]:
    for number, group in enumerate(left):
        if time.monotonic() - start > seconds:
            print(f"time is up, {sum(map(len, left[number:]))} cells are left", flush=True)
            return
        yield group


def _append(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=task_names, default=tuple(BENCHES), help="by commas")
    parser.add_argument("--sweeps", type=_words, default=("heads", "width"), help="by commas")
    parser.add_argument("--seeds", type=_numbers, default=(0, 1, 2), help="by commas")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--precision", choices=["float32", "bf16"], help="default: tf32 on a GPU")
    parser.add_argument("--execution", choices=["graph", "eager"], help="default: what is faster")
    parser.add_argument(
        "--data", type=Path, default=Path("local/advice-data"), help="where real data are laid out"
    )
    parser.add_argument("--rows", type=Path, required=True, help="rows are appended here")
    parser.add_argument("--together", type=int, default=1, help="cells of one ensemble, at most")
    parser.add_argument("--known", type=Path, nargs="*", default=[], help="more rows not to redo")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no cell later")
    parser.add_argument("--checkpoints", type=Path, help="where cells in training are kept")
    parser.add_argument("--ranks", type=int, help="head dimensions per sweep, telling ones first")
    parser.add_argument("--steps", type=int, help="steps instead of the task's own")
    parser.add_argument("--rate", type=float, help="learning rate instead of the task's own")
    return parser.parse_args(words)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def task_names(text: str) -> tuple[str, ...]:
    """Names of tasks, by commas; one that is not there is refused."""
    unknown = [name for name in _words(text) if name not in BENCHES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no task {unknown[0]!r}; there are {', '.join(BENCHES)}")
    return _words(text)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(min(1, sweep(arguments(sys.argv[1:]))))
