"""The host side of the attention kernels: three passes over heads in the layout of projections.

``short_triton`` and ``blocks_triton`` differ in how they go through tokens, but are called the
same way: contiguous float32 of shape (sequences, tokens, heads, rank), scores in units of log 2,
and the log₂ of each row's sum between forward and backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LOG2_E = math.log2(math.e)

#: Maps tokens, heads, rank and whether products are rounded to TF32 to a kernel's arguments.
Sizes = Callable[[int, int, int, bool], dict[str, Any]]


@dataclass(frozen=True)
class Passes:
    """One kernel per pass, their sizes, and the number of programs per sequence."""

    forward_kernel: Any
    by_queries: Any
    by_keys: Any
    sizes: Sizes
    programs: Callable[[dict[str, Any]], int]

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool, rounded: bool
    ) -> tuple[Tensor, Tensor]:
        """Return attention of (s, n, h, r), and the log₂ of each row's sum (s, n, h)."""
        out, logsum = torch.empty_like(q), q.new_empty(q.shape[:3])
        grid, given = self._told(q, causal, rounded)
        self.forward_kernel[grid](q, k, v, out, logsum, scale * LOG2_E, **given)
        return out, logsum

    def backward(
        self,
        g: Tensor,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        out: Tensor,
        logsum: Tensor,
        scale: float,
        causal: bool,
        rounded: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients by queries, keys and values, rounded as in the forward pass."""
        dq, dk, dv = (torch.empty_like(q) for _ in range(3))
        delta = torch.empty_like(logsum)
        grid, given = self._told(q, causal, rounded)
        scales = (scale * LOG2_E, scale)
        self.by_queries[grid](q, k, v, out, logsum, g, dq, delta, *scales, **given)
        self.by_keys[grid](q, k, v, logsum, g, delta, dk, dv, *scales, **given)
        return dq, dk, dv

    def _told(self, q: Tensor, causal: bool, rounded: bool) -> tuple[tuple[int], dict[str, Any]]:
        sequences, tokens, heads, rank = q.shape
        given = self.sizes(tokens, heads, rank, rounded)
        return (sequences * self.programs(given),), given | {"CAUSAL": causal}
