"""What can be read from an attention layer: queries and keys, or the attention matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headwise.attention import scores
from headwise.attention.grid import Grid
from headwise.attention.masks import Mask
from headwise.attention.operator import AttentionOperator
from headwise.attention.projections import HeadWeights
from headwise.errors import BadInputError
from headwise.report.results import short_repr
from headwise.shapes import Bool, Float
from headwise.spectra import Absolute, DtypeFloor, LogWeights
from headwise.spectra.dense import doubt, scaling


@dataclass(frozen=True, eq=False)
class AttentionView:
    """Queries, keys, mask and temperature of one layer in one forward pass.

    Args:
        queries: (batch, heads, n, r), with positions.
        keys: (batch, kv_heads, m, r), with positions.
        mask: Which keys each query attends to.
        temperature: The divisor of the logits.
        weights: W_Q and W_K, if such matrices exist and are known.
        turned_rank: How many dimensions of the query-key form depend on position.
        softcap: c if logits l become c·tanh(l/c) before the mask.
        sinks: (heads,): a logit per head that takes part in the softmax and whose weight is
            dropped, so that rows sum to less than one.
        self_attention: Whether queries and keys come from the same tokens.
        values: (batch, kv_heads, m, v), if they were read.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> view = mha(HeadGeometry.standard(8, heads=2)).view(torch.zeros(1, 4, 8))
        >>> view.logits().shape, view.scale == 4**-0.5
        (torch.Size([1, 2, 4, 4]), True)
    """

    queries: Float[Tensor, "b h n r"]
    keys: Float[Tensor, "b k m s"]
    mask: Mask
    temperature: float
    weights: HeadWeights | None = None
    turned_rank: int = 0
    softcap: float | None = None
    sinks: Float[Tensor, " h"] | None = None
    self_attention: bool = True
    values: Float[Tensor, "b k m v"] | None = None

    __repr__ = short_repr

    @property
    def scale(self) -> float:
        """The factor of q·k: one over the temperature."""
        return 1 / self.temperature

    @property
    def shape(self) -> torch.Size:
        """The shape of the attention matrices, (batch, heads, n, m)."""
        return torch.Size((*self.queries.shape[:3], self.keys.shape[2]))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the model computed the queries."""
        return self.queries.dtype

    @property
    def nbytes(self) -> int:
        """The memory that the queries, keys and values take."""
        values = 0 if self.values is None else self.values.nbytes
        return self.queries.nbytes + self.keys.nbytes + values

    @property
    def tolerance(self) -> Absolute | DtypeFloor:
        """The default tolerance for counting: 1e-8, since the matrix is float64."""
        return Absolute(1e-8)

    @property
    def has_empty_rows(self) -> bool:
        """Whether the mask leaves a query without a key, as padding on the left does."""
        allowed = self.mask.allowed(self._grid()) if self.mask.has_tensor else None
        return allowed is not None and not bool(allowed.any(-1).all())

    @property
    def shared_keys(self) -> Float[Tensor, "b h m s"]:
        """The keys, repeated so that every query head has its own."""
        return self.keys.repeat_interleave(self.queries.shape[1] // self.keys.shape[1], dim=1)

    def logits(self) -> LogWeights:
        """Return the logits in float64 with a bound on their rounding."""
        self._refuse_unlike()
        if self.sinks is not None:
            raise BadInputError(
                "the rows of this layer do not sum to one, because a sink takes part of them",
                hint="use view.matrix()",
            )
        return self._logits()

    def matrix(self) -> Float[Tensor, "b h n m"]:
        """Return the attention matrices in float64."""
        self._refuse_unlike()
        return torch.softmax(self._joined().values, dim=-1)[..., : self.shape[-1]]

    def matrix_error(self) -> Float[Tensor, "b h"]:
        """Bound the rounding of each matrix of ``matrix()``: ‖computed − exact‖_F."""
        joined = self._joined()
        flat = LogWeights(joined.values.flatten(0, 1), joined.row_error.flatten(0, 1))
        # Rows of weights have norm at most one.
        summed = scaling(flat) * math.sqrt(joined.shape[-2])
        return (doubt(flat) + summed).reshape(joined.shape[:2])

    def source(self) -> LogWeights | Tensor:
        """Return what ``headwise.measure`` takes: logits, or with sinks the matrices.

        A count of these matrices is of them as they are: add ``matrix_error()`` to its δ.
        Queries and keys are taken as exact. Counting what their dtype may hide would leave an
        interval that says nothing for a model in half precision.
        """
        exact = replace(self, queries=self.queries.double(), keys=self.keys.double())
        return exact.logits() if self.sinks is None else exact.matrix()

    def operator(self) -> AttentionOperator:
        """Return the attention matrices as products in float64, never formed."""
        self._refuse_unlike()
        if self.softcap is not None or self.sinks is not None:
            raise BadInputError(
                "an operator needs a plain softmax, and this layer has a softcap or sinks",
                hint="use view.matrix()",
            )
        return AttentionOperator(
            self.queries, self.shared_keys, temperature=self.temperature, mask=self.mask
        )

    def head(self, sequence: int, head: int) -> AttentionView:
        """Return the view of one head on one sequence."""
        group = self.queries.shape[1] // self.keys.shape[1]
        one, own = slice(sequence, sequence + 1), slice(head, head + 1)
        shared = slice(head // group, head // group + 1)
        return replace(
            self,
            queries=self.queries[one, own],
            keys=self.keys[one, shared],
            values=None if self.values is None else self.values[one, shared],
            mask=self.mask.of_head(self._grid(), sequence, head),
            weights=None,
            sinks=None if self.sinks is None else self.sinks[own],
        )

    def unpadded(self) -> Iterator[AttentionView]:
        """Yield views without padding: this view if it has none, else one per sequence.

        A key is padding if no query attends to it. In self-attention its query is dropped too.
        """
        grid = self._grid()
        if not self.mask.has_tensor:  # only a tensor can hide padding
            yield self
            return
        allowed = self.mask.allowed(grid).expand(grid.shape)
        kept = allowed.any(1).any(-2)
        if bool(kept.all()):
            yield self
            return
        for index, columns in enumerate(kept):
            yield self._sequence(index, columns, grid)

    @property
    def has_one_form(self) -> bool:
        """Whether every logit is xᵀ M y for one matrix M per head, at every pair of positions."""
        return self.weights is not None and self.turned_rank == 0

    def query_key_form(self) -> Float[Tensor, "h d d"]:
        """Return M_h = W_Q,hᵀ W_K,h, without biases and temperature, if it is one matrix."""
        if self.weights is None:
            raise BadInputError(
                "the queries and keys of this layer are not linear maps of its tokens, or the "
                "maps are not known",
                hint="use view.queries and view.keys",
            )
        if self.turned_rank:
            raise BadInputError(
                f"{self.turned_rank} dimensions of the query-key form turn with position, so it "
                "is not one matrix",
                hint="use view.weights, or view.queries and view.keys",
            )
        key = self.weights.key
        group = self.weights.query.shape[0] // key.shape[0]
        return self.weights.query.mT @ torch.repeat_interleave(key, group, dim=0)

    def detached(self) -> AttentionView:
        """Return the view without the graph of gradients."""
        sinks = None if self.sinks is None else self.sinks.detach()
        values = None if self.values is None else self.values.detach()
        queries, keys = self.queries.detach(), self.keys.detach()
        return replace(self, queries=queries, keys=keys, values=values, sinks=sinks)

    def _logits(self) -> LogWeights:
        return scores.logits(
            self.queries,
            self.shared_keys,
            temperature=self.temperature,
            mask=self.mask,
            softcap=self.softcap,
        )

    def _joined(self) -> LogWeights:
        """Return what the softmax is taken of: the logits, and the sink as a last column."""
        logits = self._logits()
        if self.sinks is None:
            return logits
        sink = self.sinks.double().reshape(1, -1, 1, 1).expand(*logits.shape[:3], 1)
        return LogWeights(torch.cat([logits.values, sink], dim=-1), logits.error)

    def _grid(self) -> Grid:
        return Grid.whole(self.shape, self.queries.device)

    def _sequence(self, index: int, columns: Tensor, grid: Grid) -> AttentionView:
        same = self.self_attention and grid.shape[-2] == grid.shape[-1]
        rows = columns if same else torch.ones_like(columns[:1]).expand(grid.shape[-2])
        return replace(
            self,
            queries=self.queries[index : index + 1, :, rows],
            keys=self.keys[index : index + 1, :, columns],
            values=None if self.values is None else self.values[index : index + 1, :, columns],
            mask=self.mask.of_tokens(grid, index, rows, columns),
        )

    def _refuse_unlike(self) -> None:
        if self.queries.shape[-1] != self.keys.shape[-1]:
            raise BadInputError(
                f"expected queries and keys of one width, got {self.queries.shape[-1]} and "
                f"{self.keys.shape[-1]}: the layer weighs them by a map, not by q·k",
                hint="use layer.matrix()",
            )


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Attention matrices as a model returned them, where its queries and keys cannot be read.

    Singular values below the rounding of ``dtype`` are noise: count from the dtype floor on.

    Args:
        maps: (batch, heads, n, m), in the model's dtype.
        real: (batch, m), True for real tokens; None without padding.
        self_attention: Whether queries and keys come from the same tokens.

    Example:
        >>> AttentionMaps(torch.eye(3).expand(1, 2, 3, 3)).tolerance
        DtypeFloor()
    """

    maps: Float[Tensor, "b h n m"]
    real: Bool[Tensor, "b m"] | None = None
    self_attention: bool = True

    __repr__ = short_repr

    @property
    def shape(self) -> torch.Size:
        """The shape of the attention matrices, (batch, heads, n, m)."""
        return self.maps.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which the model computed the matrices."""
        return self.maps.dtype

    @property
    def nbytes(self) -> int:
        """The memory that the matrices take."""
        return self.maps.nbytes

    @property
    def tolerance(self) -> Absolute | DtypeFloor:
        """The default tolerance for counting: the dtype floor."""
        return DtypeFloor()

    def matrix(self) -> Float[Tensor, "b h n m"]:
        """Return the matrices in the model's dtype."""
        return self.maps

    def source(self) -> Tensor:
        """Return what ``headwise.measure`` takes."""
        return self.maps

    def head(self, sequence: int, head: int) -> AttentionMaps:
        """Return the map of one head on one sequence."""
        real = None if self.real is None else self.real[sequence : sequence + 1]
        one = self.maps[sequence : sequence + 1, head : head + 1]
        return replace(self, maps=one, real=real)

    def unpadded(self) -> Iterator[AttentionMaps]:
        """Yield maps without padding: these if they have none, else one per sequence."""
        if self.real is None or bool(self.real.all()):
            yield self
            return
        for rows, columns in zip(self.maps, self.real, strict=True):
            same = self.self_attention and rows.shape[-2] == rows.shape[-1]
            kept = rows[:, columns] if same else rows
            yield replace(self, maps=kept[None, :, :, columns], real=None)

    def detached(self) -> AttentionMaps:
        """Return the maps without the graph of gradients."""
        return replace(self, maps=self.maps.detach())
