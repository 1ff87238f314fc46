"""How well does a trained classifier of images or texts do, with these heads of this dimension?

The recipe is ``headwise.models.rank_paper``: what the rank paper states, and a choice with its
reason for everything it leaves open.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import nn

from headwise.attention import HeadGeometry
from headwise.data import EpochTask, Labelled, data_folder
from headwise.data.classification import (
    CLASSES,
    Source,
    image_source,
    image_task,
    text_source,
    text_task,
)
from headwise.experiments.real_batches import ImageName, TextName
from headwise.experiments.training_run import TrainedSpec
from headwise.models import parameter_counts
from headwise.models.classifiers import Images
from headwise.models.rank_paper import TextModel, VisionModel
from headwise.runs import Row, device
from headwise.training import AdamW, CurveRow, Settings, Trained
from headwise.training.precision import products, rounded

#: Samples at a time when a part is examined, as in the paper.
EVALUATION_BATCH = 1024

#: The constants of the recipe's Adam.
BETAS = (0.9, 0.999)

#: Decimal digits of an accuracy.
DIGITS = 5


class TrainClassifier(TrainedSpec, frozen=True):
    """A classifier trained for whole epochs; a row for each seed.

    The rate rises linearly over ``warm_up_epochs`` and falls to 0 along a cosine. ``per_class``
    takes the first so many training samples of each class; None takes the whole published set. A
    tenth of every class is set aside for validation: the curve is that of the validation part, and
    the test part is looked at once, at the end. Geometries with the same heads × head dimension
    train as one ensemble.
    """

    stacks_over: ClassVar[tuple[str, ...]] = ("heads", "head_dim")

    heads: PositiveInt
    head_dim: PositiveInt
    width: PositiveInt
    depth: PositiveInt
    mlp_width: PositiveInt
    epochs: PositiveInt
    per_class: PositiveInt | None = None
    warm_up_epochs: NonNegativeFloat = 5.0
    batch: PositiveInt = 128
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 5e-5
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.1

    @property
    @abstractmethod
    def source(self) -> Source:
        """The samples, on the CPU."""

    @property
    def geometry(self) -> HeadGeometry:
        """The heads."""
        return HeadGeometry.free(self.width, self.heads, self.head_dim)

    @property
    def stacked_shape(self) -> tuple[int, ...]:
        """Return what must be equal for the parameters of two specs to stack."""
        return (self.heads * self.head_dim,)

    def settings(self, on: str) -> Settings:
        """Return the settings of the whole run."""
        parts = self.source.parts()
        return Settings.for_epochs(
            len(parts.train.labels),
            epochs=self.epochs,
            batch=self.batch,
            warm_up_epochs=self.warm_up_epochs,
            seeds=self.seeds,
            learning_rates=(self.learning_rate,),
            precision=self.dtype,
            evaluation=len(parts.validation.labels),
            device=on,
            optimiser=AdamW(BETAS, self.weight_decay),
            # A third faster than a graph alone on a GPU; a processor has nothing to compile with.
            execution="compiled" if on.startswith("cuda") else None,
        )

    def rows_of(self, done: Trained) -> list[Row]:
        """Return one row per seed."""
        settings, parts = self.settings(device()), self.source.parts(device())
        counts = parameter_counts(self.build(self.seeds[0]))
        shared = {
            "parameters": sum(counts.values()),
            "attention_parameters": counts["attention"],
            "trained_on": len(parts.train.labels),
            "validated_on": len(parts.validation.labels),
            "tested_on": len(parts.test.labels),
        }
        tested = self._accuracies(done, parts.test, settings)
        return [
            {**_curve(done, number, settings.epoch), "test_accuracy": accuracy, **shared}
            for number, accuracy in enumerate(tested)
        ]

    @torch.no_grad()
    def _accuracies(
        self, done: Trained, part: Labelled, settings: Settings
    ) -> Iterator[float | None]:
        """The share of right answers of each seed on a part; None once diverged."""
        task = self.task
        assert isinstance(task, EpochTask)
        for number, last in enumerate(done.last):
            if last.diverged_at is not None:
                yield None
                continue
            model = done.model(number).to(settings.device)
            right = 0
            with products(settings), rounded(settings):
                for places in torch.arange(len(part.labels)).split(EVALUATION_BATCH):
                    piece = part.at(places.to(part.labels.device))
                    answers = model(*task.shown(piece).inputs).argmax(-1)
                    right += int((answers == piece.labels).sum())
            yield round(right / len(part.labels), DIGITS)


def _curve(done: Trained, member: int, epoch: int) -> Row:
    """A member's accuracy on the validation part, as it was trained."""
    points: list[CurveRow] = [row for row in done.rows if row.member == member]
    last = points[-1]
    return {
        "seed": last.seed,
        "validation_accuracy": _short(last.test_score),
        "diverged_at": last.diverged_at,
        "curve_epoch": [round(point.step / epoch, 3) for point in points],
        "curve_accuracy": [_short(point.test_score) for point in points],
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


class TrainImages(TrainClassifier, frozen=True):
    """The rank paper's vision transformer on a set of images.

    >>> spec = TrainImages(
    ...     dataset="digits", patch=4, heads=2, head_dim=2, width=4, depth=1, mlp_width=4, epochs=1
    ... )
    >>> (row,) = spec.ask()
    >>> row["trained_on"], row["tested_on"], len(row["curve_epoch"])
    (1298, 357, 7)
    """

    kind: Literal["train_images"] = "train_images"
    revision: Literal[1] = 1
    dataset: ImageName
    patch: PositiveInt = 4
    width: PositiveInt = 192
    depth: PositiveInt = 7
    mlp_width: PositiveInt = 384

    @property
    def source(self) -> Source:
        """The images as bytes."""
        return image_source(self.dataset, data_folder(), self.per_class)

    @property
    def task(self) -> EpochTask:
        """The images, augmented on the device that trains."""
        return image_task(self.dataset, self.source, device(), self.label_smoothing)

    def build(self, seed: int) -> nn.Module:
        """The model as it begins."""
        channels, size = self.source.train.inputs[0].shape[1:3]
        model = VisionModel(
            self.width,
            self.depth,
            self.mlp_width,
            CLASSES[self.dataset],
            Images(size=size, patch=self.patch, channels=channels),
        )
        return model.build(self.geometry, seed)


class TrainTexts(TrainClassifier, frozen=True):
    """The classifier of texts: word embeddings, an encoder, the mean over real words.

    >>> spec = TrainTexts(
    ...     dataset="digits", length=64, heads=2, head_dim=2, width=4, depth=1, mlp_width=4,
    ...     epochs=1
    ... )
    >>> spec.ask()[0]["trained_on"]
    1298
    """

    kind: Literal["train_texts"] = "train_texts"
    revision: Literal[1] = 1
    dataset: TextName
    length: PositiveInt = 256
    width: PositiveInt = 128
    depth: PositiveInt = 2
    mlp_width: PositiveInt = 512
    batch: PositiveInt = 64
    learning_rate: PositiveFloat = 3e-4
    warm_up_epochs: NonNegativeFloat = 1.0

    @property
    def source(self) -> Source:
        """The texts as word ids."""
        return self._read()[0]

    @property
    def task(self) -> EpochTask:
        """The texts, thinned on the device that trains."""
        return text_task(self.source, device(), self.label_smoothing)

    def build(self, seed: int) -> nn.Module:
        """The model as it begins."""
        model = TextModel(
            self.width,
            self.depth,
            self.mlp_width,
            words=self._read()[1],
            length=self.length,
            classes=CLASSES[self.dataset],
        )
        return model.build(self.geometry, seed)

    def _read(self) -> tuple[Source, int]:
        return text_source(self.dataset, data_folder(), self.length, self.per_class)
