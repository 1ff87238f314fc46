"""Attention of many small heads over short sequences, in the layout that projections produce.

Queries, keys and values are (sequences, tokens, heads, rank), so nothing is transposed. General
kernels work in tiles of 64 tokens and 16 to 64 dimensions, which smaller heads mostly fill with
padding. On a GPU, float32 has its own kernels: token by token for few tokens (``short_triton``),
block by block for more (``blocks_triton``). Everything else goes to ``rank_one_attention`` or to
torch.
"""

from __future__ import annotations

from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from headwise.attention.kernel_passes import Passes
from headwise.attention.rank_one import folded, rank_one_attention
from headwise.shapes import Float

#: (largest rank, most tokens) for which the small kernels are faster.
SERVED = ((16, 256), (64, 32))

#: The same if float32 products may be rounded, so that tensor cores compute them.
SERVED_ROUNDED = (*SERVED, (64, 256))

#: Up to this many tokens and below this rank, token by token is faster than blocks.
FEW_TOKENS, HIGH_RANK = 32, 16


def short_attention(
    queries: Float[Tensor, "s n h r"],
    keys: Float[Tensor, "s m h r"],
    values: Float[Tensor, "s m h v"],
    scale: float,
    causal: bool = False,
) -> Float[Tensor, "s n h v"]:
    """Return Σ_j softmax_j(scale · q_i·k_j) v_j for every head, over all j or (causal) j ≤ i."""
    if served(queries, keys, values):
        wide = (t.float().contiguous() for t in (queries, keys, values))
        return _forward(*wide, scale, causal, _rounded(queries))[0].to(queries.dtype)
    scalar = queries.shape[-1] == 1 and values.shape[-1] == 1
    if scalar and queries.shape[2] >= 16 and not causal:
        scaled = queries if scale == 1 else queries * scale
        return rank_one_attention(*(t.squeeze(-1) for t in (scaled, keys, values))).unsqueeze(-1)
    q, k, v = (t.transpose(1, 2) for t in (queries, keys, values))
    return scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale).transpose(1, 2)


def served(queries: Tensor, keys: Tensor, values: Tensor) -> bool:
    """Whether the small kernels can take these heads."""
    on_gpu = queries.device.type == "cuda" and queries.dtype != torch.float64
    alike = queries.shape == keys.shape == values.shape
    return on_gpu and alike and _small(queries) and _has_triton()


def _small(queries: Tensor) -> bool:
    tokens, rank = queries.shape[1], queries.shape[3]
    limits = SERVED_ROUNDED if _rounded(queries) else SERVED
    return any(rank <= r and tokens <= n for r, n in limits)


def _rounded(queries: Tensor) -> bool:
    """Whether products may be rounded to TF32; 16-bit input is always summed exactly."""
    allowed = torch.get_float32_matmul_precision() != "highest"
    return allowed and queries.dtype == torch.float32


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def _passes(queries: Tensor) -> Passes:
    from headwise.attention import blocks_triton, short_triton

    few = queries.shape[1] <= FEW_TOKENS and queries.shape[3] < HIGH_RANK
    return short_triton.PASSES if few else blocks_triton.PASSES


@torch.library.custom_op(
    "headwise::short_attention",
    mutates_args=(),
    schema="(Tensor queries, Tensor keys, Tensor values, float scale, bool causal, bool rounded) "
    "-> (Tensor, Tensor)",
)
def _forward(
    queries: Tensor, keys: Tensor, values: Tensor, scale: float, causal: bool, rounded: bool
) -> tuple[Tensor, Tensor]:
    """Return the output, and the logarithm of the sum of each row's weights."""
    return _passes(queries).forward(queries, keys, values, scale, causal, rounded)


@torch.library.custom_op(
    "headwise::short_attention_backward",
    mutates_args=(),
    schema="(Tensor gradient, Tensor queries, Tensor keys, Tensor values, Tensor mixed, "
    "Tensor logsum, float scale, bool causal, bool rounded) -> (Tensor, Tensor, Tensor)",
)
def _backward(
    gradient: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mixed: Tensor,
    logsum: Tensor,
    scale: float,
    causal: bool,
    rounded: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients by queries, keys and values."""
    passes = _passes(queries)
    return passes.backward(gradient, queries, keys, values, mixed, logsum, scale, causal, rounded)


def _remember(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:3], *output)
    # The setting that allows rounding may have changed by the time of the backward pass.
    ctx.told = inputs[3:]


def _gradients(
    ctx: Any, gradient: Tensor | None, _: Tensor | None
) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None, None]:
    if gradient is None:
        return None, None, None, None, None, None
    found = _backward(gradient.contiguous(), *ctx.saved_tensors, *ctx.told)
    return *found, None, None, None


@_forward.register_fake
def _(queries: Tensor, *known: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(queries), queries.new_empty(queries.shape[:3])


@_backward.register_fake
def _(gradient: Tensor, queries: Tensor, *known: Any) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(queries), torch.empty_like(queries), torch.empty_like(queries)


_forward.register_autograd(_gradients, setup_context=_remember)
_forward.register_vmap(partial(folded, _forward))
_backward.register_vmap(partial(folded, _backward))
