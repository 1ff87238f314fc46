"""Slow, plainly right answers, and matrices whose answers are known because they were planted."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.randomness import stream

EPSILON = 1e-8


def normal(*shape: int, seed: int, name: str = "normal") -> Tensor:
    return torch.randn(*shape, generator=stream(seed, name), dtype=torch.float64)


def orthonormal(batch: int, n: int, k: int, seed: int) -> Tensor:
    return torch.linalg.qr(normal(batch, n, k, seed=seed, name="orthonormal")).Q


def planted(values: Tensor, n: int, m: int, seed: int) -> Tensor:
    """Matrices of shape (b, n, m) with exactly the given (b, k) singular values, up to rounding."""
    batch, k = values.shape
    left, right = orthonormal(batch, n, k, seed), orthonormal(batch, m, k, seed + 1)
    return left @ (values.unsqueeze(-1) * right.mT)


def random_head_logits(
    n: int, head_dim: int, batch: int, *, seed: int, scale: float = 1.0, width: int = 384
) -> Tensor:
    """Logits of an attention head at initialisation: all weights and inputs N(0, scale²)."""
    x = normal(batch, n, width, seed=seed, name="inputs")
    q = x @ (scale * normal(batch, width, head_dim, seed=seed, name="queries"))
    k = x @ (scale * normal(batch, width, head_dim, seed=seed, name="keys"))
    return q @ k.mT / math.sqrt(head_dim)


def causal(logits: Tensor) -> Tensor:
    ahead = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
    return logits.masked_fill(ahead, -math.inf)


def singular_values(matrix: Tensor) -> Tensor:
    return torch.linalg.svdvals(matrix.double())


def svd_rank(matrix: Tensor, epsilon: float = EPSILON) -> Tensor:
    return (singular_values(matrix) >= epsilon).sum(-1)
