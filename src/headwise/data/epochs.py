"""Labelled data seen epoch by epoch: a task whose every batch follows from seed and step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headwise.data.augmentation import Mixed
from headwise.data.tasks import Batch
from headwise.errors import BadInputError
from headwise.randomness import stream


class Labelled(NamedTuple):
    """Inputs as they are stored (bytes, word ids and lengths) and their classes.

    Attributes:
        inputs: The stored inputs.
        labels: The class of each sample.

    Example:
        >>> Labelled((torch.zeros(3, 2),), torch.zeros(3)).labels.shape
        torch.Size([3])
    """

    inputs: tuple[Tensor, ...]
    labels: Tensor

    def at(self, places: Tensor) -> Labelled:
        """The chosen ones."""
        return Labelled(tuple(t[places] for t in self.inputs), self.labels[places])

    def to(self, device: str) -> Labelled:
        """The same on a device."""
        return Labelled(tuple(t.to(device) for t in self.inputs), self.labels.to(device))


class Parts(NamedTuple):
    """The three parts of a set.

    Attributes:
        train: What models train on.
        validation: What every choice is based on.
        test: What is only reported.
    """

    train: Labelled
    validation: Labelled
    test: Labelled


def cut_validation(labels: np.ndarray, share: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Cut a validation part from a training part, the same share of every class.

    The cut is the same for every seed of training, so that choices are made on the same images.

    Args:
        labels: The class of each sample of the training part.
        share: How much of each class to set aside.

    Returns:
        The places that train, and the places set aside, each in ascending order.

    Raises:
        BadInputError: The share leaves one of the two empty.

    Example:
        >>> train, validation = cut_validation(np.array([0] * 10 + [1] * 20))
        >>> len(train), len(validation)
        (27, 3)
    """
    generator = np.random.default_rng(0)
    aside = np.concatenate(
        [
            generator.permutation(np.flatnonzero(labels == own))[: round(share * count)]
            for own, count in zip(*np.unique(labels, return_counts=True), strict=True)
        ]
    )
    kept = np.setdiff1d(np.arange(len(labels)), aside)
    if len(aside) == 0 or len(kept) == 0:
        raise BadInputError(
            f"expected a share that leaves both parts something, got {share} of {len(labels)}",
            hint="pass a share such as 0.1, or more samples",
        )
    return kept, np.sort(aside)


@dataclass(frozen=True, eq=False)
class EpochTask:
    """Labelled data, augmented again each epoch.

    An epoch depends only on the seed and its number, so training can restart at any step.

    Args:
        parts: The training, validation and test parts.
        augment: Maps inputs, labels and a generator to ``Mixed``.
        present: Maps stored inputs to the model's inputs.
        label_smoothing: The share of a label that is spread over all classes.

    Example:
        >>> some = Labelled((torch.zeros(10, 3),), torch.zeros(10, dtype=torch.int64))
        >>> plain = lambda x, labels, generator: Mixed((x,), labels, labels, torch.ones(len(x)))
        >>> task = EpochTask(Parts(some, some, some), augment=plain, present=lambda x: (x,))
        >>> task.epoch(seed=0, number=0, batch=4).targets[0].shape
        torch.Size([8])
    """

    parts: Parts
    augment: Callable[..., Mixed]
    present: Callable[..., tuple[Tensor, ...]]
    label_smoothing: float = 0.1

    def epoch(self, seed: int, number: int, batch: int) -> Batch:
        """All batches of one epoch, one after another; a remainder below ``batch`` is left out.

        Args:
            seed: The seed of the member that trains.
            number: Which epoch, from 0.
            batch: Samples in a batch.

        Returns:
            Stored inputs in order, and both classes and the share of the first as targets.
        """
        generator = stream(seed, "epoch", number)
        size = len(self.parts.train.labels)
        order = torch.randperm(size, generator=generator)[: size - size % batch]
        chosen = self.parts.train.at(order.to(self.parts.train.labels.device))
        mixed = self.augment(*chosen.inputs, chosen.labels, generator)
        return Batch(mixed.inputs, (mixed.first, mixed.second, mixed.share))

    def examine(self, count: int, generator: torch.Generator) -> Batch:
        """The first ``count`` samples of the validation part."""
        part = self.parts.validation
        return self.shown(Labelled(tuple(t[:count] for t in part.inputs), part.labels[:count]))

    def shown(self, part: Labelled) -> Batch:
        """Samples as they are, for a model to answer."""
        ones = torch.ones(len(part.labels), device=part.labels.device)
        return Batch(self.present(*part.inputs), (part.labels, part.labels, ones))

    def loss(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """Cross-entropy to both classes, weighted by their shares, with smoothed labels."""
        first, second, share = targets
        smooth = {"label_smoothing": self.label_smoothing, "reduction": "none"}
        losses = [cross_entropy(outputs, labels, **smooth) for labels in (first, second)]
        return torch.lerp(losses[1], losses[0], share).mean()

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The share of right answers."""
        return (outputs.argmax(-1) == targets[0]).to(outputs.dtype).mean()


@dataclass(frozen=True)
class Standardised:
    """Map bytes to numbers of mean 0 and variance 1, for each channel of the training part.

    Args:
        mean: The mean of each channel.
        spread: The standard deviation of each channel.

    Example:
        >>> images = torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1)
        >>> Standardised.of(images)(images)[0].flatten()
        tensor([-1.,  1.])
    """

    mean: tuple[float, ...]
    spread: tuple[float, ...]

    @classmethod
    def of(cls, images: Tensor) -> Standardised:
        """The numbers of these images, on a scale from 0 to 1."""
        # By sums of bytes: exact, and no copy in float64 of a whole set.
        count = images.numel() // images.shape[1]
        values = torch.arange(256, dtype=torch.float64)
        means, spreads = [], []
        for channel in range(images.shape[1]):
            counts = torch.bincount(images[:, channel].flatten().int(), minlength=256).double()
            mean = float(counts.cpu() @ values) / count
            square = float(counts.cpu() @ values.square()) / count
            means.append(mean / 255)
            spreads.append(max(square - mean**2, 1e-12) ** 0.5 / 255)
        return cls(tuple(means), tuple(spreads))

    def __call__(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (…, c, s, s) as a model takes them."""
        mean, spread = (_column(own, images.device) for own in (self.mean, self.spread))
        return ((images.float() / 255 - mean) / spread,)


@cache
def _column(values: tuple[float, ...], device: torch.device) -> Tensor:
    """One number per channel; made once, since a recorded graph cannot copy from the host."""
    return torch.tensor(values, device=device).view(-1, 1, 1)


def as_words(ids: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Word ids and lengths as a model takes them.

    Args:
        ids: Stored ids.
        lengths: Real words of each text.

    Returns:
        Both as whole numbers of 64 bits.

    Example:
        >>> as_words(torch.zeros(1, 2, dtype=torch.int32), torch.ones(1))[0].dtype
        torch.int64
    """
    return ids.long(), lengths.long()
