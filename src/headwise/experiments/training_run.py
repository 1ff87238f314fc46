"""The common part of all training specs: length, rate, seeds, running and resuming."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt
from torch import nn

from headwise.data import EpochTask, Task
from headwise.runs import Row, Spec, device, scratch
from headwise.training import Fixed, Fresh, Saving, Settings, Trained, train
from headwise.training.curve import Sink, nowhere
from headwise.training.settings import can_round

#: New data at every step, or one repeated set as in the heads paper.
Protocol = Literal["fixed", "fresh"]

#: Models that differ only in their seed train as one ensemble.
Seeds = Annotated[tuple[int, ...], Field(min_length=1)]


class TrainedSpec(Spec, frozen=True):
    """A spec that is answered by training; subclasses define model, task and settings."""

    #: The fields in which specs that train as one ensemble may differ.
    stacks_over: ClassVar[tuple[str, ...]] = ()

    batch: PositiveInt = 256
    learning_rate: PositiveFloat = 0.01
    seeds: Seeds = (0,)
    dtype: Literal["float32", "tf32", "bf16", "float64"] = "float32"

    @abstractmethod
    def build(self, seed: int) -> nn.Module:
        """Build the model; its initial weights depend only on the seed."""

    @property
    @abstractmethod
    def task(self) -> Task | EpochTask:
        """Return the task."""

    @abstractmethod
    def rows_of(self, done: Trained) -> list[Row]:
        """Return one row per seed of a run of this spec."""

    @abstractmethod
    def settings(self, on: str) -> Settings:
        """Return the settings of the whole run."""

    @property
    def stacked_shape(self) -> tuple[int, ...]:
        """Return what else must be equal for the parameters of two specs to stack."""
        return ()

    def ask(self) -> list[Row]:
        """Train, and return one row per seed."""
        return self.rows_of(self.trained())

    def possible_on(self, device: str) -> bool:
        """Whether the device supports the precision of this spec."""
        return can_round(device, self.dtype)

    def train_on(self, on: str, sink: Sink = nowhere, saving: Saving | None = None) -> Trained:
        """Train on a device; rows of the curve go to the sink as they are made."""
        return train({"": self.build}, self.task, self.settings(on), sink=sink, saving=saving)

    def trained(self) -> Trained:
        """Train on the executor's device, resuming from a checkpoint if there is one."""
        folder, on = scratch(), device()
        saving = None if folder is None else Saving(folder / "run.pt", key=f"{self.key} on {on}")
        return self.train_on(on, saving=saving)


class TrainingRun(TrainedSpec, frozen=True):
    """A run of a given number of steps on data that are drawn.

    The rate rises over the first ``warm_up`` of the steps and falls along a cosine. ``epoch`` is
    the number of steps over which training losses are averaged, ``evaluation`` the number of
    test sequences.
    """

    steps: PositiveInt
    warm_up: Annotated[float, Field(ge=0, le=1)] = 0.05
    epoch: PositiveInt = 100
    evaluation: PositiveInt = 1024

    def settings(self, on: str) -> Settings:
        """Return the settings of the whole run."""
        return Settings(
            steps=self.steps,
            batch=self.batch,
            seeds=self.seeds,
            learning_rates=(self.learning_rate,),
            warm_up=self.warm_up,
            precision=self.dtype,
            evaluation=self.evaluation,
            epoch=self.epoch,
            device=on,
            **self.more_settings(),
        )

    def more_settings(self) -> dict[str, Any]:
        """Return further settings of this kind of run."""
        return {}


def protocol_of(name: Protocol, sequences: int) -> Fixed | Fresh:
    """Return the protocol of this name."""
    return Fixed(sequences) if name == "fixed" else Fresh()
