"""Triton kernels of short attention for CUDA. Imported only if they run.

A program holds a tile of (rows, heads, rank) in registers and goes through the other tokens one
by one. A score is a sum over the rank inside the tile, so no n×n matrix exists. Scores are in
units of log 2.

    forward         rows are queries: the largest score first, then weights and their sums
    by_queries      rows are queries: gradient by q; stores Σ g·o of each row for the next pass
    by_keys         rows are keys: gradients by k and v

The backward passes recompute weights from the logarithm of each row's sum. Under a causal mask
a tile goes only through tokens that one of its rows may attend to, or be attended by. A rank that
is not a power of two is padded to one.
"""

# Triton is optional, and its kernels are subscripted with a grid.
# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

from typing import Any, no_type_check

import triton
import triton.language as tl

from headwise.attention.kernel_passes import Passes

#: Numbers in a tile, eight for each of 128 threads.
TILE = 1024


# Kernels are not Python functions: a wrapper that checks arguments would lose their names.
@triton.jit
@no_type_check
def _place(
    HEADS,
    N: tl.constexpr,
    R: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
    ABREAST: tl.constexpr,
):
    """Return where this program works: sequence, first row, rows, heads, lanes and valid lanes."""
    row_blocks: tl.constexpr = (N + ROWS - 1) // ROWS
    head_blocks = tl.cdiv(HEADS, ABREAST)
    program = tl.program_id(0)
    sequence = (program // (row_blocks * head_blocks)).to(tl.int64)
    first = (program % row_blocks) * ROWS
    rows = first + tl.arange(0, ROWS)
    heads = ((program // row_blocks) % head_blocks) * ABREAST + tl.arange(0, ABREAST)
    lane = tl.arange(0, LANES)
    lanes = heads[:, None] * R + lane[None, :]
    there = (heads < HEADS)[:, None] & (lane < R)[None, :]
    return sequence, first, rows, heads, lanes, there


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
    N: tl.constexpr,
    R: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
    ABREAST: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    sequence, first, rows, heads, lanes, there = _place(HEADS, N, R, LANES, ROWS, ABREAST)
    base = sequence * (N * HEADS * R)
    tile = rows[:, None, None] * (HEADS * R) + lanes[None]
    in_tile = (rows < N)[:, None, None] & there[None]
    q = tl.load(Q + base + tile, mask=in_tile, other=0.0) * scale
    best = tl.full((ROWS, ABREAST), float("-inf"), tl.float32)
    end = tl.minimum(first + ROWS, N) if CAUSAL else N
    for j in range(end):
        k = tl.load(K + base + j * (HEADS * R) + lanes, mask=there, other=0.0)
        score = tl.sum(q * k[None], axis=2)
        if CAUSAL:
            score = tl.where((rows >= j)[:, None], score, float("-inf"))
        best = tl.maximum(best, score)
    total = tl.zeros((ROWS, ABREAST), tl.float32)
    mixed = tl.zeros((ROWS, ABREAST, LANES), tl.float32)
    for j in range(end):
        k = tl.load(K + base + j * (HEADS * R) + lanes, mask=there, other=0.0)
        v = tl.load(V + base + j * (HEADS * R) + lanes, mask=there, other=0.0)
        weight = tl.exp2(tl.sum(q * k[None], axis=2) - best)
        if CAUSAL:
            weight = tl.where((rows >= j)[:, None], weight, 0.0)
        total += weight
        mixed += weight[:, :, None] * v[None]
    tl.store(OUT + base + tile, mixed / total[:, :, None], mask=in_tile)
    row = rows[:, None] * HEADS + heads[None, :]
    in_row = (rows < N)[:, None] & (heads < HEADS)[None, :]
    tl.store(LOGSUM + sequence * (N * HEADS) + row, best + tl.log2(total), mask=in_row)


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
    N: tl.constexpr,
    R: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
    ABREAST: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    sequence, first, rows, heads, lanes, there = _place(HEADS, N, R, LANES, ROWS, ABREAST)
    base = sequence * (N * HEADS * R)
    tile = rows[:, None, None] * (HEADS * R) + lanes[None]
    in_tile = (rows < N)[:, None, None] & there[None]
    row = sequence * (N * HEADS) + rows[:, None] * HEADS + heads[None, :]
    in_row = (rows < N)[:, None] & (heads < HEADS)[None, :]
    q = tl.load(Q + base + tile, mask=in_tile, other=0.0) * scale
    g = tl.load(G + base + tile, mask=in_tile, other=0.0)
    out = tl.load(OUT + base + tile, mask=in_tile, other=0.0)
    logsum = tl.load(LOGSUM + row, mask=in_row, other=0.0)
    delta = tl.sum(g * out, axis=2)
    tl.store(DELTA + row, delta, mask=in_row)
    dq = tl.zeros((ROWS, ABREAST, LANES), tl.float32)
    end = tl.minimum(first + ROWS, N) if CAUSAL else N
    for j in range(end):
        k = tl.load(K + base + j * (HEADS * R) + lanes, mask=there, other=0.0)
        v = tl.load(V + base + j * (HEADS * R) + lanes, mask=there, other=0.0)
        weight = tl.exp2(tl.sum(q * k[None], axis=2) - logsum)
        if CAUSAL:
            weight = tl.where((rows >= j)[:, None], weight, 0.0)
        slope = weight * (tl.sum(g * v[None], axis=2) - delta)
        dq += slope[:, :, None] * k[None]
    tl.store(DQ + base + tile, dq * unscale, mask=in_tile)


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
    N: tl.constexpr,
    R: tl.constexpr,
    LANES: tl.constexpr,
    ROWS: tl.constexpr,
    ABREAST: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    sequence, first, rows, heads, lanes, there = _place(HEADS, N, R, LANES, ROWS, ABREAST)
    base = sequence * (N * HEADS * R)
    tile = rows[:, None, None] * (HEADS * R) + lanes[None]
    in_tile = (rows < N)[:, None, None] & there[None]
    first_row = sequence * (N * HEADS) + heads
    k = tl.load(K + base + tile, mask=in_tile, other=0.0) * scale
    v = tl.load(V + base + tile, mask=in_tile, other=0.0)
    dk = tl.zeros((ROWS, ABREAST, LANES), tl.float32)
    dv = tl.zeros((ROWS, ABREAST, LANES), tl.float32)
    begin = first if CAUSAL else 0
    for i in range(begin, N):
        q = tl.load(Q + base + i * (HEADS * R) + lanes, mask=there, other=0.0)
        g = tl.load(G + base + i * (HEADS * R) + lanes, mask=there, other=0.0)
        logsum = tl.load(LOGSUM + first_row + i * HEADS, mask=heads < HEADS, other=0.0)
        delta = tl.load(DELTA + first_row + i * HEADS, mask=heads < HEADS, other=0.0)
        weight = tl.exp2(tl.sum(k * q[None], axis=2) - logsum[None])
        if CAUSAL:
            weight = tl.where((rows <= i)[:, None], weight, 0.0)
        slope = weight * (tl.sum(v * g[None], axis=2) - delta[None])
        dv += weight[:, :, None] * g[None]
        dk += slope[:, :, None] * q[None]
    tl.store(DK + base + tile, dk * unscale, mask=in_tile)
    tl.store(DV + base + tile, dv, mask=in_tile)


def _sizes(tokens: int, heads: int, rank: int, rounded: bool) -> dict[str, Any]:
    """Return the constants of a kernel: the sizes, and a tile of rows, heads and the whole rank.

    A new value of any but the number of heads compiles it again. Sums stay in float32 even if
    rounding is allowed: none is a product of matrices.

    Returns:
        Keyword arguments of the kernel.
    """
    rows, lanes = min(triton.next_power_of_2(tokens), 16), triton.next_power_of_2(rank)
    abreast = max(1, TILE // (rows * lanes))
    return {
        "HEADS": heads,
        "N": tokens,
        "R": rank,
        "LANES": lanes,
        "ROWS": rows,
        "ABREAST": min(abreast, triton.next_power_of_2(heads)),
    }


def _programs(given: dict[str, Any]) -> int:
    row_blocks = triton.cdiv(given["N"], given["ROWS"])
    return row_blocks * triton.cdiv(given["HEADS"], given["ABREAST"])


PASSES = Passes(_forward, _by_queries, _by_keys, _sizes, _programs)
