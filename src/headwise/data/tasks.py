"""A task: random noise, the batch made from it, and the loss.

Noise and batch are separate so that many models can train at once: each draws noise from its own
stream, and one call turns the noise of all of them into batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor


class Batch(NamedTuple):
    """What a model is given, and what its outputs are compared with.

    Attributes:
        inputs: The model's inputs.
        targets: The targets of the loss.

    Example:
        >>> Batch((torch.ones(2, 3),), (torch.zeros(2),)).inputs[0].shape
        torch.Size([2, 3])
    """

    inputs: tuple[Tensor, ...]
    targets: tuple[Tensor, ...]


@runtime_checkable
class Task(Protocol):
    """A source of batches, with a loss.

    ``batch`` takes noise with any leading axes (members of an ensemble, sequences), and the
    number of updates so far as a tensor, for tasks that grow harder; None means the hardest form.
    ``loss`` and ``score`` see one member and return one number.

    Example:
        >>> from headwise.data import FarthestNeighbour
        >>> isinstance(FarthestNeighbour(4, 3), Task)
        True
    """

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """The randomness of ``count`` sequences, on the generator's device."""
        ...

    def batch(self, noise: Tensor, step: Tensor | None) -> Batch:
        """The batch that this noise makes."""
        ...

    def examine(self, count: int, generator: torch.Generator) -> Batch:
        """Test data, never trained on."""
        ...

    def loss(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """What training makes small."""
        ...

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """What is reported of test data beside the loss."""
        ...


class Drawn(ABC):
    """The common part of tasks whose test data are drawn like the training data.

    Example:
        >>> from headwise.data import Drawn, FarthestNeighbour
        >>> isinstance(FarthestNeighbour(4, 3), Drawn)
        True
    """

    @abstractmethod
    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """The randomness of ``count`` sequences, on the generator's device."""

    @abstractmethod
    def batch(self, noise: Tensor, step: Tensor | None) -> Batch:
        """The batch that this noise makes."""

    def loss(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The squared length of the error, averaged over tokens and sequences."""
        return (outputs - targets[0]).square().sum(-1).mean()

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The loss itself."""
        return self.loss(outputs, *targets)

    def examine(self, count: int, generator: torch.Generator) -> Batch:
        """Test data: the task at its hardest, from its own stream."""
        return self.batch(self.noise(count, generator), None)


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draw float32 N(0, 1) numbers on the generator's device."""
    return torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float32)
