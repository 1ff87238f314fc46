"""The training loop: steps, rows and checkpoints, for an ensemble or for one model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from headwise.data import EpochTask, Task
from headwise.errors import BadInputError
from headwise.report import Curve, Line, Panel, draw
from headwise.report.results import Drawable, Tabular, short_repr
from headwise.training.checkpoint import Saving, resume, save
from headwise.training.curve import CurveRow, Sink, curve_steps, nowhere
from headwise.training.ensemble import Ensemble
from headwise.training.misfits import Builder
from headwise.training.replay import replayed
from headwise.training.settings import Member, Settings

#: Steps between two checks of the time.
STRETCH = 50


@dataclass(frozen=True, eq=False)
class Trained(Tabular, Drawable):
    """The result of a run: its members, the whole curve and the trained parameters.

    Args:
        members: Who was trained.
        rows: The learning curves of all members.
        parameters: The trained parameters by name, members first.
        variants: The functions that build the models.
        steps_per_second: The speed, without evaluation and saves.

    ``to_frame`` has the fields of ``CurveRow`` as columns. ``plot`` draws the loss of each member
    against the step: on fresh data where it was measured, else on the batches.

    Example:
        >>> from headwise.data import FarthestNeighbour
        >>> from headwise.models import NeighbourShape
        >>> shape = NeighbourShape(width=4, tokens=3, rank=4, mlp_width=8)
        >>> done = train({"full": shape.build}, FarthestNeighbour(4, 3), Settings(steps=2, batch=8))
        >>> [row.step for row in done.only("full").last]
        [2]
    """

    members: tuple[Member, ...]
    rows: tuple[CurveRow, ...]
    parameters: dict[str, Tensor]
    variants: Mapping[str, Builder]
    steps_per_second: float

    __repr__ = short_repr

    def _rows(self) -> Iterator[dict[str, Any]]:
        return map(asdict, self.rows)

    def _columns(self) -> list[str]:
        return [each.name for each in fields(CurveRow)]

    def _figure(self) -> Any:
        tested = any(row.test_loss is not None for row in self.rows)
        field = "test_loss" if tested else "train_loss"
        lines: dict[int, dict[int, float]] = {index: {} for index in range(len(self.members))}
        for row in self.rows:
            loss = getattr(row, field)
            if loss is not None:
                lines[row.member][row.step] = loss
        curves = tuple(
            Curve(f"{who.variant or 'model'}, seed {who.seed}", Line.of(lines[index]))
            for index, who in enumerate(self.members)
        )
        name = field.replace("_", " ")
        return draw([Panel(name.capitalize(), "step", name, curves)])

    @property
    def last(self) -> tuple[CurveRow, ...]:
        """The last row of each member."""
        final = {row.member: row for row in self.rows}
        return tuple(final[index] for index in range(len(self.members)))

    def only(self, variant: str) -> Trained:
        """Return the result of one variant, as if it had been trained alone."""
        kept = [index for index, who in enumerate(self.members) if who.variant == variant]
        rows = [row for row in self.rows if row.variant == variant]
        return replace(
            self,
            members=tuple(self.members[index] for index in kept),
            rows=tuple(replace(row, member=kept.index(row.member)) for row in rows),
            parameters={name: value[kept] for name, value in self.parameters.items()},
        )

    def model(self, member: int) -> nn.Module:
        """Return the trained model of this member, on the CPU."""
        who = self.members[member]
        model = self.variants[who.variant](who.seed)
        own = {name: value[member] for name, value in self.parameters.items()}
        model.load_state_dict(own, strict=False)
        return model


def train(
    variants: Mapping[str, Builder],
    task: Task | EpochTask,
    settings: Settings,
    *,
    sink: Sink = nowhere,
    saving: Saving | None = None,
) -> Trained:
    """Train every variant with every seed and learning rate of the settings, all at once.

    Args:
        variants: For each name a function that builds a model from a seed. The parameters of all
            models must have the same names and shapes: models of different rank do if heads times
            rank is the same.
        task: What to train on.
        settings: Steps, seeds, learning rates and the rest.
        sink: Receives each row as it is made.
        saving: Where to keep a checkpoint. A run that was stopped resumes from it, and its earlier
            rows are passed to the sink again.

    Returns:
        The trained members and their curves.

    Example:
        >>> from headwise.data import FarthestNeighbour
        >>> from headwise.models import NeighbourShape
        >>> ranks = {f"r={r}": NeighbourShape(width=4, tokens=3, rank=r).build for r in (1, 4)}
        >>> done = train(ranks, FarthestNeighbour(4, 3), Settings(steps=3, batch=8, seeds=(0, 1)))
        >>> [(row.variant, row.seed, row.step) for row in done.last]
        [('r=1', 0, 3), ('r=1', 1, 3), ('r=4', 0, 3), ('r=4', 1, 3)]
    """
    ensemble = Ensemble(variants, task, settings)
    run = _Run(ensemble, sink, saving)
    run.take_up()
    run.go_on()
    return Trained(
        ensemble.members, tuple(run.rows), ensemble.parameters(), ensemble.variants, run.speed
    )


def train_one(
    build: Builder,
    task: Task | EpochTask,
    settings: Settings,
    *,
    sink: Sink = nowhere,
    saving: Saving | None = None,
) -> Trained:
    """Train one model.

    Args:
        build: A function that builds the model from a seed.
        task: What to train on.
        settings: Steps and the rest, with one seed and one learning rate.
        sink: Receives each row as it is made.
        saving: Where to keep a checkpoint.

    Returns:
        The trained model and its curve.

    Raises:
        BadInputError: If the settings have several seeds or learning rates.

    Example:
        >>> from headwise.data import FarthestNeighbour
        >>> from headwise.models import NeighbourShape
        >>> shape = NeighbourShape(width=4, tokens=3, rank=4, mlp_width=8)
        >>> done = train_one(shape.build, FarthestNeighbour(4, 3), Settings(steps=3, batch=8))
        >>> done.model(0)(torch.zeros(1, 3, 4)).shape
        torch.Size([1, 3, 4])
    """
    if len(settings.members([""])) != 1:
        raise BadInputError(
            f"expected one seed and one learning rate, got seeds {settings.seeds} and rates "
            f"{settings.learning_rates}",
            hint="use train() for several",
        )
    return train({"": build}, task, settings, sink=sink, saving=saving)


class _Run:
    """A run in progress, with the rows made so far."""

    def __init__(self, ensemble: Ensemble, sink: Sink, saving: Saving | None) -> None:
        self.ensemble, self.sink, self.saving = ensemble, sink, saving
        self.rows: list[CurveRow] = []
        self.done, self.counted, self.busy = 0, 0, 0.0
        self.saved = time.monotonic()

    @property
    def speed(self) -> float:
        """Steps per second, without evaluation, recording and saves."""
        return self.counted / self.busy if self.busy else 0.0

    def take_up(self) -> None:
        """Resume from the checkpoint, if there is one."""
        if self.saving is None:
            return
        ensemble = self.ensemble
        known = resume(self.saving, ensemble.identity, ensemble.state, ensemble.noise.generators)
        self.done = int(ensemble.state.step)
        for row in known:
            self._tell(row)

    def go_on(self) -> None:
        """Train to the last step, or until every member has diverged."""
        settings = self.ensemble.settings
        advance = self._advance() if self.done < settings.steps else self.ensemble.advance
        for goal in curve_steps(settings.steps, settings.rows_per_decade):
            if not self.ensemble.state.alive.any():
                break
            while self.done < goal:
                self._stretch(advance, min(goal, self.done + STRETCH))
            if self.done == goal and not (self.rows and self.rows[-1].step == goal):
                for row in self.ensemble.rows():
                    self._tell(row)
        self._save()

    def _advance(self) -> Callable[[], None]:
        ensemble = self.ensemble
        if not ensemble.settings.replayed:
            return ensemble.advance
        return replayed(ensemble.advance, ensemble.state, ensemble.noise.generators)

    def _stretch(self, advance: Callable[[], None], target: int) -> None:
        start = time.monotonic()
        for step in range(self.done, target):
            self.ensemble.noise.prepare(step)
            advance()
        if self.ensemble.settings.device.startswith("cuda"):
            torch.cuda.synchronize()
        self.busy += time.monotonic() - start
        self.counted += target - self.done
        self.done = target
        if self.saving is not None and time.monotonic() - self.saved > self.saving.seconds:
            self._save()

    def _save(self) -> None:
        if self.saving is None:
            return
        ensemble = self.ensemble
        generators = ensemble.noise.generators
        save(self.saving, ensemble.identity, ensemble.state, generators, self.rows)
        self.saved = time.monotonic()

    def _tell(self, row: CurveRow) -> None:
        self.rows.append(row)
        self.sink(row)
