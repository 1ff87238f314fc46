"""Set the precision of matrix products inside a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headwise.training.settings import Settings


@contextmanager
def exact_products() -> Iterator[None]:
    """Inside, products of float32 are taken in float32, whatever was set; then as before.

    >>> with exact_products():
    ...     torch.get_float32_matmul_precision()
    'highest'
    """
    with float32_products("highest"):
        yield


@contextmanager
def products(settings: Settings) -> Iterator[None]:
    """Forward and backward passes inside take products as the settings say.

    >>> with products(Settings(steps=1)):
    ...     torch.get_float32_matmul_precision()
    'highest'
    """
    with float32_products("high" if settings.precision == "tf32" else "highest"):
        yield


def rounded(settings: Settings) -> torch.autocast:
    """A forward pass inside rounds to bfloat16 if the settings say so.

    >>> with rounded(Settings(steps=1, precision="bf16")):
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """
    return torch.autocast(
        torch.device(settings.device).type,
        dtype=torch.bfloat16,
        enabled=settings.precision == "bf16",
        cache_enabled=False,  # a cast kept from one step would be stale in a replayed graph
    )


@contextmanager
def float32_products(level: str) -> Iterator[None]:
    """Inside, products of float32 are taken at this level of torch's; then as before.

    >>> with float32_products("high"):
    ...     torch.get_float32_matmul_precision()
    'high'
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(level)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
