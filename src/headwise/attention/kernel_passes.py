"""The three passes of attention kernels over heads where projections leave them: one host side.

``short_triton`` and ``blocks_triton`` have kernels that differ in how they go through tokens. They
are called alike: sequences, tokens, heads and ranks of contiguous float32, scores in units of
log 2, and between forward and backward the log₂ of each row's sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LOG2_E = math.log2(math.e)

#: Arguments of a kernel, from tokens, heads, rank, and whether products are rounded to TF32.
Sizes = Callable[[int, int, int, bool], dict[str, Any]]


@dataclass(frozen=True)
class Passes:
    """A kernel for each pass, their sizes, and how many programs one sequence takes."""

    forward_kernel: Any
    by_queries: Any
    by_keys: Any
    sizes: Sizes
    programs: Callable[[dict[str, Any]], int]

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool, rounded: bool
    ) -> tuple[Tensor, Tensor]:
        """Attention of (s, n, h, r), and the log₂ of each row's sum (s, n, h)."""
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
        """The gradients by queries, keys and values, rounded as the forward pass was."""
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
