"""Share queries and keys of the first layer between specs that differ only in head dimension.

The weights of a layer do not depend on how their columns are cut into heads, so a sweep over head
dimensions multiplies the same matrices again and again. The last product is kept.
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

#: The most numbers in queries (and as many in keys) that are kept: 2²³ are 64 MiB.
KEPT_AT_MOST = 2**23


@dataclass(frozen=True)
class FirstLayer:
    """Everything that queries and keys of the first layer depend on; there is no norm before it."""

    inputs: InputLaw
    shift: float
    sizes: tuple[int, int, int]
    inner: int
    weights: WeightLaw
    seed: int

    @property
    def kept(self) -> bool:
        """Whether the product is small enough to be kept."""
        return self.sizes[0] * self.sizes[1] * max(self.inner, self.sizes[2]) <= KEPT_AT_MOST

    def tokens(self) -> Tensor:
        """Draw the inputs on the CPU, so that a spec has the same ones on every device."""
        return random_tokens(self.inputs, self.sizes, stream(self.seed, "inputs")) + self.shift

    def projections(self) -> Projections:
        """Compute queries and keys."""
        return self._with(self.tokens())

    def _with(self, tokens: Tensor) -> Projections:
        # The weights are the same for heads of one column and of many.
        shape = StackShape(self.sizes[2], self.inner, heads=1, weights=self.weights, norm="none")
        return InitialLayer(shape, self.seed, 1).projections(tokens)


class Beginning(NamedTuple):
    """The inputs, their description, and queries and keys of the first layer if known."""

    tokens: Tensor
    told: dict[str, float]
    projections: Projections | None


@lru_cache(maxsize=1)
def shared_beginning(first: FirstLayer) -> Beginning:
    """Return the inputs, cached from the last call if it was the same; do not change them."""
    tokens = first.tokens()
    return Beginning(tokens, told_of(tokens), first._with(tokens))


def told_of(tokens: Tensor) -> dict[str, float]:
    """Return statistics of the tokens that enter a layer, for a row."""
    return {
        "input_mean": float(tokens.mean()),
        "input_spread": float(tokens.std()),
        "collapse": collapse(tokens),
    }
