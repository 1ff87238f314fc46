"""Neighbour tasks: which of the points on a sphere is farthest from, or nearest to, a query."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from headwise.checks import whole
from headwise.data.points import UNIFORM, Points
from headwise.data.tasks import Batch, Drawn, normal
from headwise.errors import BadInputError
from headwise.shapes import Float


@dataclass(frozen=True)
class _AmongPoints(Drawn):
    """N points of a sphere, drawn by one rule."""

    width: int = 64
    tokens: int = 16
    points: Points = UNIFORM

    def __post_init__(self) -> None:
        whole("width", self.width, 2)
        whole("tokens", self.tokens, 2)


@dataclass(frozen=True)
class FarthestNeighbour(_AmongPoints):
    """Find for every token the farthest other one: label_i = x_j, j = argmin_j x_i·x_j.

    This is the heads paper's training task. One head of rank d solves it.

    Args:
        width: The dimension d of the points.
        tokens: The number of points.
        points: Where the points lie on the sphere.

    Example:
        >>> task = FarthestNeighbour(width=8, tokens=4)
        >>> batch = task.examine(2, torch.Generator().manual_seed(0))
        >>> batch.inputs[0].shape == batch.targets[0].shape == (2, 4, 8)
        True
    """

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """N(0, 1), one number for each coordinate of each point."""
        return normal((count, self.tokens, self.width), generator)

    def batch(self, noise: Tensor, step: Tensor | None = None) -> Batch:
        """The points, and for each the one farthest from it."""
        points = self.points.place(noise)
        return Batch((points,), (farthest(points),))


@dataclass(frozen=True)
class NearestNeighbour(_AmongPoints):
    """Find the point nearest to a query: the target is the x_i with the largest x_i·y.

    The model takes points (b, N, d) and a query (b, d), and returns a vector (b, d).

    Args:
        width: The dimension d.
        tokens: The number N of points.
        points: Where the points lie on the sphere.

    Example:
        >>> batch = NearestNeighbour(8, 4).examine(2, torch.Generator().manual_seed(0))
        >>> [t.shape for t in batch.inputs], batch.targets[0].shape
        ([torch.Size([2, 4, 8]), torch.Size([2, 8])], torch.Size([2, 8]))
    """

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """N(0, 1); the query is the last point."""
        return normal((count, self.tokens + 1, self.width), generator)

    def batch(self, noise: Tensor, step: Tensor | None = None) -> Batch:
        """The points, the query, and the point nearest to it."""
        placed = self.points.place(noise)
        points, query = placed[..., :-1, :], placed[..., -1, :]
        return Batch((points, query), (nearest(points, query),))


@dataclass(frozen=True)
class OrthonormalPairs(Drawn):
    """Find the nearer of two random orthonormal points, for a uniform query, as in the theory.

    Args:
        width: The dimension d.

    Example:
        >>> x, y = OrthonormalPairs(5).examine(3, torch.Generator().manual_seed(0)).inputs
        >>> torch.allclose(x @ x.mT, torch.eye(2).expand(3, 2, 2), atol=1e-6)
        True
    """

    width: int = 64

    def __post_init__(self) -> None:
        whole("width", self.width, 2)

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """N(0, 1) for both points and the query."""
        return normal((count, 3, self.width), generator)

    def batch(self, noise: Tensor, step: Tensor | None = None) -> Batch:
        """The pair, the query, and the one of the pair that is nearer."""
        pair, query = orthonormal(noise[..., :2, :]), normalize(noise[..., 2, :], dim=-1)
        return Batch((pair, query), (nearest(pair, query),))


@dataclass(frozen=True)
class BiasedNearestNeighbour(Drawn):
    """Theorem 3's task: the target is the x_i with the largest x_i·y + b_i.

    The points are an orthonormal pair and the query is Gaussian with covariance I/√d, so that a
    bias of order d^(−¼) decides about as often as the query does.

    Args:
        width: The dimension d.
        biases: The two biases b_i.

    Raises:
        BadInputError: If there are not two biases.

    Example:
        >>> task = BiasedNearestNeighbour(8, biases=(1e6, 0.0))
        >>> batch = task.examine(3, torch.Generator().manual_seed(0))
        >>> torch.equal(batch.targets[0], batch.inputs[0][:, 0])
        True
    """

    width: int = 64
    biases: tuple[float | int, ...] = (0.5, 0.0)

    def __post_init__(self) -> None:
        whole("width", self.width, 2)
        if len(self.biases) != 2 or not all(map(math.isfinite, self.biases)):
            raise BadInputError(
                f"biases are {self.biases}", hint="pass two finite numbers, one for each point"
            )

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """N(0, 1) for both points and the query."""
        return normal((count, 3, self.width), generator)

    def batch(self, noise: Tensor, step: Tensor | None = None) -> Batch:
        """The pair, the query, and the winner with biases."""
        pair, query = orthonormal(noise[..., :2, :]), self.width**-0.25 * noise[..., 2, :]
        scores = (pair @ query.unsqueeze(-1)).squeeze(-1)
        first, second = self.biases
        # Added one by one: a tensor made here would be copied to the device in every step.
        second_wins = scores[..., 1] + second > scores[..., 0] + first
        return Batch((pair, query), (_pick(pair, second_wins.long().unsqueeze(-1)).squeeze(-2),))


def farthest(points: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n d"]:
    """Return for each point the one with the smallest inner product with it."""
    return _pick(points, (points @ points.mT).argmin(-1))


def nearest(points: Float[Tensor, "*b n d"], query: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
    """Return the point with the largest inner product with the query."""
    winner = (points @ query.unsqueeze(-1)).squeeze(-1).argmax(-1, keepdim=True)
    return _pick(points, winner).squeeze(-2)


def orthonormal(noise: Float[Tensor, "*b 2 d"]) -> Float[Tensor, "*b 2 d"]:
    """Make a uniform orthonormal pair from two Gaussian vectors, by Gram-Schmidt."""
    first = normalize(noise[..., 0, :], dim=-1)
    second = noise[..., 1, :]
    for _ in range(2):  # twice, so that rounding leaves nothing of the first
        second = second - (second * first).sum(-1, keepdim=True) * first
    return torch.stack([first, normalize(second, dim=-1)], dim=-2)


def _pick(points: Tensor, chosen: Tensor) -> Tensor:
    return points.gather(-2, chosen.unsqueeze(-1).expand(*chosen.shape, points.shape[-1]))
