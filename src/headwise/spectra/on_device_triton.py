"""The pass over matrices on a GPU in two kernels of Triton. Imported only where they run.

    survey      each row: its largest, how many entries stand out, how many groups hold them
    gather      each row again: row, column and value of those entries, behind the rows before

What costs on a GPU is waiting for it. It is waited for twice: after the survey, whose sums say
how much there is, and for the entries themselves. The order of the entries is that of the
matrix. The same is done by torch operations in ``on_device``, which judges this in the tests.
"""

# Triton is no requirement, and its kernels are subscripted with a grid.
# pyright: reportMissingImports=false, reportIndexIssue=false
from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from headwise.spectra.found import GROUP, Found, most_groups
from headwise.spectra.sources import refuse_not_finite
from headwise.spectra.weights import refuse_bad_rows

#: Columns that a program reads at once, and the warps it has; few, since each is compiled.
BLOCKS = {128: 1, 512: 2, 2048: 8}

#: Added to the groups hit in a matrix for each row that is bad; more than groups can sum to.
BAD = 1 << 40

#: What may differ from call to call without a kernel of its own.
PLAIN = ("LIMIT", "STRIDE", "N", "M")

# Kernels are not Python: whoever wraps them to check their arguments takes their names away.
LANES = tl.constexpr(GROUP)
BAD_ROW = tl.constexpr(BAD)


@triton.jit
@no_type_check
def _columns(START, BLOCK: tl.constexpr):
    """Columns by group and place in it."""
    group = tl.arange(0, BLOCK // LANES)
    return START + group[:, None] * LANES + tl.arange(0, LANES)[None, :]


@triton.jit
@no_type_check
def _read(X, STRIDE, M, columns, SOFTMAX: tl.constexpr):
    """Entries of this program's row in float64; beyond its end, what never stands out."""
    nothing = float("-inf") if SOFTMAX else 0.0
    start = X + tl.program_id(0).to(tl.int64) * STRIDE
    return tl.load(start + columns, mask=columns < M, other=nothing).to(tl.float64)


@triton.jit
@no_type_check
def _standing_out(x, columns, M, top, limit, SOFTMAX: tl.constexpr):
    """Which groups are hit, which entries are kept, and their values."""
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
    """A float64 from its bits: plain numbers are handed to kernels in float32."""
    return BITS.to(tl.int64).to(tl.float64, bitcast=True)


@triton.jit(do_not_specialize=[*PLAIN, "BATCH"])
@no_type_check
def _survey(
    X,
    TOP,
    COUNT,
    LIMIT,
    STRIDE,
    N,
    M,
    SUMS,
    BATCH,
    BLOCK: tl.constexpr,
    CHUNKS: tl.constexpr,
    SOFTMAX: tl.constexpr,
):
    limit = _exactly(LIMIT)
    row = tl.program_id(0).to(tl.int64)
    best = tl.full((BLOCK // LANES, LANES), float("-inf"), tl.float64)
    unclear = tl.zeros((BLOCK // LANES, LANES), tl.int32)
    for start in range(0, CHUNKS * BLOCK, BLOCK):
        x = _read(X, STRIDE, M, _columns(start, BLOCK), SOFTMAX)
        unclear |= (x != x).to(tl.int32)
        best = tl.maximum(best, x if SOFTMAX else tl.abs(x))
    top = tl.max(tl.max(best, axis=1), axis=0)
    if tl.max(tl.max(unclear, axis=1), axis=0) != 0:
        top = top * float("nan")
    tl.store(TOP + row, top)
    kept_here = tl.zeros((BLOCK // LANES,), tl.int32)
    hit_here = tl.zeros((BLOCK // LANES,), tl.int32)
    for start in range(0, CHUNKS * BLOCK, BLOCK):
        columns = _columns(start, BLOCK)
        x = _read(X, STRIDE, M, columns, SOFTMAX)
        hit, kept, _ = _standing_out(x, columns, M, top, limit, SOFTMAX)
        hit_here += hit.to(tl.int32)
        kept_here += tl.sum(kept.to(tl.int32), axis=1)
    count = tl.sum(kept_here, axis=0)
    tl.store(COUNT + row, count)
    # What is not finite is no less than infinity, or no number: one comparison sees both.
    groups = tl.sum(hit_here, axis=0).to(tl.int64)
    groups += tl.where(tl.abs(top) < float("inf"), 0, BAD_ROW)
    # Sums of whole numbers are the same in every order.
    tl.atomic_add(SUMS + row // N, groups)
    tl.atomic_add(SUMS + BATCH + row // N, count.to(tl.int64))


@triton.jit(do_not_specialize=[*PLAIN, "TOTAL"])
@no_type_check
def _gather(
    X,
    TOP,
    COUNT,
    LIMIT,
    STRIDE,
    N,
    M,
    ENDS,
    OUT,
    TOTAL,
    BLOCK: tl.constexpr,
    CHUNKS: tl.constexpr,
    SOFTMAX: tl.constexpr,
):
    limit = _exactly(LIMIT)
    row = tl.program_id(0).to(tl.int64)
    count = tl.load(COUNT + row)
    if count > 0:
        top = tl.load(TOP + row)
        place = OUT + (tl.load(ENDS + row) - count)
        for start in range(0, CHUNKS * BLOCK, BLOCK):
            columns = _columns(start, BLOCK)
            x = _read(X, STRIDE, M, columns, SOFTMAX)
            _, kept, value = _standing_out(x, columns, M, top, limit, SOFTMAX)
            kept = tl.reshape(kept, (BLOCK,))
            number = tl.cumsum(kept.to(tl.int32), axis=0)
            at = place + (number - 1)
            across = tl.reshape(columns, (BLOCK,)) + row // N * M
            tl.store(at, tl.zeros((BLOCK,), tl.int64) + row, mask=kept)
            tl.store(at + TOTAL, across, mask=kept)
            bits = tl.reshape(value, (BLOCK,)).to(tl.int64, bitcast=True)
            tl.store(at + 2 * TOTAL, bits, mask=kept)
            place += tl.max(number, axis=0)


@dataclass(frozen=True, eq=False)
class _Pass:
    """A pass over matrices: what is sought in them, and, row by row, what the survey found."""

    shape: torch.Size
    flat: Tensor
    limit: float
    softmax: bool
    top: Tensor
    count: Tensor

    @classmethod
    def over(cls, matrices: Tensor, limit: float, *, softmax: bool) -> _Pass:
        """A pass with room for what it finds of each row."""
        flat = matrices.reshape(-1, matrices.shape[-1])
        flat = flat if flat.stride(-1) == 1 else flat.contiguous()
        top = torch.empty(len(flat), dtype=torch.float64, device=flat.device)
        count = torch.empty(len(flat), dtype=torch.int32, device=flat.device)
        return cls(matrices.shape, flat, limit, softmax, top, count)

    def launch(self, kernel: Any, *others: Tensor | int) -> None:
        """One program of this kernel for each row."""
        _, n, m = self.shape
        block = next((b for b in BLOCKS if b >= m), max(BLOCKS))
        bits = struct.unpack("q", struct.pack("d", self.limit))[0]
        rows = (self.flat, self.top, self.count, bits, self.flat.stride(0), n, m)
        # Powers of two only, so that few kernels serve every width; the rest is masked.
        chunks = triton.next_power_of_2(triton.cdiv(m, block))
        choice = {"BLOCK": block, "CHUNKS": chunks, "SOFTMAX": self.softmax}
        kernel[(len(self.flat),)](*rows, *others, **choice, num_warps=BLOCKS[block])

    def survey(self) -> tuple[np.ndarray, np.ndarray]:
        """For each matrix, the groups hit (and BAD for each bad row) and the entries kept."""
        sums = torch.zeros(2, self.shape[0], dtype=torch.int64, device=self.flat.device)
        self.launch(_survey, sums, self.shape[0])
        groups, kept = _to_host(sums)
        return groups, kept

    def gather(self, sparse: np.ndarray, total: int) -> Found:
        """The entries of the matrices that are sparse, ``total`` of them."""
        count = self.count
        if not sparse.all():
            stay = torch.from_numpy(sparse).to(count.device)
            count.view(self.shape[:2]).mul_(stay.unsqueeze(-1))
        out = torch.empty(3, total, dtype=torch.int64, device=count.device)
        self.launch(_gather, count.cumsum(0), out, total)
        rows, columns, bits = _to_host(out)
        return Found(rows, columns, bits.view(np.float64), sparse)

    def find(self) -> tuple[Found, bool]:
        """What stands out in the sparse matrices, and whether every row has a finite peak."""
        with torch.cuda.device_of(self.flat):
            groups, kept = self.survey()
            sparse = groups <= most_groups(*self.shape[1:])
            if (groups >= BAD).any():
                return self.gather(np.zeros_like(sparse), 0), False
            return self.gather(sparse, int(kept[sparse].sum())), True


def scan_log_weights(matrices: Tensor, reach: float) -> tuple[Found, Tensor]:
    """As ``on_device.scan_log_weights``: log-weights near the largest of their row, and those."""
    over = _Pass.over(matrices, reach, softmax=True)
    found, finite = over.find()
    if not finite:
        refuse_bad_rows(over.top)
    return found, over.top


def scan_matrices(matrices: Tensor, smallest: float) -> Found:
    """As ``on_device.scan_matrices``: entries of at least this size, whatever their sign."""
    over = _Pass.over(matrices, smallest, softmax=False)
    found, finite = over.find()
    if not finite:
        refuse_not_finite("the matrix", int((~over.top.isfinite()).sum()))
    return found


def _to_host(tensor: Tensor) -> np.ndarray:
    """A copy for numpy, through memory that the device can write to by itself."""
    here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda)
    return here.copy_(tensor).numpy()
