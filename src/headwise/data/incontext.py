"""In-context linear regression: examples (x, wᵀx) in a row, with a curriculum."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headwise.checks import whole
from headwise.data.tasks import Batch, Drawn, normal

#: The share of its 500,000 steps after which the paper has 20 dimensions and 41 points in use.
PAPER_SHARE = 0.06


@dataclass(frozen=True)
class Curriculum:
    """Start with few dimensions and points; every ``every`` steps add one dimension and two points.

    Args:
        first_dimensions: The dimensions at the start.
        first_points: The points at the start.
        every: The number of steps between two increases.

    Example:
        >>> Curriculum().at(torch.tensor(4000), dimensions=20, points=41)
        (tensor(7), tensor(15))
    """

    first_dimensions: int = 5
    first_points: int = 11
    every: float | int = 2000.0

    def at(self, step: Tensor, *, dimensions: int, points: int) -> tuple[Tensor, Tensor]:
        """Return the dimensions and points in use after this many steps."""
        grown = (step / self.every).floor().long()
        return (
            (self.first_dimensions + grown).clamp(max=dimensions),
            (self.first_points + 2 * grown).clamp(max=points),
        )

    def grown_after(self, steps: float | int, *, dimensions: int, points: int) -> Curriculum:
        """Return a curriculum that uses everything after this many steps."""
        missing = max(dimensions - self.first_dimensions, (points - self.first_points + 1) // 2, 1)
        return replace(self, every=steps / missing)


@dataclass(frozen=True)
class InContext(Drawn):
    """In-context linear regression: x, w ~ N(0, I), y = wᵀx; every prefix is a question.

    Dimensions not in use yet are zero. Points not in use yet are drawn but have no weight in the
    loss: no point sees a later one, so this equals leaving them out, and shapes stay the same.

    Args:
        dimensions: The dimension of x.
        points: The number of examples.
        curriculum: How the task grows; None starts with everything.

    Raises:
        BadInputError: If a size is out of range.

    Example:
        >>> x, y = InContext(4, 6).examine(3, torch.Generator().manual_seed(0)).inputs
        >>> x.shape, y.shape
        (torch.Size([3, 6, 4]), torch.Size([3, 6]))
    """

    dimensions: int = 20
    points: int = 41
    curriculum: Curriculum = Curriculum()

    def __post_init__(self) -> None:
        # A curriculum that begins with more than there is begins with all of it.
        whole("dimensions", self.dimensions)
        whole("points", self.points)

    def for_steps(self, steps: int, share: float | int = PAPER_SHARE) -> InContext:
        """The same task, everything in use after this share of a run of so many steps."""
        sizes = {"dimensions": self.dimensions, "points": self.points}
        return replace(self, curriculum=self.curriculum.grown_after(share * steps, **sizes))

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """N(0, 1): the points, and behind them the weights w."""
        return normal((count, self.points + 1, self.dimensions), generator)

    def batch(self, noise: Tensor, step: Tensor | None) -> Batch:
        """Points and answers; the targets are the answers and what each weighs."""
        x, w = noise[..., :-1, :], noise[..., -1, :]
        dimensions, points = self._in_use(noise, step)
        used = torch.arange(self.dimensions, device=noise.device) < dimensions
        counted = torch.arange(self.points, device=noise.device) < points
        x = x * used
        y = (x * w.unsqueeze(-2)).sum(-1)
        weights = (counted / points).to(noise.dtype).expand_as(y)
        return Batch((x, y), (y, weights))

    def _in_use(self, noise: Tensor, step: Tensor | None) -> tuple[Tensor | int, Tensor | int]:
        if step is None:
            return self.dimensions, self.points
        return self.curriculum.at(step, dimensions=self.dimensions, points=self.points)

    def loss(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The squared error, averaged over the prefixes in use."""
        y, weights = targets
        return ((outputs - y).square() * weights).sum(-1).mean()

    def score(self, outputs: Tensor, *targets: Tensor) -> Tensor:
        """The squared error at the last point, after all the others were seen."""
        return (outputs[..., -1] - targets[0][..., -1]).square().mean()
