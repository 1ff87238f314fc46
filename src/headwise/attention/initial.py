"""Draw queries and keys of heads at initialisation: all weights and inputs are N(0, 1)."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.shapes import Float


def gaussian_heads(
    heads: int, tokens: int, *, width: int, head_dim: int, seed: int
) -> tuple[Float[Tensor, "heads tokens head_dim"], Float[Tensor, "heads tokens head_dim"]]:
    """Draw queries X W_Q and keys X W_K of independent heads, each on its own input, in float64.

    The rank paper draws its attention matrices this way. The weights are not scaled, so logits are
    large and each row of the softmax is nearly one-hot.

    Returns:
        Queries and keys.

    Raises:
        BadInputError: If a size is less than one.
    """
    sizes = {"heads": heads, "tokens": tokens, "width": width, "head_dim": head_dim}
    for name, size in sizes.items():
        if size < 1:
            raise BadInputError(f"expected {name} of at least 1, got {size}", hint="pass 1 or more")
    inputs = _normal(seed, "inputs", heads, tokens, width)
    return (
        inputs @ _normal(seed, "query weights", heads, width, head_dim),
        inputs @ _normal(seed, "key weights", heads, width, head_dim),
    )


def _normal(seed: int, purpose: str, *shape: int) -> Tensor:
    return torch.randn(shape, generator=stream(seed, purpose), dtype=torch.float64)
