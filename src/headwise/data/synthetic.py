"""Random tokens by name: the input distributions of the rank paper, and a few beside them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.shapes import Float

#: Every distribution of token entries; the second argument of normal is the variance.
InputLaw = Literal[
    "normal(0,1)",
    "normal(0,100)",
    "uniform(-1,1)",
    "uniform(-100,100)",
    "uniform(0,1)",
    "half uniform(-1,1), half normal(0,1)",
    "half uniform(0,1), half normal(0,1)",
    "half uniform(-1,1), half laplace(0,1)",
    "half uniform(0,1), half laplace(0,1)",
]

_Sampler = Callable[[tuple[int, ...], torch.Generator], Tensor]


def random_tokens(
    law: InputLaw, shape: tuple[int, ...], generator: torch.Generator
) -> Float[Tensor, "*batch n d"]:
    """Return tokens with independent entries in float64, drawn on the generator's device.

    In the mixed distributions the first half of a token's entries follows the first distribution
    and the second half the other.

    Raises:
        BadInputError: If the distribution is unknown.
    """
    if law not in get_args(InputLaw):
        raise BadInputError(
            f"there is no input law {law!r}", hint=f"choose from {', '.join(get_args(InputLaw))}"
        )
    parts = [part.removeprefix("half ") for part in law.split(", ")]
    if len(parts) == 1:
        return _SAMPLERS[law](shape, generator)
    first = shape[-1] // 2
    sizes = (first, shape[-1] - first)
    halves = [
        _SAMPLERS[part]((*shape[:-1], size), generator)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return torch.cat(halves, dim=-1)


def _normal(variance: float) -> _Sampler:
    def draw(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        unit = torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float64)
        return math.sqrt(variance) * unit

    return draw


def _uniform(low: float, high: float) -> _Sampler:
    def draw(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        unit = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
        return low + (high - low) * unit

    return draw


def _laplace(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """The double exponential law of scale one: an exponential with a random sign."""
    size = torch.empty(shape, device=generator.device, dtype=torch.float64)
    size.exponential_(generator=generator)
    sign = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    return torch.where(sign < 0.5, -size, size)


_SAMPLERS: dict[str, _Sampler] = {
    "normal(0,1)": _normal(1.0),
    "normal(0,100)": _normal(100.0),
    "uniform(-1,1)": _uniform(-1.0, 1.0),
    "uniform(-100,100)": _uniform(-100.0, 100.0),
    "uniform(0,1)": _uniform(0.0, 1.0),
    "laplace(0,1)": _laplace,
}
