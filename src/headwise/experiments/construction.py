"""How well does a layer with hand-written weights find the nearest neighbour?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from headwise.attention.constructions import (
    nearest_neighbour,
    soft_nearest_neighbour,
    softmax_tally,
    with_index,
)
from headwise.randomness import stream
from headwise.runs import Row, Spec
from headwise.spectra import Estimate
from headwise.theory.nearest import neighbours

Finder = Callable[[Tensor, Tensor], Tensor]


class Construction(Spec, frozen=True):
    """The error of a construction on N points of the sphere; two points are orthonormal.

    ``hardmax`` is one full-rank head, ``softmax`` the same at temperature ``heat``. ``tally``, for
    two points, is one rank-1 softmax head per coordinate with logits ``heat``·x_j·y_j and a
    threshold on their sum.

    >>> Construction(layer="hardmax", width=4, tokens=7, samples=100).ask()["error"]
    0.0
    """

    kind: Literal["construction"] = "construction"
    revision: Literal[1] = 1
    layer: Literal["hardmax", "softmax", "tally"]
    width: Annotated[int, Field(ge=2)]
    tokens: Annotated[int, Field(ge=2)] = 2
    heat: PositiveFloat = 1.0
    samples: PositiveInt = 4000
    seed: int = 0

    @model_validator(mode="after")
    def _tally_of_two(self) -> Construction:
        if self.layer == "tally" and self.tokens != 2:
            raise ValueError(f"expected 2 tokens for the tally, got {self.tokens}; pass tokens=2")
        return self

    def ask(self) -> Row:
        """Return the mean squared error and the share of wrong answers on fresh points."""
        points, y = self._points()
        nearer = (points @ y.unsqueeze(-1)).squeeze(-1).argmax(-1)
        target = points[torch.arange(len(points)), nearer]
        answer = self._finder()(points, y)
        found = Estimate.of((answer - target).square().sum(-1))
        chosen = (points @ answer.unsqueeze(-1)).squeeze(-1).argmax(-1)
        wrong = float((chosen != nearer).double().mean())
        return {"error": found.mean, "stderr": found.stderr, "wrong": wrong}

    def _points(self) -> tuple[Tensor, Tensor]:
        generator = stream(self.seed, "construction", self.width, self.tokens)
        if self.tokens == 2:
            return neighbours(self.width, self.samples, generator)
        shape = (self.samples, self.tokens + 1, self.width)
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        placed = torch.nn.functional.normalize(drawn, dim=-1)
        return placed[:, :-1], placed[:, -1]

    def _finder(self) -> Finder:
        if self.layer == "tally":
            return _tallied(self.width, self.heat)
        one = nearest_neighbour(self.width)
        if self.layer == "softmax":
            one = soft_nearest_neighbour(self.width, self.heat)
        return lambda points, y: one(y.unsqueeze(1), key=points).squeeze(1)


def _tallied(width: int, tau: float) -> Finder:
    """Apply a threshold to the sign of the scratchpad, as an MLP after the layer would."""
    layer = softmax_tally(width, tau)

    def find(pair: Tensor, y: Tensor) -> Tensor:
        tokens = with_index(torch.cat([pair, y.unsqueeze(1)], dim=1))
        tally = layer(tokens[:, 2:], key=tokens[:, :2])[:, 0, -1]
        return torch.where((tally > 0).unsqueeze(-1), pair[:, 0], pair[:, 1])

    return find
