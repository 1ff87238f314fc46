"""Set the precision of matrix products inside a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headwise.training.settings import Settings


@contextmanager
def exact_products() -> Iterator[None]:
    """Compute float32 products in float32 inside the block, then restore the setting."""
    with float32_products("highest"):
        yield


@contextmanager
def products(settings: Settings) -> Iterator[None]:
    """Compute products of forward and backward passes with the precision of the settings."""
    with float32_products("high" if settings.precision == "tf32" else "highest"):
        yield


def rounded(settings: Settings) -> torch.autocast:
    """Round a forward pass to bfloat16 if the settings ask for it."""
    return torch.autocast(
        torch.device(settings.device).type,
        dtype=torch.bfloat16,
        enabled=settings.precision == "bf16",
        cache_enabled=False,  # a cached cast would be stale in a replayed graph
    )


@contextmanager
def float32_products(level: str) -> Iterator[None]:
    """Set torch's precision of float32 products inside the block, then restore it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(level)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
