"""Triton kernels for attention of small heads over longer sequences, block against block.

They make the same three passes as ``short_triton``. A program holds a block of rows of one head
and goes through the others block by block. Scores and sums are products of small matrices: on
tensor cores if rounded to TF32, in plain float32 otherwise.
"""

# Triton is optional, and its kernels are subscripted with a grid.
# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

from typing import Any, no_type_check

import triton
import triton.language as tl

from headwise.attention.kernel_passes import Passes

#: The least number of lanes in a product on tensor cores.
FEWEST_LANES = 16


@triton.jit
@no_type_check
def _place(HEADS, N, R: tl.constexpr, LANES: tl.constexpr, BLOCK: tl.constexpr):
    """Return where this program works: offset of its sequence and head, first row, rows, lanes."""
    row_blocks = tl.cdiv(N, BLOCK)
    program = tl.program_id(0)
    # Late rows first: under a causal mask they have the most work.
    first = (row_blocks - 1 - program % row_blocks) * BLOCK
    head = (program // row_blocks) % HEADS
    sequence = (program // (row_blocks * HEADS)).to(tl.int64)
    base = sequence * N * HEADS * R + head * R
    return base, sequence * N * HEADS + head, first, tl.arange(0, LANES)


@triton.jit
@no_type_check
def _tile(START, base, rows, lanes, stride, N, R: tl.constexpr):
    """Load rows of one head as (rows, lanes); missing places are zero."""
    there = (rows < N)[:, None] & (lanes < R)[None, :]
    return tl.load(START + base + rows[:, None] * stride + lanes[None, :], mask=there, other=0.0)


@triton.jit
@no_type_check
def _turned(START, base, rows, lanes, stride, N, R: tl.constexpr):
    """Load the same as (lanes, rows)."""
    there = (rows < N)[None, :] & (lanes < R)[:, None]
    return tl.load(START + base + rows[None, :] * stride + lanes[:, None], mask=there, other=0.0)


@triton.jit
@no_type_check
def _keep(START, base, rows, lanes, stride, N, R: tl.constexpr, tile):
    there = (rows < N)[:, None] & (lanes < R)[None, :]
    tl.store(START + base + rows[:, None] * stride + lanes[None, :], tile, mask=there)


@triton.jit
@no_type_check
def _forward(
    Q,
    K,
    V,
    OUT,
    LOGSUM,
    scale,
    HEADS,
    N,
    R: tl.constexpr,
    LANES: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRODUCTS: tl.constexpr,
):
    base, base_row, first, lanes = _place(HEADS, N, R, LANES, BLOCK)
    rows = first + tl.arange(0, BLOCK)
    stride = HEADS * R
    q = _tile(Q, base, rows, lanes, stride, N, R) * scale
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    mixed = tl.zeros((BLOCK, LANES), tl.float32)
    end = tl.minimum(first + BLOCK, N) if CAUSAL else N
    for start in range(0, end, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        k = _turned(K, base, columns, lanes, stride, N, R)
        v = _tile(V, base, columns, lanes, stride, N, R)
        score = tl.dot(q, k, input_precision=PRODUCTS)
        seen = (columns < N)[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] >= columns[None, :])
        score = tl.where(seen, score, float("-inf"))
        # Column 0 is seen by every row, so the first block makes this finite.
        better = tl.maximum(best, tl.max(score, axis=1))
        weight = tl.exp2(score - better[:, None])
        fade = tl.exp2(best - better)
        total = total * fade + tl.sum(weight, axis=1)
        mixed = mixed * fade[:, None] + tl.dot(weight, v, input_precision=PRODUCTS)
        best = better
    _keep(OUT, base, rows, lanes, stride, N, R, mixed / total[:, None])
    tl.store(LOGSUM + base_row + rows * HEADS, best + tl.log2(total), mask=rows < N)


@triton.jit
@no_type_check
def _by_queries(
    Q,
    K,
    V,
    OUT,
    LOGSUM,
    G,
    DQ,
    DELTA,
    scale,
    unscale,
    HEADS,
    N,
    R: tl.constexpr,
    LANES: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRODUCTS: tl.constexpr,
):
    base, base_row, first, lanes = _place(HEADS, N, R, LANES, BLOCK)
    rows = first + tl.arange(0, BLOCK)
    stride = HEADS * R
    q = _tile(Q, base, rows, lanes, stride, N, R) * scale
    g = _tile(G, base, rows, lanes, stride, N, R)
    out = _tile(OUT, base, rows, lanes, stride, N, R)
    logsum = tl.load(LOGSUM + base_row + rows * HEADS, mask=rows < N, other=0.0)
    delta = tl.sum(g * out, axis=1)
    tl.store(DELTA + base_row + rows * HEADS, delta, mask=rows < N)
    dq = tl.zeros((BLOCK, LANES), tl.float32)
    end = tl.minimum(first + BLOCK, N) if CAUSAL else N
    for start in range(0, end, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        k = _tile(K, base, columns, lanes, stride, N, R)
        v = _turned(V, base, columns, lanes, stride, N, R)
        score = tl.dot(q, tl.trans(k), input_precision=PRODUCTS)
        seen = (columns < N)[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] >= columns[None, :])
        weight = tl.where(seen, tl.exp2(score - logsum[:, None]), 0.0)
        slope = weight * (tl.dot(g, v, input_precision=PRODUCTS) - delta[:, None])
        dq += tl.dot(slope, k, input_precision=PRODUCTS)
    _keep(DQ, base, rows, lanes, stride, N, R, dq * unscale)


@triton.jit
@no_type_check
def _by_keys(
    Q,
    K,
    V,
    LOGSUM,
    G,
    DELTA,
    DK,
    DV,
    scale,
    unscale,
    HEADS,
    N,
    R: tl.constexpr,
    LANES: tl.constexpr,
    BLOCK: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRODUCTS: tl.constexpr,
):
    base, base_row, first, lanes = _place(HEADS, N, R, LANES, BLOCK)
    rows = first + tl.arange(0, BLOCK)
    stride = HEADS * R
    k = _tile(K, base, rows, lanes, stride, N, R) * scale
    v = _tile(V, base, rows, lanes, stride, N, R)
    dk = tl.zeros((BLOCK, LANES), tl.float32)
    dv = tl.zeros((BLOCK, LANES), tl.float32)
    begin = first if CAUSAL else 0
    for start in range(begin, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        q = _tile(Q, base, columns, lanes, stride, N, R)
        g = _tile(G, base, columns, lanes, stride, N, R)
        logsum = tl.load(LOGSUM + base_row + columns * HEADS, mask=columns < N, other=0.0)
        delta = tl.load(DELTA + base_row + columns * HEADS, mask=columns < N, other=0.0)
        score = tl.dot(k, tl.trans(q), input_precision=PRODUCTS)
        seen = (columns < N)[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] <= columns[None, :])
        # Masked before the power: a masked score may far exceed its row's sum.
        weight = tl.exp2(tl.where(seen, score - logsum[None, :], float("-inf")))
        slope = weight * (tl.dot(v, tl.trans(g), input_precision=PRODUCTS) - delta[None, :])
        dv += tl.dot(weight, g, input_precision=PRODUCTS)
        dk += tl.dot(slope, q, input_precision=PRODUCTS)
    _keep(DK, base, rows, lanes, stride, N, R, dk * unscale)
    _keep(DV, base, rows, lanes, stride, N, R, dv)


def _sizes(tokens: int, heads: int, rank: int, rounded: bool) -> dict[str, Any]:
    """Return the constants of a kernel; a new rank, block or kind of product compiles it again.

    The block grows with the length in two steps; between them the length changes nothing.

    Returns:
        Keyword arguments of the kernel.
    """
    block = 16 if tokens <= 16 else 32 if tokens <= (96 if rounded else 32) else 64
    return {
        "HEADS": heads,
        "N": tokens,
        "R": rank,
        "LANES": max(FEWEST_LANES, triton.next_power_of_2(rank)),
        "BLOCK": block,
        "PRODUCTS": "tf32" if rounded else "ieee",
        "num_warps": block // 16,
    }


def _programs(given: dict[str, Any]) -> int:
    return given["HEADS"] * triton.cdiv(given["N"], given["BLOCK"])


PASSES = Passes(_forward, _by_queries, _by_keys, _sizes, _programs)
