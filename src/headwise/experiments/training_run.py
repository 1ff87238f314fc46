"""What every training question has: length, rate, seeds; how it is run, and run again in part."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveFloat, PositiveInt
from torch import nn

from headwise.data import Task
from headwise.runs import Row, Spec, device, scratch
from headwise.training import Fixed, Fresh, Saving, Settings, Trained, train
from headwise.training.curve import Sink, nowhere
from headwise.training.device import can_round

#: New data at every step, or one set again and again as in the heads paper.
Protocol = Literal["fixed", "fresh"]

#: Models that differ in nothing but their seed train as one ensemble.
Seeds = Annotated[tuple[int, ...], Field(min_length=1)]


class TrainedSpec(Spec, frozen=True):
    """A spec whose answer is trained: subclasses say what is built, on which task, and how."""

    #: The fields in which specs that train as one ensemble may differ.
    stacks_over: ClassVar[tuple[str, ...]] = ()

    batch: PositiveInt = 256
    learning_rate: PositiveFloat = 0.01
    seeds: Seeds = (0,)
    dtype: Literal["float32", "tf32", "bf16", "float64"] = "float32"

    @abstractmethod
    def build(self, seed: int) -> nn.Module:
        """The model as it begins, drawn from the seed alone."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """What it is trained on."""

    @abstractmethod
    def rows_of(self, done: Trained) -> list[Row]:
        """How each seed of a run of this spec fared."""

    @abstractmethod
    def settings(self, on: str) -> Settings:
        """Return the settings of the whole run."""

    @property
    def stacked_shape(self) -> tuple[int, ...]:
        """Return what else must be equal for the parameters of two specs to stack."""
        return ()

    def ask(self) -> list[Row]:
        """Train, and return how each seed ended."""
        return self.rows_of(self.trained())

    def possible_on(self, device: str) -> bool:
        """Whether the device takes products as this spec wants them."""
        return can_round(device, self.dtype)

    def train_on(self, on: str, sink: Sink = nowhere, saving: Saving | None = None) -> Trained:
        """Train on a device; rows of the curve go to the sink as they are made."""
        return train({"": self.build}, self.task, self.settings(on), sink=sink, saving=saving)

    def trained(self) -> Trained:
        """Train where the executor says, taking up what an earlier attempt left behind."""
        folder, on = scratch(), device()
        saving = None if folder is None else Saving(folder / "run.pt", key=f"{self.key} on {on}")
        return self.train_on(on, saving=saving)


class TrainingRun(TrainedSpec, frozen=True):
    """A run on data that are drawn, so long as its number of steps says.

    The rate rises over the first ``warm_up`` of the steps and falls along a cosine; ``epoch``
    counts the steps over which training losses are averaged, ``evaluation`` the test sequences.

    >>> from headwise.experiments.train_pairs import TrainPairs
    >>> spec = TrainPairs(width=4, heads=2, steps=4, batch=8, evaluation=8)
    >>> [row.step for row in spec.train_on("cpu").rows]
    [1, 2, 3, 4]
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
        """What a kind of run sets besides."""
        return {}


def protocol_of(name: Protocol, sequences: int) -> Fixed | Fresh:
    """Return the protocol of this name.

    >>> protocol_of("fixed", 512)
    Fixed(sequences=512, order='same')
    """
    return Fixed(sequences) if name == "fixed" else Fresh()
