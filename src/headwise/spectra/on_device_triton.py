"""Scan matrices on a GPU in one Triton kernel. Imported only if Triton is installed.

Each program takes a row. It finds the maximum, the number of large entries and the groups that
hold them, then writes the entries into the room of its matrix, in any order of rows.

The driver launches once and waits once, for one array with everything (``packed``); it launches
again only if a matrix needs more room. ``on_device`` does the same with torch operations, and the
tests compare both.
"""

# Triton is optional, and its kernels are subscripted with a grid.
# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

import struct
from typing import no_type_check

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from headwise.spectra.large_entries import BAD, GROUP, Packed, packed_size
from headwise.spectra.sources import refuse_bad_rows, refuse_not_finite

#: Columns that a program reads at once, and its warps; few, since each pair is compiled.
BLOCKS = {128: 1, 512: 2, 2048: 8}

#: Entries that a matrix has room for at first, and how many more per row.
SPARE_ROOM = 32

# Kernels are not Python functions: a wrapper that checks arguments would lose their names.
LANES = tl.constexpr(GROUP)
BAD_ROW = tl.constexpr(BAD)


@triton.jit
@no_type_check
def _columns(START, BLOCK: tl.constexpr):
    """Return columns by group and place in the group."""
    group = tl.arange(0, BLOCK // LANES)
    return START + group[:, None] * LANES + tl.arange(0, LANES)[None, :]


@triton.jit
@no_type_check
def _read(X, STRIDE, M, columns, SOFTMAX: tl.constexpr):
    """Load entries of this program's row in float64; beyond its end, values that are never kept."""
    nothing = float("-inf") if SOFTMAX else 0.0
    start = X + tl.program_id(0).to(tl.int64) * STRIDE
    return tl.load(start + columns, mask=columns < M, other=nothing).to(tl.float64)


@triton.jit
@no_type_check
def _standing_out(x, columns, M, top, limit, SOFTMAX: tl.constexpr):
    """Return which groups are hit, which entries are kept, and their values."""
    if SOFTMAX:
        hit = tl.max(x, axis=1) >= top - limit
        # Only this difference is free of rounding when log-weights are as large as 1e9.
        value = x - top
        kept = value >= -limit
    else:
        hit = tl.max(tl.abs(x), axis=1) >= limit
        value = x
        kept = tl.abs(x) >= limit
    return hit, kept & hit[:, None] & (columns < M), value


@triton.jit
@no_type_check
def _exactly(BITS):
    """Make a float64 from its bits: plain numbers reach kernels in float32."""
    return BITS.to(tl.int64).to(tl.float64, bitcast=True)


@triton.jit
@no_type_check
def _peak(X, STRIDE, M, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, SOFTMAX: tl.constexpr):
    """Return the maximum of this program's row, or NaN if the row holds one."""
    best = tl.full((BLOCK // LANES, LANES), float("-inf"), tl.float64)
    unclear = tl.zeros((BLOCK // LANES, LANES), tl.int32)
    for start in range(0, CHUNKS * BLOCK, BLOCK):
        x = _read(X, STRIDE, M, _columns(start, BLOCK), SOFTMAX)
        unclear |= (x != x).to(tl.int32)
        best = tl.maximum(best, x if SOFTMAX else tl.abs(x))
    top = tl.max(tl.max(best, axis=1), axis=0)
    if tl.max(tl.max(unclear, axis=1), axis=0) != 0:
        top = top * float("nan")
    return top


@triton.jit(do_not_specialize=["LIMIT", "STRIDE", "BATCH", "N", "M", "ROOM"])
@no_type_check
def _pack(
    X,
    OUT,
    LIMIT,
    STRIDE,
    BATCH,
    N,
    M,
    ROOM,
    BLOCK: tl.constexpr,
    CHUNKS: tl.constexpr,
    SOFTMAX: tl.constexpr,
):
    limit = _exactly(LIMIT)
    row = tl.program_id(0).to(tl.int64)
    matrix = row // N
    top = _peak(X, STRIDE, M, BLOCK, CHUNKS, SOFTMAX)
    kept_here = tl.zeros((BLOCK // LANES,), tl.int64)
    hit_here = tl.zeros((BLOCK // LANES,), tl.int64)
    places = tl.zeros((BLOCK // LANES,), tl.int64)
    for start in range(0, CHUNKS * BLOCK, BLOCK):
        columns = _columns(start, BLOCK)
        x = _read(X, STRIDE, M, columns, SOFTMAX)
        hit, kept, _ = _standing_out(x, columns, M, top, limit, SOFTMAX)
        hit_here += hit.to(tl.int64)
        kept_here += tl.sum(kept.to(tl.int64), axis=1)
        places += tl.sum(tl.where(kept, columns, 0).to(tl.int64), axis=1)
    count = tl.sum(kept_here, axis=0)
    # One comparison finds both infinity and NaN.
    groups = tl.sum(hit_here, axis=0)
    groups += tl.where(tl.abs(top) < float("inf"), 0, BAD_ROW)
    # Sums of whole numbers are the same in every order.
    tl.atomic_add(OUT + matrix, groups)
    # A single kept weight is one, so its column is all there is to store.
    place = tl.sum(places, axis=0)
    table = OUT + 2 * BATCH
    rows = BATCH.to(tl.int64) * N
    if count > (1 if SOFTMAX else 0):
        place = tl.atomic_add(OUT + BATCH + matrix, count)
        if place + count <= ROOM:
            at = table + 2 * rows + matrix * ROOM + place
            for start in range(0, CHUNKS * BLOCK, BLOCK):
                columns = _columns(start, BLOCK)
                x = _read(X, STRIDE, M, columns, SOFTMAX)
                _, kept, value = _standing_out(x, columns, M, top, limit, SOFTMAX)
                kept = tl.reshape(kept, (BLOCK,))
                number = tl.cumsum(kept.to(tl.int32), axis=0)
                each = at + (number - 1)
                tl.store(each, tl.reshape(columns, (BLOCK,)).to(tl.int64), mask=kept)
                bits = tl.reshape(value, (BLOCK,)).to(tl.int64, bitcast=True)
                tl.store(each + BATCH.to(tl.int64) * ROOM, bits, mask=kept)
                at += tl.max(number, axis=0)
    # The table of a matrix that needs too much room is not read; it must only not overflow.
    tl.store(table + row, tl.minimum(place, 0x7FFFFFFF) * 4294967296 + count)
    tl.store(table + rows + row, top.to(tl.int64, bitcast=True))


def scan_log_weights(matrices: Tensor, reach: float) -> Packed:
    """Find log-weights near the row maximum, and the maxima, as ``on_device`` does."""
    found = _find(matrices, reach, softmax=True)
    if found.is_bad:
        refuse_bad_rows(torch.from_numpy(found.top))
    return found


def scan_matrices(matrices: Tensor, smallest: float) -> Packed:
    """Find entries of at least this absolute size, as ``on_device`` does."""
    found = _find(matrices, smallest, softmax=False)
    if found.is_bad:
        refuse_not_finite("the matrix", int((~np.isfinite(found.top)).sum()))
    return found


def _find(matrices: Tensor, limit: float, *, softmax: bool) -> Packed:
    """Run the kernel with room for every kept entry of the sparse matrices."""
    flat = matrices.reshape(-1, matrices.shape[-1])
    flat = flat if flat.stride(-1) == 1 else flat.contiguous()
    shape = (matrices.shape[0], matrices.shape[1], matrices.shape[2])
    # Few rows keep several log-weights; every row of a plain matrix takes room.
    room = (1 if softmax else 2) * shape[1] + SPARE_ROOM
    found = _packed(flat, shape, (limit, room), softmax=softmax)
    if found.room_wanted > room:
        found = _packed(flat, shape, (limit, found.room_wanted), softmax=softmax)
    return found


def _packed(
    flat: Tensor, shape: tuple[int, int, int], limits: tuple[float, int], *, softmax: bool
) -> Packed:
    """Launch one program per row and return what they wrote."""
    limit, room = limits
    m = shape[2]
    block = next((b for b in BLOCKS if b >= m), max(BLOCKS))
    bits = struct.unpack("q", struct.pack("d", limit))[0]
    # Powers of two only, so that few kernels cover every width; the rest is masked.
    chunks = triton.next_power_of_2(triton.cdiv(m, block))
    choice = {"BLOCK": block, "CHUNKS": chunks, "SOFTMAX": softmax}
    with torch.cuda.device_of(flat):
        out = torch.zeros(packed_size(shape, room), dtype=torch.int64, device=flat.device)
        _pack[(len(flat),)](
            flat, out, bits, flat.stride(0), *shape, room, **choice, num_warps=BLOCKS[block]
        )
        return Packed(_to_host(out), shape, room, softmax)


def _to_host(tensor: Tensor) -> np.ndarray:
    """Copy to numpy through pinned memory."""
    here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
    return here.copy_(tensor).numpy()
