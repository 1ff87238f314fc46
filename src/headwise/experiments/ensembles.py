"""Train specs that differ only in rank or heads as one ensemble, with checkpoints.

Heads times rank is the same for all specs of a group, so their parameters stack. This fills a GPU
that a few small models would leave idle. The answers are those of single runs, up to rounding.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import torch

from headwise.errors import BadInputError, ParameterError
from headwise.experiments.training_cost import run_seconds
from headwise.experiments.training_run import TrainedSpec
from headwise.runs import Answer, Failure, Outcome, Row, Spec
from headwise.runs.attempt import attempt, checked_rows, stamp, traceback_text
from headwise.runs.provenance import computing_on
from headwise.training import CurveRow, Saving, train
from headwise.training.curve import Sink, nowhere

Run = TypeVar("Run", bound=TrainedSpec)

#: Runs of at most this many steps print no line.
FIRST_TOLD = 100


class EnsembleExecutor:
    """Answer specs in this process; training runs that stack train as one ensemble.

    Use it with ``headwise.runs.run``, which stores each answer as soon as it arrives.

    Args:
        device: Where to train, such as "cpu" or "cuda".
        scratch: Folder for checkpoints. A group that was stopped resumes from its checkpoint.
        seconds: Start no group after this many seconds.
        order: Whether the cheap or the expensive groups come first.
        say: Called with a line of progress now and then.
    """

    def __init__(
        self,
        device: str = "cpu",
        *,
        scratch: Path | None = None,
        seconds: float | int = math.inf,
        order: Literal["cheap first", "expensive first"] = "cheap first",
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._device, self._scratch, self._seconds = device, scratch, seconds
        self._order, self._say = order, say

    def outcomes(self, specs: Sequence[Spec], started: Callable[[Spec], None]) -> Iterator[Outcome]:
        """Yield one outcome per spec, until the time is up."""
        start = time.monotonic()
        for number, group in enumerate(groups := self._groups(specs)):
            if time.monotonic() - start > self._seconds:
                self._say(f"time is up: {sum(map(len, groups[number:]))} specs are left")
                return
            for spec in group:
                started(spec)
            yield from self._answered(group)

    def close(self) -> None:
        """Do nothing: there are no workers to end."""

    def _groups(self, specs: Sequence[Spec]) -> list[list[Spec]]:
        trained = [spec for spec in specs if isinstance(spec, TrainedSpec)]
        found: list[list[Spec]] = [[spec] for spec in specs if not isinstance(spec, TrainedSpec)]
        found += [list[Spec](group) for group in stackable(trained)]
        return sorted(found, key=_cost, reverse=self._order == "expensive first")

    def _answered(self, group: list[Spec]) -> Iterator[Outcome]:
        runs = [spec for spec in group if isinstance(spec, TrainedSpec)]
        if not runs:
            yield from (attempt(spec, self._device, self._scratch) for spec in group)
            return
        start = time.perf_counter()
        try:
            answers = ask_together(runs, self._device, folder=self._scratch, sink=self._sink(runs))
            checked = [checked_rows(rows) for rows in answers]
        except torch.OutOfMemoryError as error:
            yield from self._halves(group, error, start)
        except Exception as error:
            yield from self._failures(group, error, start)
        else:
            # The time of a group is divided equally among its specs.
            seconds = (time.perf_counter() - start) / len(runs)
            for spec, rows in zip(runs, checked, strict=True):
                yield Answer(spec.key, rows, stamp(spec, self._device, seconds))

    def _halves(self, group: list[Spec], error: Exception, start: float) -> Iterator[Outcome]:
        """Train a group that did not fit into memory in two parts."""
        if len(group) == 1:
            yield from self._failures(group, error, start)
            return
        self._say(f"{len(group)} specs do not fit into memory together; training them in two parts")
        torch.cuda.empty_cache()
        half = len(group) // 2
        yield from self._answered(group[:half])
        yield from self._answered(group[half:])

    def _failures(self, group: list[Spec], error: Exception, start: float) -> Iterator[Outcome]:
        seconds = (time.perf_counter() - start) / len(group)
        for spec in group:
            yield Failure(spec.key, traceback_text(error), stamp(spec, self._device, seconds))

    def _sink(self, group: Sequence[TrainedSpec]) -> Sink:
        start, steps = time.monotonic(), group[0].settings(self._device).steps

        def tell(row: CurveRow) -> None:
            if row.member == 0 and row.step >= FIRST_TOLD:
                spent = time.monotonic() - start
                self._say(f"{group[0].label}: step {row.step} of {steps}, {spent:.0f} s")

        return tell


def stackable(specs: Iterable[Run]) -> list[list[Run]]:
    """Group the specs that can train together, in the order of the first spec of each group."""
    groups: dict[str, list[Run]] = {}
    for spec in specs:
        rest = {name: v for name, v in spec.content.items() if name not in spec.stacks_over}
        alike = json.dumps([rest, spec.stacked_shape], sort_keys=True)
        groups.setdefault(alike, []).append(spec)
    return list(groups.values())


def having(specs: Iterable[Spec], only: Mapping[str, str]) -> list[Spec]:
    """Return the specs whose fields have these values, written as text."""
    specs = list(specs)
    fields = {name for spec in specs for name in spec.content}
    unknown = [name for name in only if specs and name not in fields]
    if unknown:
        raise ParameterError(
            f"`only`: no run has a field {unknown[0]!r}",
            hint=f"choose from {', '.join(sorted(fields))}",
        )
    wanted = only.items()
    return [s for s in specs if all(str(s.content.get(name)) == value for name, value in wanted)]


def ask_together(
    specs: Sequence[TrainedSpec],
    on: str = "cpu",
    *,
    folder: Path | None = None,
    sink: Sink = nowhere,
) -> list[list[Row]]:
    """Train a group and return the rows of each spec.

    Args:
        specs: A group, as ``stackable`` makes them.
        on: The device.
        folder: Where a checkpoint is kept until the group is trained.
        sink: Receives the learning curve as it is made.

    Returns:
        The rows of each spec, in the order of the specs.

    Raises:
        BadInputError: If the specs cannot train together.
    """
    if len(stackable(specs)) != 1:
        fields = " and ".join(specs[0].stacks_over) or "nothing"
        raise BadInputError(
            f"{len(specs)} specs differ in more than their {fields}",
            hint="take the groups that stackable gives",
        )
    builders = {spec.key: spec.build for spec in specs}
    saving = None if folder is None else Saving.in_folder(folder, f"{' '.join(builders)} on {on}")
    with computing_on(on):
        done = train(builders, specs[0].task, specs[0].settings(on), sink=sink, saving=saving)
        rows = [spec.rows_of(done.only(spec.key)) for spec in specs]
    if saving is not None:
        saving.path.unlink(missing_ok=True)
    return rows


def _cost(group: Sequence[Spec]) -> float:
    return sum(map(run_seconds, group))
