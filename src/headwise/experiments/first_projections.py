"""Queries and keys of the first layer, shared by questions that differ in the head dimension alone.

A layer of H heads has the same weights however its columns are cut into heads, so a sweep over
head dimensions multiplies the same matrices again and again: most of its time, where heads are
wide. The last product is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from torch import Tensor

from headwise.data.synthetic import InputLaw, random_tokens
from headwise.experiments.initial_stack import (
    InitialLayer,
    Projections,
    StackShape,
    WeightLaw,
    collapse,
)
from headwise.randomness import stream

#: Numbers in queries, and as many in keys, beyond which nothing is kept: 2²³ are 64 MiB.
KEPT_AT_MOST = 2**23


@dataclass(frozen=True)
class FirstLayer:
    """What queries and keys of the first layer depend on; no norm stands before it.

    >>> first = FirstLayer("normal(0,1)", 0.0, (2, 5, 8), 8, "normal(0,1)", seed=0)
    >>> first.projections().queries.shape
    torch.Size([2, 5, 8])
    """

    inputs: InputLaw
    shift: float
    sizes: tuple[int, int, int]
    inner: int
    weights: WeightLaw
    seed: int

    @property
    def kept(self) -> bool:
        """Whether they are few enough numbers to be kept."""
        return self.sizes[0] * self.sizes[1] * max(self.inner, self.sizes[2]) <= KEPT_AT_MOST

    def tokens(self) -> Tensor:
        """The inputs, drawn on the CPU, so that a spec has the same ones on every device."""
        return random_tokens(self.inputs, self.sizes, stream(self.seed, "inputs")) + self.shift

    def projections(self) -> Projections:
        """Queries and keys, computed."""
        return self._with(self.tokens())

    def _with(self, tokens: Tensor) -> Projections:
        # Cut into heads of one column or of many, the weights are the same.
        shape = StackShape(self.sizes[2], self.inner, heads=1, weights=self.weights, norm="none")
        return InitialLayer(shape, self.seed, 1).projections(tokens)


class Beginning(NamedTuple):
    """The inputs, their description, and what the first layer reads in them if it is known."""

    tokens: Tensor
    told: dict[str, float]
    projections: Projections | None


@lru_cache(maxsize=1)
def shared_beginning(first: FirstLayer) -> Beginning:
    """From memory if the same was asked for last. It is not to be changed.

    >>> first = FirstLayer("normal(0,1)", 0.0, (2, 5, 8), 8, "normal(0,1)", seed=0)
    >>> shared_beginning(first) is shared_beginning(first)
    True
    """
    tokens = first.tokens()
    return Beginning(tokens, told_of(tokens), first._with(tokens))


def told_of(tokens: Tensor) -> dict[str, float]:
    """What a row tells of the tokens that enter a layer.

    >>> told_of(torch.ones(1, 3, 2, dtype=torch.float64))
    {'input_mean': 1.0, 'input_spread': 0.0, 'collapse': 0.0}
    """
    return {
        "input_mean": float(tokens.mean()),
        "input_spread": float(tokens.std()),
        "collapse": collapse(tokens),
    }
