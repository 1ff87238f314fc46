"""Attention as an operator: the matrix A is never formed, only multiplied.

A·X is attention itself with X as values; Aᵀ·Y is the gradient of that with respect to the
values. Rows are taken a chunk at a time, so memory stays O(n·k) for blocks of k columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from headwise.attention.fused_products import SHORT, WIDEST, FusedProducts, fused_kernels
from headwise.attention.grid import Grid
from headwise.attention.mask_arguments import MaskLike, as_mask
from headwise.attention.masks import EVERYTHING, Everything, Mask
from headwise.attention.scores import (
    Ties,
    checked_pair,
    checked_temperature,
    refuse_overflow,
)
from headwise.attention.scores import refuse_masked_rows as _refuse_masked_rows
from headwise.errors import BadInputError
from headwise.report.results import short_repr
from headwise.shapes import Float, Int
from headwise.spectra.measuring import first_within
from headwise.spectra.operators import own_precision

#: The most logits in memory at one time on a CPU: 2^22 float64 numbers are 32 MiB.
LOGITS_AT_ONCE = 2**22
#: A GPU needs larger pieces to be busy: 32 times as many, 1 GiB in float64.
GPU_FACTOR = 32
#: Rows and columns of scores per arg-max; the first fits in a CPU's cache.
CPU_TILE, GPU_TILE = (256, 1024), (4096, 2**20)


@dataclass(frozen=True, eq=False)
class AttentionOperator:
    """softmax(Q Kᵀ / T) as an Operator.

    Args:
        queries: (..., n, d_h).
        keys: (..., m, d_h).
        temperature: T, the divisor of the logits; √d_h by default.
        mask: A mask, its name or a tensor; see ``as_mask``.
        dtype: The dtype of the products, float64 by default. A lower precision limits which
            singular values the products can resolve.

    Example:
        >>> op = AttentionOperator(torch.zeros(2, 3), torch.zeros(5, 3))
        >>> op.shape, op.matmat(torch.ones(5, 1, dtype=torch.float64)).flatten()
        (torch.Size([2, 5]), tensor([1., 1.], dtype=torch.float64))
    """

    queries: Tensor
    keys: Tensor
    temperature: float | None = None
    mask: MaskLike = EVERYTHING
    dtype: torch.dtype = torch.float64
    _kernels: FusedProducts | None = field(default=None, init=False, repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        queries, keys = checked_pair(self.queries, self.keys)
        temperature = checked_temperature(self.temperature, queries.shape[-1])
        object.__setattr__(self, "queries", queries.to(self.dtype))
        object.__setattr__(self, "keys", keys.to(self.dtype))
        object.__setattr__(self, "temperature", temperature)
        object.__setattr__(self, "mask", as_mask(self.mask))
        if as_mask(self.mask).has_tensor:  # rules by position leave every query a key
            self._refuse_masked_rows()
        kernels = fused_kernels(self.queries, as_mask(self.mask))
        object.__setattr__(self, "_kernels", kernels)

    @property
    def shape(self) -> torch.Size:
        """(..., queries, keys)."""
        return torch.Size([*self.queries.shape[:-1], self.keys.shape[-2]])

    @property
    def scale(self) -> float:
        """What q·k is multiplied by: one over the temperature."""
        assert self.temperature is not None
        return 1 / self.temperature

    @own_precision()
    def matmat(self, block: Tensor) -> Float[Tensor, "*batch n k"]:
        """Multiply A by a block of columns: attention with the block as values."""
        values = self._as_block(block, self.shape[-1])
        if self._kernels is not None and values.shape[-1] <= WIDEST:
            return self._kernels.product(self.queries, self.keys, values, self.scale)
        chunks_of_rows = self._row_chunks(values.shape[-1])
        return torch.cat([self._attend(rows, values) for rows in chunks_of_rows], dim=-2)

    @own_precision()
    def rmatmat(self, block: Tensor) -> Float[Tensor, "*batch m k"]:
        """Multiply Aᵀ by a block of columns: the gradient of attention by its values."""
        block = self._as_block(block, self.shape[-2])
        if self._kernels is not None and block.shape[-1] <= WIDEST:
            return self._kernels.transposed(self.queries, self.keys, block, self.scale)
        shape = (*self.shape[:-2], self.shape[-1], block.shape[-1])
        values = torch.zeros(shape, dtype=self.dtype, device=block.device, requires_grad=True)
        total = torch.zeros_like(values, requires_grad=False)
        for rows in self._row_chunks(block.shape[-1]):
            with torch.enable_grad():
                mixed = self._attend(rows, values)
            total += torch.autograd.grad(mixed, values, block[..., rows, :])[0]
        return total

    @own_precision()
    def frobenius(self) -> float:
        """Return ‖A‖_F of one matrix, exactly up to rounding and without the matrix.

        The squares of a row of weights are exp(2l − 2·logsum), so two sums per row are enough:
        that of the logits, and that of the logits at half the temperature.
        """
        if self._kernels is not None:
            single, double = (
                self._kernels.row_sums(self.queries, self.keys, factor * self.scale)
                for factor in (1, 2)
            )
            return math.sqrt(float((double - 2 * single).double().exp2().sum()))
        energy = 0.0
        for rows in self._row_chunks(columns=1):
            logits = self.queries[..., rows, :] @ self.keys.mT * self.scale
            bias = self._bias(rows)
            logits = logits if bias is None else logits + bias
            single, double = (torch.logsumexp(each, -1) for each in (logits, 2 * logits))
            energy += float((double - 2 * single).double().exp().sum())
        return math.sqrt(energy)

    def _attend(self, rows: slice, values: Tensor) -> Tensor:
        return scaled_dot_product_attention(
            self.queries[..., rows, :],
            self.keys,
            values,
            attn_mask=self._bias(rows),
            scale=self.scale,
        )

    def _bias(self, rows: slice) -> Tensor | None:
        mask = as_mask(self.mask)
        if isinstance(mask, Everything):
            return None
        grid = Grid.whole(self.shape, self.queries.device)
        zeros = torch.zeros(
            rows.stop - rows.start, self.shape[-1], dtype=self.dtype, device=grid.device
        )
        bias = mask.apply(zeros, grid.block(rows, grid.columns))
        return bias.expand(*self.shape[:-2], *bias.shape[-2:])

    def _refuse_masked_rows(self) -> None:
        for rows in self._row_chunks(columns=1):
            bias = self._bias(rows)
            if bias is not None:
                _refuse_masked_rows(bias.amax(-1))

    def _row_chunks(self, columns: int) -> Iterator[slice]:
        """Return rows whose logits fit in memory; all rows if a fused kernel forms no logits."""
        # The fused GPU kernels need 16 bits, no mask, and values as wide as the heads.
        short = self.dtype in (torch.bfloat16, torch.float16) and self.queries.is_cuda
        if short and columns == self.queries.shape[-1] and isinstance(self.mask, Everything):
            return chunks(self.shape[-2], self.shape[-2])
        across = self.shape.numel() // self.shape[-2]
        return chunks(self.shape[-2], max(1, logits_at_once(self.queries.device) // across))

    def _as_block(self, block: Tensor, size: int) -> Tensor:
        if block.shape[:-1] != (*self.shape[:-2], size):
            raise BadInputError(
                f"a block of shape {tuple(block.shape)} does not fit an operator "
                f"of shape {tuple(self.shape)}",
                hint=f"pass {(*self.shape[:-2], size, 'k')}",
            )
        return block.to(self.dtype)


@own_precision()
def streaming_argmax(
    queries: Tensor,
    keys: Tensor,
    *,
    mask: MaskLike = EVERYTHING,
    equals: Literal["within rounding", "exactly"] = "within rounding",
) -> Int[Tensor, "*batch n"]:
    """Find the key with the highest score for each query, without the whole matrix.

    On a GPU a fused kernel serves 16 bits, and float32 with ``equals="exactly"``, without a mask or
    causal. Scores are computed in the dtype of the input; float32 and below may decide near ties
    differently from float64, and more often so after
    ``torch.set_float32_matmul_precision("medium")``. Scores that rounding does not separate are
    ties, so a key that occurs twice counts once. Memory is bounded for any number of queries and
    keys.

    Args:
        queries: (..., n, d_h).
        keys: (..., m, d_h).
        mask: A mask, its name or a tensor; see ``as_mask``.
        equals: "exactly" treats only equal scores as ties and saves a pass over the scores. Use it
            for keys drawn from a continuous distribution.

    Returns:
        The index of the key for each query, the first one of ties.

    Example:
        >>> streaming_argmax(torch.ones(2, 1), torch.tensor([[1.0], [3.0], [3.0]]))
        tensor([1, 1])
    """
    queries, keys = checked_pair(queries, keys)
    shape = torch.Size([*queries.shape[:-1], keys.shape[-2]])
    rule = as_mask(mask)
    if equals == "exactly" or queries.dtype in SHORT:
        kernels = fused_kernels(queries, rule)
        if kernels is not None:
            return kernels.argmax(queries, keys)
    ties = Ties.of(queries, keys) if equals == "within rounding" else None
    seek = _Seek(queries, keys, rule, Grid.whole(shape, queries.device), ties)
    at_once = max(1, logits_at_once(queries.device) // shape[:-2].numel())
    tallest, widest = GPU_TILE if queries.is_cuda else CPU_TILE
    height = min(shape[-2], tallest, at_once)
    width = min(at_once // height, widest)
    return torch.cat([seek.best(rows, width) for rows in chunks(shape[-2], height)], dim=-1)


def hardmax_rank(
    queries: Tensor,
    keys: Tensor,
    *,
    mask: MaskLike = EVERYTHING,
) -> Int[Tensor, "*batch"]:
    """Count the different keys that are the arg-max of some query: the rank of the hardmax matrix.

    Args:
        queries: (..., n, d_h).
        keys: (..., m, d_h).
        mask: A mask, its name or a tensor; see ``as_mask``.

    Returns:
        Integers in the shape of the batch, one rank for each matrix.

    Example:
        >>> int(hardmax_rank(torch.eye(3), torch.eye(3)))
        3
    """
    found = streaming_argmax(queries, keys, mask=mask)
    hit = torch.zeros(*found.shape[:-1], keys.shape[-2], dtype=torch.bool, device=found.device)
    return hit.scatter_(-1, found, True).sum(-1)


def logits_at_once(device: torch.device) -> int:
    """Return how many logits may be in memory at one time."""
    return LOGITS_AT_ONCE * (GPU_FACTOR if device.type == "cuda" else 1)


def chunks(total: int, size: int) -> Iterator[slice]:
    """Yield slices of at most ``size`` that cover 0 … total."""
    return (slice(start, min(start + size, total)) for start in range(0, total, size))


@dataclass(frozen=True, eq=False)
class _Seek:
    """The search for the best key of each query."""

    queries: Tensor
    keys: Tensor
    mask: Mask
    grid: Grid
    ties: Ties | None

    def best(self, rows: slice, width: int) -> Tensor:
        """Return the arg-max of these rows, taking ``width`` keys at a time."""
        tiles = list(chunks(self.grid.shape[-1], width))
        value, held, allowance, index = self._best_among(rows, tiles[0])
        chosen_by = allowance
        for columns in tiles[1:]:
            rival, rival_held, rival_allowance, rival_index = self._best_among(rows, columns)
            allowance = torch.where(rival > value, rival_allowance, allowance)
            better = rival > value + rival_allowance  # the first of ties stays
            value, index = torch.maximum(value, rival), torch.where(better, rival_index, index)
            held = torch.where(better, rival_held, held)
            chosen_by = torch.where(better, rival_allowance, chosen_by)
        _refuse_masked_rows(value)
        refuse_overflow(value, value.dtype)
        # Each tile may lie a little above the last, and the first one far below all. And a long key
        # that wins by little makes ties of keys that were given up for a short one.
        doubtful = (held < value - allowance) | (allowance > chosen_by)
        if len(tiles) > 1 and bool(doubtful.any()):
            return self._first_near(rows, tiles, value - allowance)
        return index

    def _best_among(self, rows: slice, columns: slice) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the largest scores, those of the first of ties, the tolerance, and its column."""
        scores = self._scores(rows, columns)
        top, winner = scores.max(-1)
        if self.ties is None:
            return top, top, torch.zeros_like(top), winner + columns.start
        allowance = self.ties.allowance(rows, winner + columns.start)
        index = first_within(scores, top, allowance)
        held = scores.gather(-1, index.unsqueeze(-1)).squeeze(-1)
        return top, held, allowance, index + columns.start

    def _first_near(self, rows: slice, tiles: list[slice], least: Tensor) -> Tensor:
        """Return the first column of each row with at least this score."""
        index = torch.zeros(least.shape, dtype=torch.int64, device=least.device)
        for columns in reversed(tiles):
            near = self._scores(rows, columns) >= least.unsqueeze(-1)
            here = near.view(torch.uint8).argmax(-1) + columns.start
            index = torch.where(near.any(-1), here, index)
        return index

    def _scores(self, rows: slice, columns: slice) -> Tensor:
        """Return the masked scores of one tile."""
        scores = self.queries[..., rows, :] @ self.keys[..., columns, :].mT
        return self.mask.apply(scores, self.grid.block(rows, columns))
