"""The heads paper's encoder for many members at once, without vmap.

Tokens of all sequences are the rows of one matrix per member, so each linear map is one batched
product with its bias. Attention takes heads in the last axis, without transposing anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwise.attention.short import short_attention
from headwise.models import NeighbourEncoder
from headwise.training.linear_maps import Maps
from headwise.training.stacking import Parameters, of_variants


class StackedEncoder:
    """``NeighbourEncoder`` for all members; they may differ in rank if H·r is the same."""

    def __init__(
        self, models: Sequence[NeighbourEncoder], groups: Sequence[tuple[int, int]]
    ) -> None:
        self.shape = models[0].shape
        self.groups = [(first, end, models[first].shape) for first, end in groups]

    @staticmethod
    def serves(models: Sequence[nn.Module]) -> bool:
        """Whether these models are of that kind and differ only in rank."""
        if not all(isinstance(model, NeighbourEncoder) for model in models):
            return False
        kinds = {
            (m.shape.layers, m.shape.width, m.shape.positions, m.shape.copies)
            for m in models
            if isinstance(m, NeighbourEncoder)
        }
        return len(kinds) == 1

    def __call__(self, parameters: Parameters, inputs: tuple[Tensor, ...]) -> Tensor:
        """Return the outputs of every member for its own points."""
        tokens = self._embedded(parameters, inputs[0])
        sequences, length = tokens.shape[1:3]
        rows, maps = tokens.flatten(1, 2), Maps(parameters)
        for layer in range(self.shape.layers):
            part = maps.below(f"stack.blocks.{layer}")
            attended = self._attended(part, rows, (sequences, length))
            rows = part.norm("attention_norm", rows + attended)
            hidden = part.linear("mlp.expand", rows).relu()
            rows = part.norm("mlp_norm", rows + part.linear("mlp.contract", hidden))
        return rows.unflatten(1, (sequences, length))[..., : self.shape.width]

    def _embedded(self, parameters: Parameters, tokens: Tensor) -> Tensor:
        if self.shape.positions == "none":
            return tokens
        table = parameters["stack.position.table"][:, None, : tokens.shape[2]]
        if self.shape.positions == "additive":
            return tokens + table
        return torch.cat([tokens, table.expand(-1, tokens.shape[1], -1, -1)], dim=-1)

    def _attended(self, part: Maps, rows: Tensor, sizes: tuple[int, int]) -> Tensor:
        names = ("query", "key", "value")
        triple = [part.linear(f"attention.projection.{name}", rows) for name in names]
        triples = of_variants(triple, [(first, end) for first, end, _ in self.groups])
        pairs = zip(self.groups, triples, strict=True)
        mixed = [self._mixed(group, own, sizes) for group, own in pairs]
        joined = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
        return part.linear("attention.projection.output", joined, 1 / self.shape.copies)

    def _mixed(self, group: tuple, triple: tuple[Tensor, ...], sizes: tuple[int, int]) -> Tensor:
        """Compute the attention of members of one rank: (m, b·n, H·r) in and out."""
        first, end, shape = group
        members = end - first
        cut = (members * sizes[0], sizes[1], shape.heads, shape.rank)
        q, k, v = (t.reshape(cut) for t in triple)
        return short_attention(q, k, v, shape.rank**-0.5).reshape(
            members, sizes[0] * sizes[1], shape.heads * shape.rank
        )
