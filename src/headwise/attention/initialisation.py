"""How a layer's weights begin: stated per head, drawn from a stream of its own.

| rule | W_Q, W_K, W_V of each head | W_O of each head | what it gives |
|---|---|---|---|
| FanIn | N(0, 1/d) | N(0, 1/(H·v)) | unit variance stays so, whatever H and r |
| UnitGaussian | N(0, 1) | N(0, 1) | the rank paper's initialisation |
| Stock | U(±√(6/4d)) | U(±1/√d) | ``torch.nn.MultiheadAttention``, each of its copies |

Expansions of a latent read the latent, so d is its width there. Biases begin at zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from headwise.randomness import stream, stream_seed


@dataclass(frozen=True)
class Initialisation(ABC):
    """A rule and a seed. The same seed draws the same layer."""

    seed: int = 0

    def child(self, *names: str | int) -> Initialisation:
        """The same rule with a stream of its own for a part of the model."""
        return replace(self, seed=stream_seed(self.seed, *names))

    @abstractmethod
    def draw_input(self, weight: Tensor, generator: torch.Generator) -> None:
        """Fill the weight of a map that reads tokens."""

    @abstractmethod
    def draw_output(self, weight: Tensor, generator: torch.Generator) -> None:
        """Fill the weight of the map that writes to the width."""

    @torch.no_grad()
    def fill_input(self, linear: nn.Linear, name: str) -> None:
        """Draw a map that reads tokens."""
        self.draw_input(linear.weight, stream(self.seed, name))
        _zero_bias(linear)

    @torch.no_grad()
    def fill_output(self, linear: nn.Linear, name: str) -> None:
        """Draw the map that writes to the width."""
        self.draw_output(linear.weight, stream(self.seed, name))
        _zero_bias(linear)


@dataclass(frozen=True)
class FanIn(Initialisation):
    """Every weight N(0, 1/fan-in).

    >>> FanIn(seed=1).child("layer", 0) == FanIn(seed=1).child("layer", 1)
    False
    """

    def draw_input(self, weight: Tensor, generator: torch.Generator) -> None:
        """N(0, 1/d)."""
        weight.normal_(0, weight.shape[1] ** -0.5, generator=generator)

    def draw_output(self, weight: Tensor, generator: torch.Generator) -> None:
        """N(0, 1/(H·v))."""
        self.draw_input(weight, generator)


@dataclass(frozen=True)
class UnitGaussian(Initialisation):
    """Every weight N(0, 1), as in the rank paper.

    >>> UnitGaussian().seed
    0
    """

    def draw_input(self, weight: Tensor, generator: torch.Generator) -> None:
        """N(0, 1)."""
        weight.normal_(0, 1, generator=generator)

    def draw_output(self, weight: Tensor, generator: torch.Generator) -> None:
        """N(0, 1)."""
        weight.normal_(0, 1, generator=generator)


@dataclass(frozen=True)
class Stock(Initialisation):
    """What ``torch.nn.MultiheadAttention`` of width d draws, in each of its copies.

    >>> Stock().seed
    0
    """

    def draw_input(self, weight: Tensor, generator: torch.Generator) -> None:
        """U(±√(6/4d)): Xavier's rule for the packed (3d, d) matrix."""
        bound = math.sqrt(6 / (4 * weight.shape[1]))
        weight.uniform_(-bound, bound, generator=generator)

    def draw_output(self, weight: Tensor, generator: torch.Generator) -> None:
        """U(±1/√d)."""
        bound = weight.shape[0] ** -0.5
        weight.uniform_(-bound, bound, generator=generator)


def empty_linear(inputs: int, outputs: int, biased: bool) -> nn.Linear:
    """A linear map whose weights are still to be drawn; the global generator is not asked.

    >>> empty_linear(3, 5, biased=False).weight.shape
    torch.Size([5, 3])
    """
    linear = nn.Linear(inputs, outputs, bias=biased, device="meta")
    # Filled by hand: nn.utils.skip_init loads a computer algebra system on the way, 0.7 s.
    linear.weight = nn.Parameter(torch.empty(outputs, inputs, device="cpu"))
    if biased:
        linear.bias = nn.Parameter(torch.empty(outputs, device="cpu"))
    return linear


def _zero_bias(linear: nn.Linear) -> None:
    if linear.bias is not None:
        linear.bias.zero_()
