"""Given samples to learn from: images, texts, vectors, anything with labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from headwise.data.tasks import Batch
from headwise.errors import BadInputError


@dataclass(frozen=True, eq=False)
class Samples:
    """Labelled samples to draw from, with replacement, and others to test on.

    Put both on the device that trains.

    Args:
        trained: The model's inputs, and one tensor of class numbers.
        held_out: The same for the test data.
        label_smoothing: The share of a label that is spread over all classes.

    Raises:
        BadInputError: If a part is empty or has other than one tensor of classes.

    Example:
        >>> data = Batch((torch.zeros(10, 3),), (torch.zeros(10, dtype=torch.int64),))
        >>> task = Samples(trained=data, held_out=data)
        >>> task.batch(task.noise(4, torch.Generator().manual_seed(0)), None).inputs[0].shape
        torch.Size([4, 3])
    """

    trained: Batch
    held_out: Batch
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        for batch in (self.trained, self.held_out):
            lengths = {len(t) for t in (*batch.inputs, *batch.targets)}
            if len(lengths) != 1 or 0 in lengths:
                raise BadInputError(
                    f"inputs and labels have {sorted(lengths)} samples",
                    hint="pass as many labels as inputs, at least one",
                )

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """Which samples."""
        size = len(self.trained.targets[0])
        return torch.randint(size, (count,), generator=generator, device=generator.device)

    def batch(self, noise: Tensor, step: Tensor | None = None) -> Batch:
        """The samples chosen."""
        return Batch(
            tuple(t[noise] for t in self.trained.inputs),
            tuple(t[noise] for t in self.trained.targets),
        )

    def examine(self, count: int, generator: torch.Generator) -> Batch:
        """The first ``count`` samples held out, or all there are."""
        device = generator.device
        return Batch(
            tuple(t[:count].to(device) for t in self.held_out.inputs),
            tuple(t[:count].to(device) for t in self.held_out.targets),
        )

    def loss(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """Cross-entropy, with the labels smoothed if asked."""
        return cross_entropy(outputs, targets[0], label_smoothing=self.label_smoothing)

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The share of right answers."""
        return (outputs.argmax(-1) == targets[0]).to(outputs.dtype).mean()


class Numbers(Samples):
    """Samples with a number each, which the model's single output should equal."""

    def loss(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The mean squared error."""
        return mse_loss(outputs.squeeze(-1), targets[0])

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The loss itself."""
        return self.loss(outputs, *targets)
