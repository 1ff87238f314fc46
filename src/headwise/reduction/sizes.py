"""The ranks that the keys and values of a layer may have, and what the layer then costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headwise.reduction.families import SHARED, AttentionParts, Keys

#: What can be cut in a layer.
Kind = Literal["keys", "values"]
KINDS: tuple[Kind, ...] = ("keys", "values")

#: What a budget counts.
Measure = Literal["kv_bytes", "params"]


@dataclass(frozen=True)
class LayerSizes:
    """Ranks and costs of one layer; both are known before the calibration.

    Attributes:
        parts: The maps of the layer.
        keys: How keys are cut.
    """

    parts: AttentionParts
    keys: Keys

    def whole(self, kind: Kind) -> int:
        """Return the rank of keys or values that are not cut."""
        p = self.parts
        return p.head_dim * (p.kv_heads if kind == "keys" and self.keys in SHARED else 1)

    def ranks(self, kind: Kind, step: int) -> list[int]:
        """Return the ranks that keys or values may have: multiples of ``step``, and the whole."""
        whole = self.whole(kind)
        pairs = kind == "keys" and self.keys == "pairs"
        fits = [r for r in range(step, whole, step) if not (pairs and r % 2)]
        return [*fits, whole]

    def cost(self, kind: Kind, rank: int, measure: Measure, itemsize: int) -> int:
        """Return what keys and queries, or values and the output, cost at a rank.

        Args:
            kind: Keys, with the queries that meet them, or values, with the output.
            rank: The rank.
            measure: Bytes of KV cache for a token, or parameters.
            itemsize: Bytes of one number in the cache.

        Returns:
            The cost; without a cut that of the original.
        """
        if measure == "kv_bytes":
            shared = kind == "keys" and self.keys in SHARED
            return itemsize * rank * (1 if shared else self.parts.kv_heads)
        return self._key_parameters(rank) if kind == "keys" else self._value_parameters(rank)

    def _key_parameters(self, rank: int) -> int:
        p = self.parts
        line = p.width + (p.key.bias is not None)  # what makes one number of a query or a key
        uncut = line * (p.heads + p.kv_heads) * p.head_dim
        if rank == self.whole("keys"):
            return uncut
        restoring = rank * p.kv_heads * p.head_dim
        if self.keys == "latent":
            return line * (p.heads * p.head_dim + rank) + restoring
        if self.keys == "rotated":
            return uncut + 2 * restoring
        return line * (p.heads + p.kv_heads) * rank

    def _value_parameters(self, rank: int) -> int:
        p = self.parts
        values = (p.width + (p.value.bias is not None)) * p.kv_heads * rank
        return values + (p.heads * rank + (p.output.bias is not None)) * p.width


def cost_of_all(
    sizes: Sequence[LayerSizes],
    measure: Measure,
    itemsize: int,
    *,
    step: int | None = None,
    only: Kind | None = None,
) -> int:
    """Return what all layers cost without a cut, or the least they can cost.

    Args:
        sizes: The layers.
        measure: Bytes of KV cache for a token, or parameters.
        itemsize: Bytes of one number in the cache.
        step: Ranks are multiples of it, and the least cost is wanted; None: nothing is cut.
        only: Count keys or values alone.
    """
    return sum(
        min(
            each.cost(kind, rank, measure, itemsize)
            for rank in ([each.whole(kind)] if step is None else each.ranks(kind, step))
        )
        for each in sizes
        for kind in cut_kinds(only)
    )


def cut_kinds(only: Kind | None) -> list[Kind]:
    """Return what is cut: keys and values, or one of them."""
    return [kind for kind in KINDS if only in (None, kind)]
