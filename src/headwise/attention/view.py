"""AttentionView: how anyone reads a layer, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.attention import scores
from headwise.attention.masks import Mask
from headwise.attention.operator import AttentionOperator
from headwise.attention.projections import HeadWeights
from headwise.errors import BadInputError
from headwise.shapes import Float
from headwise.spectra import LogWeights


@dataclass(frozen=True, eq=False)
class AttentionView:
    """Queries (b, H, n, r), keys (b, H_kv, m, r), mask and temperature of one layer.

    ``weights`` are W_Q and W_K where such matrices exist; ``turned_rank`` dimensions of the
    query-key form depend on position.

    >>> from headwise.attention import HeadGeometry, mha
    >>> view = mha(HeadGeometry.standard(8, heads=2)).view(torch.zeros(1, 4, 8))
    >>> view.logits().shape, view.scale == 4**-0.5
    (torch.Size([1, 2, 4, 4]), True)
    """

    queries: Float[Tensor, "b h n r"]
    keys: Float[Tensor, "b k m s"]
    mask: Mask
    temperature: float
    weights: HeadWeights | None
    turned_rank: int

    @property
    def scale(self) -> float:
        """What q·k is multiplied by: one over the temperature."""
        return 1 / self.temperature

    @property
    def shared_keys(self) -> Float[Tensor, "b h m s"]:
        """The keys, repeated so that every query head has its own."""
        return self.keys.repeat_interleave(self.queries.shape[1] // self.keys.shape[1], dim=1)

    def logits(self) -> LogWeights:
        """The logits in float64 with the bound on their rounding."""
        self._refuse_unlike()
        return scores.logits(
            self.queries, self.shared_keys, temperature=self.temperature, mask=self.mask
        )

    def operator(self) -> AttentionOperator:
        """The attention matrices by their products, in float64, never formed."""
        self._refuse_unlike()
        return AttentionOperator(
            self.queries, self.shared_keys, temperature=self.temperature, mask=self.mask
        )

    @property
    def has_one_form(self) -> bool:
        """Whether every logit is xᵀ M y for one matrix M per head, at every pair of positions."""
        return self.weights is not None and self.turned_rank == 0

    def query_key_form(self) -> Float[Tensor, "h d d"]:
        """M_h = W_Q,hᵀ W_K,h, without biases and temperature, if there is one such matrix."""
        if self.weights is None:
            raise BadInputError(
                "this layer's queries and keys are no linear maps of its tokens",
                hint="read queries and keys themselves instead of a query-key form",
            )
        if self.turned_rank:
            raise BadInputError(
                f"{self.turned_rank} dimensions of the query-key form turn with position, so it "
                "is not one matrix",
                hint="read view.weights, or queries and keys themselves",
            )
        key = self.weights.key
        group = self.weights.query.shape[0] // key.shape[0]
        return self.weights.query.mT @ torch.repeat_interleave(key, group, dim=0)

    def _refuse_unlike(self) -> None:
        if self.queries.shape[-1] != self.keys.shape[-1]:
            raise BadInputError(
                f"queries are {self.queries.shape[-1]} wide and keys {self.keys.shape[-1]}: the "
                "layer weighs them by a map of its own, not by q·k",
                hint="ask the layer for its matrix",
            )
