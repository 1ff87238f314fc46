"""Attention by thousands of rank-one heads: softmax(q_i k_j) v_j without the n×n matrices.

With scalar queries, keys and values per head, everything is a moment of the weights
w_ij = exp(q_i (k_j − k*_i)), k*_i the key with the largest logit, Z_i = Σ_j w_ij:

    out_i  = Σ_j w_ij v_j / Z_i
    dq_i   = g_i · slope_i,   slope_i = Σ_j w_ij (k_j − k*_i) (v_j − out_i) / Z_i
    dv_j   = Σ_i w_ij g_i / Z_i
    dk_j   = Σ_i w_ij g_i q_i (v_j − out_i) / Z_i

The forward pass streams over keys and keeps Z and slope; the backward pass recomputes the
weights and streams over queries. k*_i costs no pass: it is the highest key or the lowest, as
the sign of q_i says. The difference is taken between keys, not between logits, so that the
largest weight is exactly one however large the logits are. Heads lie along the last axis.

General kernels take an n×n problem per head and pay its overhead for each: at 16 tokens and
4,096 heads of a batch of 256, a million times. Here float32 on a CPU runs as machine code
(``native``); everything else, and machines without a compiler, as blocks of torch operations.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise import native
from headwise.shapes import Float

SOURCE = Path(__file__).with_suffix(".c")

#: torch runs elementwise operations of at most this many elements (its grain size) on the calling
#: thread, so that our threads, one per core, do not start more threads.
BLOCK_ELEMENTS = 32768


def rank_one_attention(
    queries: Float[Tensor, "b n h"],
    keys: Float[Tensor, "b m h"],
    values: Float[Tensor, "b m h"],
) -> Float[Tensor, "b n h"]:
    """Return Σ_j softmax_j(q_i k_j) v_j for every head, heads last; q includes the scale.

    float16 and bfloat16 are summed in float32.
    """
    wide = torch.promote_types(queries.dtype, torch.float32)
    mixed, _, _ = _forward(*(t.to(wide).contiguous() for t in (queries, keys, values)))
    return mixed.to(queries.dtype)


@torch.library.custom_op(
    "headwise::rank_one_attention",
    mutates_args=(),
    schema="(Tensor queries, Tensor keys, Tensor values) -> (Tensor, Tensor, Tensor)",
)
def _forward(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the output, the sum Z of each row's weights, and the slope of the output by query."""
    mixed, total, slope = (torch.empty_like(queries) for _ in range(3))
    tensors = (queries, keys, values, mixed, total, slope)
    library = _native(queries)
    if library is not None:
        _call(library.rank_one_forward, tensors, _sizes(queries, keys))
    else:
        _in_blocks(_stream_over_keys, tensors, longest=queries.shape[1])
    return mixed, total, slope


@torch.library.custom_op(
    "headwise::rank_one_attention_backward",
    mutates_args=(),
    schema="(Tensor gradient, Tensor queries, Tensor keys, Tensor values, Tensor mixed, "
    "Tensor total) -> (Tensor, Tensor)",
)
def _backward(
    gradient: Tensor,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mixed: Tensor,
    total: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the gradients by keys and by values."""
    found = (torch.empty_like(keys), torch.empty_like(keys))
    tensors = (gradient, queries, keys, values, mixed, total, *found)
    library = _native(queries)
    if library is not None:
        _call(library.rank_one_backward, tensors, _sizes(queries, keys))
    else:
        _in_blocks(_stream_over_queries, tensors, longest=keys.shape[1])
    return found


def _native(queries: Tensor) -> ctypes.CDLL | None:
    float32_on_cpu = queries.device.type == "cpu" and queries.dtype == torch.float32
    return native.library(SOURCE) if float32_on_cpu else None


def _call(
    function: Callable[..., int], tensors: tuple[Tensor, ...], sizes: tuple[int, ...]
) -> None:
    """Run compiled code on contiguous float32 tensors, sequences spread over threads.

    ctypes releases the interpreter lock, so plain threads use every core. They are started for
    each call: a pool would not survive a fork.

    Raises:
        MemoryError: If the compiled code could not allocate its buffers.
    """
    sequences = tensors[0].shape[0]
    threads = max(1, min(torch.get_num_threads(), sequences))
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in tensors]
    numbers = [ctypes.c_long(size) for size in sizes]

    def share(thread: int) -> int:
        first, last = (sequences * (thread + step) // threads for step in (0, 1))
        return function(*pointers, *numbers, ctypes.c_long(first), ctypes.c_long(last))

    with ThreadPoolExecutor(threads) as pool:
        if any(pool.map(share, range(threads))):
            raise MemoryError("the rank-one kernel found no memory for its keys and values")


def _sizes(queries: Tensor, keys: Tensor) -> tuple[int, int, int]:
    return queries.shape[1], keys.shape[1], queries.shape[2]


def _best_key(q: Tensor, k: Tensor) -> Tensor:
    return torch.where(q > 0, k.amax(-2, True), k.amin(-2, True))


def _stream_over_keys(
    q: Tensor, k: Tensor, v: Tensor, mixed: Tensor, total: Tensor, slope: Tensor
) -> None:
    """Compute one block of the forward pass; the last three tensors are filled."""
    best, behind, weight = _best_key(q, k), torch.empty_like(q), torch.empty_like(q)
    sum_w, sum_v, sum_k, sum_kv = (torch.zeros_like(q) for _ in range(4))
    for k_j, v_j in _one_by_one(k, v):
        torch.sub(k_j, best, out=behind)
        torch.mul(q, behind, out=weight).exp_()
        sum_w.add_(weight)
        sum_v.addcmul_(weight, v_j)
        sum_k.add_(weight.mul_(behind))
        sum_kv.addcmul_(weight, v_j)
    total.copy_(sum_w)
    torch.div(sum_v, sum_w, out=mixed)
    torch.div(sum_kv.addcmul_(mixed, sum_k, value=-1), sum_w, out=slope)


def _stream_over_queries(*block: Tensor) -> None:
    """Compute one block of the backward pass; the last two tensors are filled."""
    g, q, k, v, mixed, total, by_keys, by_values = block
    weight = torch.empty_like(k)
    sum_g, sum_gq, sum_gqo = (torch.zeros_like(k) for _ in range(3))
    g_z = g / total
    g_q = g_z * q
    rows = _one_by_one(_best_key(q, k), q, g_z, g_q, g_q * mixed)
    for best_i, q_i, g_i, gq_i, gqo_i in rows:
        torch.sub(k, best_i, out=weight).mul_(q_i).exp_()
        sum_g.addcmul_(weight, g_i)
        sum_gq.addcmul_(weight, gq_i)
        sum_gqo.addcmul_(weight, gqo_i)
    by_values.copy_(sum_g)
    torch.sub(sum_gq.mul_(v), sum_gqo, out=by_keys)


def _one_by_one(*tensors: Tensor) -> zip[tuple[Tensor, ...]]:
    """Yield the tokens of each tensor in step, each as a row that broadcasts."""
    return zip(*(t.split(1, dim=-2) for t in tensors), strict=True)


def _in_blocks(work: Callable[..., None], tensors: tuple[Tensor, ...], *, longest: int) -> None:
    """Run ``work`` on blocks of some sequences and some heads, one thread per core.

    Threads are started for each call: a pool would not survive a fork. A GPU takes everything at
    once.
    """
    if tensors[0].device.type != "cpu":
        work(*tensors)
        return
    blocks = _blocks(tensors[0].shape[0], tensors[0].shape[2], longest)
    threads = max(1, min(torch.get_num_threads(), len(blocks)))
    inference = torch.is_inference_mode_enabled()

    def share(first: int) -> None:
        with torch.inference_mode(inference), torch.no_grad():
            for sequences, heads in blocks[first::threads]:
                work(*(t[sequences, :, heads] for t in tensors))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(share, range(threads)))


def _blocks(sequences: int, heads: int, longest: int) -> list[tuple[slice, slice]]:
    """Yield blocks of at most BLOCK_ELEMENTS: all heads of some sequences, or some of one."""
    at_once = max(1, BLOCK_ELEMENTS // longest)
    wide = min(heads, at_once)
    tall = max(1, at_once // wide)
    return [
        (slice(row, row + tall), slice(column, column + wide))
        for row in range(0, sequences, tall)
        for column in range(0, heads, wide)
    ]


def _remember(ctx: torch.autograd.function.FunctionCtx, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)  # avoids two tensors of zeros as large as the output
    ctx.save_for_backward(*inputs, *output)


def _gradients(
    ctx: torch.autograd.function.FunctionCtx, gradient: Tensor | None, *_: Tensor | None
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if gradient is None:
        return None, None, None
    *known, slope = ctx.saved_tensors  # pyright: ignore[reportAttributeAccessIssue]
    gradient = gradient.contiguous()
    return gradient * slope, *_backward(gradient, *known)


@_forward.register_fake
def _(queries: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(queries), torch.empty_like(queries), torch.empty_like(queries)


@_backward.register_fake
def _(gradient: Tensor, queries: Tensor, keys: Tensor, *known: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(keys), torch.empty_like(keys)


_forward.register_autograd(_gradients, setup_context=_remember)


def folded(operation: Callable[..., Any], info: Any, in_dims: tuple, *given: Any) -> Any:
    """Fold the members of a vectorised call into the sequences."""
    members = info.batch_size
    whole = [
        _with_members(value, axis, members) if isinstance(value, Tensor) else value
        for value, axis in zip(given, in_dims, strict=True)
    ]
    found = operation(*whole)
    return tuple(t.unflatten(0, (members, -1)) for t in found), (0,) * len(found)


def _with_members(tensor: Tensor, axis: int | None, members: int) -> Tensor:
    first = tensor.expand(members, *tensor.shape) if axis is None else tensor.movedim(axis, 0)
    return first.flatten(0, 1).contiguous()


_forward.register_vmap(partial(folded, _forward))
_backward.register_vmap(partial(folded, _backward))
