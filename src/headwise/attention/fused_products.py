"""The kernels for long sequences, where a GPU and Triton are there and the mask is a simple one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from headwise.attention.masks import Causal, Everything, Mask

#: The dtypes that tensor cores multiply exactly into float32.
SHORT = (torch.bfloat16, torch.float16)

#: Wider heads and blocks do not fit into the registers of one program.
WIDEST = 128


@dataclass(eq=False)
class FusedProducts:
    """A·X, Aᵀ·Y and the arg-max by Triton; the sums of rows are kept between products."""

    kernels: Any
    causal: bool
    offset: int
    logsum: Tensor | None = field(default=None, repr=False)

    def product(self, queries: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
        """Return A·X."""
        q, k, x = map(_flat, (queries, keys, values))
        out, self.logsum = self.kernels.attend(q, k, x, scale=scale, **self._mask())
        return out.reshape(*queries.shape[:-1], values.shape[-1])

    def transposed(self, queries: Tensor, keys: Tensor, block: Tensor, scale: float) -> Tensor:
        """Return Aᵀ·Y."""
        q, k, y = map(_flat, (queries, keys, block))
        if self.logsum is None:
            self.logsum = self.row_sums(q, k, scale)
        out = self.kernels.attend_transposed(q, k, y, self.logsum, scale=scale, **self._mask())
        return out.reshape(*keys.shape[:-1], block.shape[-1])

    def row_sums(self, queries: Tensor, keys: Tensor, scale: float) -> Tensor:
        """Return the log₂ of the sum of each row's weights, (matrices, n)."""
        q, k = map(_flat, (queries, keys))
        narrow = torch.zeros(len(k), k.shape[1], 16, dtype=k.dtype, device=k.device)
        return self.kernels.attend(q, k, narrow, scale=scale, **self._mask())[1]

    def argmax(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the key of each query's largest score."""
        found = self.kernels.argmax(_flat(queries), _flat(keys), **self._mask())
        return found.reshape(queries.shape[:-1])

    def _mask(self) -> dict[str, Any]:
        return {"causal": self.causal, "offset": self.offset}


def fused_kernels(queries: Tensor, mask: Mask) -> FusedProducts | None:
    """Return the kernels, or None if they do not serve this device, dtype, width or mask."""
    served = queries.is_cuda and queries.dtype in (*SHORT, torch.float32)
    simple = isinstance(mask, Everything | Causal) and queries.shape[-1] <= WIDEST
    if not (served and simple):
        return None
    try:
        from headwise.attention import streaming_triton
    except ImportError:
        return None
    offset = mask.offset if isinstance(mask, Causal) else 0
    return FusedProducts(streaming_triton, isinstance(mask, Causal), offset)


def _flat(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, *tensor.shape[-2:]).contiguous()
