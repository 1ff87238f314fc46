"""Draw the initial weights of a layer, per head, from the layer's own random stream.

| rule | W_Q, W_K, W_V of each head | W_O of each head | what it gives |
|---|---|---|---|
| FanIn | N(0, 1/d) | N(0, 1/(H·v)) | keeps unit variance for any H and r |
| UnitGaussian | N(0, 1) | N(0, 1) | the rank paper's initialisation |
| Stock | U(±√(6/4d)) | U(±1/√d) | ``torch.nn.MultiheadAttention``, for each copy |

For the expansions of a latent, d is the width of the latent. Biases start at zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from headwise.checks import whole
from headwise.randomness import stream, stream_seed
from headwise.shapes import Float


@dataclass(frozen=True)
class Initialisation(ABC):
    """A rule and a seed for the initial weights; the same seed draws the same layer.

    Args:
        seed: The seed of the layer's random stream.

    Example:
        >>> isinstance(FanIn(seed=1), Initialisation)
        True
    """

    seed: int = 0

    def child(self, *names: str | int) -> Initialisation:
        """Return the same rule with its own random stream for a part of the model."""
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
    """Draw every weight from N(0, 1/fan-in): the default.

    Args:
        seed: The seed of the layer's random stream.

    Example:
        >>> FanIn(seed=1).child("layer", 0) == FanIn(seed=1).child("layer", 1)
        False
    """

    def draw_input(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw from N(0, 1/d)."""
        weight.normal_(0, weight.shape[1] ** -0.5, generator=generator)

    def draw_output(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw from N(0, 1/(H·v))."""
        self.draw_input(weight, generator)


@dataclass(frozen=True)
class UnitGaussian(Initialisation):
    """Draw every weight from N(0, 1), as in the rank paper.

    Args:
        seed: The seed of the layer's random stream.

    Example:
        >>> UnitGaussian().seed
        0
    """

    def draw_input(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw from N(0, 1)."""
        weight.normal_(0, 1, generator=generator)

    def draw_output(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw from N(0, 1)."""
        weight.normal_(0, 1, generator=generator)


@dataclass(frozen=True)
class Stock(Initialisation):
    """Draw what ``torch.nn.MultiheadAttention`` of width d draws, for each copy of it.

    Args:
        seed: The seed of the layer's random stream.

    Example:
        >>> Stock().seed
        0
    """

    def draw_input(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw from U(±√(6/4d)): Xavier's rule for the packed (3d, d) matrix."""
        bound = math.sqrt(6 / (4 * weight.shape[1]))
        weight.uniform_(-bound, bound, generator=generator)

    def draw_output(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw from U(±1/√d)."""
        bound = weight.shape[0] ** -0.5
        weight.uniform_(-bound, bound, generator=generator)


def empty_linear(inputs: int, outputs: int, biased: bool) -> nn.Linear:
    """Make a linear map without drawing weights, so that the global generator is not used."""
    linear = nn.Linear(inputs, outputs, bias=biased, device="meta")
    # nn.utils.skip_init would import sympy, which takes 0.7 s.
    linear.weight = nn.Parameter(torch.empty(outputs, inputs, device="cpu"))
    if biased:
        linear.bias = nn.Parameter(torch.empty(outputs, device="cpu"))
    return linear


def _zero_bias(linear: nn.Linear) -> None:
    if linear.bias is not None:
        linear.bias.zero_()


def gaussian_heads(
    heads: int, tokens: int, *, width: int, head_dim: int, seed: int
) -> tuple[Float[Tensor, "heads tokens head_dim"], Float[Tensor, "heads tokens head_dim"]]:
    """Draw queries X W_Q and keys X W_K of independent heads, each on its own input, in float64.

    The rank paper draws its attention matrices this way. The weights are not scaled, so logits are
    large and each row of the softmax is nearly one-hot.

    Args:
        heads: Number of heads.
        tokens: Tokens of each head's input.
        width: Width of the input.
        head_dim: Head dimension.
        seed: Seed of the draws.

    Returns:
        Queries and keys, each (heads, tokens, head_dim) in float64.

    Raises:
        BadInputError: If a size is less than one.

    Example:
        >>> queries, keys = gaussian_heads(2, 5, width=8, head_dim=4, seed=0)
        >>> tuple(queries.shape)
        (2, 5, 4)
    """
    sizes = {"heads": heads, "tokens": tokens, "width": width, "head_dim": head_dim}
    for name, size in sizes.items():
        whole(name, size)
    seed = whole("`seed`", seed, 0)
    inputs = _normal(seed, "inputs", heads, tokens, width)
    return (
        inputs @ _normal(seed, "query weights", heads, width, head_dim),
        inputs @ _normal(seed, "key weights", heads, width, head_dim),
    )


def _normal(seed: int, purpose: str, *shape: int) -> Tensor:
    return torch.randn(shape, generator=stream(seed, purpose), dtype=torch.float64)
