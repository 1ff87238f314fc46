"""Triton kernels for long sequences: A·X, Aᵀ·Y and the arg-max, without the matrix.

A program holds a block of rows (of keys in the transposed product) and goes through the others
block by block. Inputs are (matrices, tokens, lanes), contiguous. Scores come in units of log 2.
"""

# Triton is optional, and its kernels are subscripted with a grid.
# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class Sizes:
    """How a kernel is cut: rows of a program, columns of a step, warps and stages."""

    rows: int = 128
    columns: int = 128
    warps: int = 8
    stages: int = 3


#: Sizes for which Triton compiles no kernels of their own. A kernel for exactly one row has no
#: loop, and ptxas 12.8 (in Triton 3.6) makes its products on Hopper read shared memory at an
#: address that nothing has set: by chance an illegal access.
AS_THEY_COME = ["N", "M", "OFFSET"]

#: The arg-max is one product and one comparison for each score.
ARGMAX = Sizes(128, 128, 4, 3)
#: Products of 16 bits, and of 32, whose tiles take twice the room.
SHORT, LONG = Sizes(128, 64, 4, 3), Sizes(64, 64, 4, 2)


@triton.jit
@no_type_check
def _tile(START, base, rows, lanes, COUNT, WIDTH: tl.constexpr):
    """Load rows as (rows, lanes); missing places are zero."""
    there = (rows < COUNT)[:, None] & (lanes < WIDTH)[None, :]
    places = rows.to(tl.int64)[:, None] * WIDTH + lanes[None, :]
    return tl.load(START + base + places, mask=there, other=0.0)


@triton.jit
@no_type_check
def _scores(q, k, rows, columns, M, SCALE, OFFSET, CAUSAL: tl.constexpr, IEEE: tl.constexpr):
    """Return scaled scores (rows, columns); minus infinity where a row may not attend."""
    s = tl.dot(q, tl.trans(k), input_precision="ieee" if IEEE else "tf32x3") * SCALE
    allowed = (columns < M)[None, :]
    if CAUSAL:
        allowed = allowed & (columns[None, :] <= rows[:, None] + OFFSET)
    return tl.where(allowed, s, float("-inf"))


@triton.jit(do_not_specialize=AS_THEY_COME)
@no_type_check
def _forward(
    Q, K, X, OUT, LOGSUM, SCALE, N, M, OFFSET,
    D: tl.constexpr, LANES: tl.constexpr, W: tl.constexpr, WIDE: tl.constexpr,
    CAUSAL: tl.constexpr, IEEE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Attention with X as values, and the log₂ of each row's sum."""
    matrix = tl.program_id(1).to(tl.int64)
    rows = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS + tl.arange(0, ROWS)
    lanes, wide = tl.arange(0, LANES), tl.arange(0, WIDE)
    q = _tile(Q, matrix * N * D, rows, lanes, N, D)
    best = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    out = tl.zeros((ROWS, WIDE), tl.float32)
    end = tl.minimum(M, tl.max(rows) + 1 + OFFSET) if CAUSAL else M
    for first in range(0, end, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        k = _tile(K, matrix * M * D, columns, lanes, M, D)
        s = _scores(q, k, rows, columns, M, SCALE, OFFSET, CAUSAL, IEEE)
        higher = tl.maximum(best, tl.max(s, 1))
        p = tl.exp2(s - higher[:, None])
        kept = tl.exp2(best - higher)
        x = _tile(X, matrix * M * W, columns, wide, M, W)
        total = total * kept + tl.sum(p, 1)
        product = tl.dot(p.to(x.dtype), x, input_precision="ieee" if IEEE else "tf32x3")
        out = out * kept[:, None] + product
        best = higher
    out = out / total[:, None]
    there = (rows < N)[:, None] & (wide < W)[None, :]
    places = rows.to(tl.int64)[:, None] * W + wide[None, :]
    tl.store(OUT + matrix * N * W + places, out.to(OUT.dtype.element_ty), mask=there)
    tl.store(LOGSUM + matrix * N + rows, best + tl.log2(total), mask=rows < N)


@triton.jit(do_not_specialize=AS_THEY_COME)
@no_type_check
def _transposed(
    Q, K, Y, OUT, LOGSUM, SCALE, N, M, OFFSET,
    D: tl.constexpr, LANES: tl.constexpr, W: tl.constexpr, WIDE: tl.constexpr,
    CAUSAL: tl.constexpr, IEEE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Aᵀ·Y for a block of keys: the gradient of attention with respect to its values."""
    matrix = tl.program_id(1).to(tl.int64)
    keys = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lanes, wide = tl.arange(0, LANES), tl.arange(0, WIDE)
    k = _tile(K, matrix * M * D, keys, lanes, M, D)
    out = tl.zeros((ROWS, WIDE), tl.float32)
    start = 0
    if CAUSAL:
        start = tl.maximum(0, tl.program_id(0) * ROWS - OFFSET) // COLUMNS * COLUMNS
    for first in range(start, N, COLUMNS):
        rows = first + tl.arange(0, COLUMNS)
        q = _tile(Q, matrix * N * D, rows, lanes, N, D)
        s = tl.dot(k, tl.trans(q), input_precision="ieee" if IEEE else "tf32x3") * SCALE
        logsum = tl.load(LOGSUM + matrix * N + rows, mask=rows < N, other=float("inf"))
        p = tl.exp2(s - logsum[None, :])
        if CAUSAL:
            p = tl.where(keys[:, None] <= rows[None, :] + OFFSET, p, 0.0)
        y = _tile(Y, matrix * N * W, rows, wide, N, W)
        out += tl.dot(p.to(y.dtype), y, input_precision="ieee" if IEEE else "tf32x3")
    there = (keys < M)[:, None] & (wide < W)[None, :]
    places = keys.to(tl.int64)[:, None] * W + wide[None, :]
    tl.store(OUT + matrix * M * W + places, out.to(OUT.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=AS_THEY_COME)
@no_type_check
def _best_block(
    Q, K, BLOCK, N, M, OFFSET,
    D: tl.constexpr, LANES: tl.constexpr,
    CAUSAL: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Find the block of keys that holds each query's largest score, the first of equals."""
    matrix = tl.program_id(1).to(tl.int64)
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    rows = program * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, LANES)
    q = _tile(Q, matrix * N * D, rows, lanes, N, D)
    best = tl.full((ROWS,), float("-inf"), tl.float32)
    block = tl.zeros((ROWS,), tl.int32)
    # Whole blocks that every row may attend to need no comparison with the mask.
    end = tl.minimum(M, (program + 1) * ROWS + OFFSET) if CAUSAL else M
    free = (tl.minimum(M, program * ROWS + 1 + OFFSET) if CAUSAL else M) // COLUMNS * COLUMNS
    for first in range(0, free, COLUMNS):
        k = _tile(K, matrix * M * D, first + tl.arange(0, COLUMNS), lanes, M, D)
        top = tl.max(tl.dot(q, tl.trans(k), input_precision="ieee"), 1)
        block = tl.where(top > best, first // COLUMNS, block)
        best = tl.maximum(best, top)
    for first in range(free, end, COLUMNS):
        columns = first + tl.arange(0, COLUMNS)
        k = _tile(K, matrix * M * D, columns, lanes, M, D)
        top = tl.max(_scores(q, k, rows, columns, M, 1.0, OFFSET, CAUSAL, True), 1)
        block = tl.where(top > best, first // COLUMNS, block)
        best = tl.maximum(best, top)
    tl.store(BLOCK + matrix * N + rows, block, mask=rows < N)


@triton.jit(do_not_specialize=AS_THEY_COME)
@no_type_check
def _best_in_block(
    Q, K, BLOCK, WINNER, N, M, OFFSET,
    D: tl.constexpr, LANES: tl.constexpr,
    CAUSAL: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Find the best key within the block that was found for each query."""
    matrix = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, LANES)
    q = _tile(Q, matrix * N * D, rows, lanes, N, D).to(tl.float32)
    first = tl.load(BLOCK + matrix * N + rows, mask=rows < N, other=0) * COLUMNS
    best = tl.full((ROWS,), float("-inf"), tl.float32)
    winner = first
    for step in range(COLUMNS):
        column = first + step
        k = _tile(K, matrix * M * D, column, lanes, M, D).to(tl.float32)
        allowed = column < M
        if CAUSAL:
            allowed = allowed & (column <= rows + OFFSET)
        s = tl.where(allowed, tl.sum(q * k, 1), float("-inf"))
        winner = tl.where(s > best, column, winner)
        best = tl.maximum(best, s)
    tl.store(WINNER + matrix * N + rows, winner.to(tl.int64), mask=rows < N)


def argmax(
    queries: Tensor, keys: Tensor, *, causal: bool, offset: int = 0, sizes: Sizes = ARGMAX
) -> Tensor:
    """Return the key of each query's largest score, (matrices, n).

    Scores are sums of products in float32. The first of equal keys wins.
    """
    (matrices, n, d), m = queries.shape, keys.shape[1]
    block = torch.empty(matrices, n, dtype=torch.int32, device=queries.device)
    winner = torch.empty(matrices, n, dtype=torch.int64, device=queries.device)
    given = {"D": d, "LANES": _lanes(d), "CAUSAL": causal, "COLUMNS": sizes.columns}
    launch = {"num_warps": sizes.warps, "num_stages": sizes.stages}
    _best_block[(triton.cdiv(n, sizes.rows), matrices)](
        queries, keys, block, n, m, offset, **given, ROWS=sizes.rows, **launch
    )
    _best_in_block[(triton.cdiv(n, 32), matrices)](
        queries, keys, block, winner, n, m, offset, **given, ROWS=32, num_warps=4
    )
    return winner


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, *, scale: float, causal: bool, offset: int = 0
) -> tuple[Tensor, Tensor]:
    """Return A·X of (matrices, m, w) in the dtype of X, and the log₂ of each row's sum."""
    (matrices, n, _), width = queries.shape, values.shape[-1]
    out = torch.empty(matrices, n, width, dtype=values.dtype, device=queries.device)
    logsum = torch.empty(matrices, n, dtype=torch.float32, device=queries.device)
    _launch(_forward, queries, keys, values, out, logsum, scale, causal, offset, n)
    return out, logsum


def attend_transposed(
    queries: Tensor,
    keys: Tensor,
    block: Tensor,
    logsum: Tensor,
    *,
    scale: float,
    causal: bool,
    offset: int = 0,
) -> Tensor:
    """Return Aᵀ·Y of (matrices, n, w), given the log₂ of each row's sum."""
    (matrices, m, _), width = keys.shape, block.shape[-1]
    out = torch.empty(matrices, m, width, dtype=block.dtype, device=keys.device)
    _launch(_transposed, queries, keys, block, out, logsum, scale, causal, offset, m)
    return out


def _launch(kernel, q, k, x, out, logsum, scale, causal, offset, rows) -> None:
    sizes = SHORT if q.dtype in (torch.bfloat16, torch.float16) else LONG
    kernel[(triton.cdiv(rows, sizes.rows), len(q))](
        q, k, x, out, logsum, scale * LOG2_E, q.shape[1], k.shape[1], offset,
        D=q.shape[-1], LANES=_lanes(q.shape[-1]), W=x.shape[-1], WIDE=_lanes(x.shape[-1]),
        CAUSAL=causal, IEEE=False, ROWS=sizes.rows, COLUMNS=sizes.columns,
        num_warps=sizes.warps, num_stages=sizes.stages,
    )  # fmt: skip


def _lanes(size: int) -> int:
    return max(16, triton.next_power_of_2(size))
