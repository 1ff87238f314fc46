"""Heads as they start: queries and keys when every weight and every input is N(0, 1)."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.shapes import Float


def gaussian_heads(
    heads: int, tokens: int, *, width: int, head_dim: int, seed: int
) -> tuple[Float[Tensor, "heads tokens head_dim"], Float[Tensor, "heads tokens head_dim"]]:
    """Queries X W_Q and keys X W_K of independent heads, each on its own input, in float64.

    This is how the rank paper draws its attention matrices: no scaling of the weights, so
    that logits are large and each row of the softmax is nearly one-hot.

    >>> queries, keys = gaussian_heads(2, 5, width=7, head_dim=3, seed=0)
    >>> queries.shape == keys.shape == (2, 5, 3)
    True
    """
    sizes = {"heads": heads, "tokens": tokens, "width": width, "head_dim": head_dim}
    for name, size in sizes.items():
        if size < 1:
            raise BadInputError(f"{name} is {size}", hint="pass a whole number of at least 1")
    inputs = _normal(seed, "inputs", heads, tokens, width)
    return (
        inputs @ _normal(seed, "query weights", heads, width, head_dim),
        inputs @ _normal(seed, "key weights", heads, width, head_dim),
    )


def _normal(seed: int, purpose: str, *shape: int) -> Tensor:
    return torch.randn(shape, generator=stream(seed, purpose), dtype=torch.float64)
