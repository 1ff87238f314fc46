"""Smaller maps of an attention layer, and how they are written in place of the old ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.reduction.factors import Factors
from headwise.reduction.families import AttentionParts
from headwise.shapes import Float


@dataclass(frozen=True, eq=False)
class QueryKeyMaps:
    """Maps from the old queries and keys of each key-value head to the new ones.

    Attributes:
        query: (kv_heads, r, d_h); None leaves queries as they are.
        key: The same for keys, or (1, r, kv_heads · d_h) for one latent; None leaves keys.
        shift: Taken off the keys before the map.
        frequencies: (kv_heads, m) angles of the rotation pairs that are left.
    """

    query: Tensor | None = None
    key: Tensor | None = None
    shift: Tensor | None = None
    frequencies: Tensor | None = None


@dataclass(frozen=True, eq=False)
class ValueMaps:
    """A map from the old values of each key-value head to the new ones, and the output for them.

    Attributes:
        value: (kv_heads, v, d_v).
        output: (width, heads · v), the new weight of the output.
        bias: (width,), the new bias of the output; not used by a layer without one.
        shift: Taken off the values before the map.
    """

    value: Tensor
    output: Tensor
    bias: Tensor | None
    shift: Tensor | None = None


def stacked_maps(
    factors: Sequence[Factors], rank: int
) -> tuple[Float[Tensor, "h r d"], Float[Tensor, "h d r"]]:
    """Return the maps of all heads at a rank: compress and expand."""
    compress, expand = zip(*(each.maps(rank) for each in factors), strict=True)
    return torch.stack(compress), torch.stack(expand)


def write_maps(
    new: Mapping[str, nn.Linear], old: AttentionParts, keys: QueryKeyMaps, values: ValueMaps
) -> None:
    """Write the smaller maps of a layer into new linear maps: query, key, value and output."""
    query = keys.query
    if query is not None:
        query = query.repeat_interleave(old.heads // old.kv_heads, dim=0)
    _write(new["query"], old.query, query)
    _write(new["key"], old.key, keys.key, keys.shift)
    _write(new["value"], old.value, values.value, values.shift)
    new["output"].weight.copy_(values.output)
    if old.output.bias is not None and values.bias is not None:
        new["output"].bias.copy_(values.bias)


def _write(
    new: nn.Linear, old: nn.Linear, maps: Tensor | None, shift: Tensor | None = None
) -> None:
    """Write maps @ old, head by head; the shift is taken off what comes out of old."""
    if maps is None:
        new.load_state_dict(old.state_dict())
        return
    weight = old.weight.double().to(maps.device).unflatten(0, (len(maps), -1))
    new.weight.copy_((maps @ weight).flatten(0, 1))
    if old.bias is not None:
        bias = old.bias.double().to(maps.device).unflatten(0, (len(maps), -1))
        bias = bias if shift is None else bias - shift.reshape(bias.shape)
        new.bias.copy_(torch.einsum("hrd,hd->hr", maps, bias).flatten())
