"""Write the smaller maps into a copy of a model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from headwise.reduction.families import (
    FAMILIES,
    AttentionParts,
    attention_blocks,
    attention_parts,
    is_encoder,
)
from headwise.reduction.planning import Cut, LayerCurves

#: The version of ``config.headwise``.
FORMAT = 1


@torch.no_grad()
def cut_model(model: Any, curves: Sequence[LayerCurves], cuts: Sequence[Cut]) -> Any:
    """Return a smaller copy of a model; the original stays as it is.

    Args:
        model: A supported model.
        curves: The best cuts of its layers.
        cuts: The chosen ranks.

    Returns:
        The copy, whose config describes the cut.
    """
    from headwise.reduction.modeling_headwise import cut_layers

    old = attention_parts(model)
    cuts = [_named(cut, each) for cut, each in zip(cuts, old, strict=True)]
    made = copy.deepcopy(model)
    made.config.headwise = {
        "format": FORMAT,
        "base": FAMILIES[model.config.model_type],
        "layers": [asdict(cut) for cut in cuts],
    }
    kept = next(model.parameters())
    cut_layers(made, made.config.headwise["layers"])
    made.to(kept.device, kept.dtype).eval()
    for block, curve, cut in zip(attention_blocks(made), curves, cuts, strict=True):
        _fill(new_parts(block, made.config), curve, cut)
        if cut.keys == "pairs":
            block.self_attn.pairs.copy_(_kept_pairs(curve, cut))
        if cut.keys == "latent":
            block.self_attn.k_restore.weight.copy_(curve.key_factors[0].maps(cut.rank)[1])
    return made


def new_parts(block: Any, config: Any) -> dict[str, nn.Linear]:
    """Return the maps of a cut layer by name."""
    if is_encoder(config):
        own, output = block.attention.self, block.attention.output.dense
        return {"query": own.query, "key": own.key, "value": own.value, "output": output}
    own = block.self_attn
    return {"query": own.q_proj, "key": own.k_proj, "value": own.v_proj, "output": own.o_proj}


def _named(cut: Cut, parts: AttentionParts) -> Cut:
    """Keys of a decoder that lose no rotation pair are kept in full."""
    whole = cut.keys == "pairs" and cut.rank == parts.head_dim
    return Cut("full", cut.rank, cut.value_rank) if whole else cut


def _fill(new: dict[str, nn.Linear], curve: LayerCurves, cut: Cut) -> None:
    old = curve.parts
    query, key = _key_maps(curve, cut)
    _write(new["query"], old.query, query)
    shift = curve.moments.keys.mean if curve.centred_keys and cut.rank < old.head_dim else None
    _write(new["key"], old.key, key, shift)
    maps = [each.maps(cut.value_rank) for each in curve.value_factors]
    compress = torch.block_diag(*(each for each, _ in maps))
    centred = curve.centred_values and cut.value_rank < old.head_dim
    middle = curve.moments.values.mean if centred else None
    _write(new["value"], old.value, compress, middle)
    group = old.heads // old.kv_heads
    expand = torch.block_diag(*(each for _, each in maps for _ in range(group)))
    weight = old.output.weight.double()
    new["output"].weight.copy_(weight @ expand)
    if old.output.bias is not None:
        bias = old.output.bias.double()
        if middle is not None:
            shared = middle.unflatten(0, (old.kv_heads, -1)).repeat_interleave(group, dim=0)
            bias = bias + weight @ shared.flatten()
        new["output"].bias.copy_(bias)


def _key_maps(curve: LayerCurves, cut: Cut) -> tuple[Tensor | None, Tensor | None]:
    """Return the maps on queries and keys of all heads; None where nothing changes."""
    p = curve.parts
    group = p.heads // p.kv_heads
    if cut.keys == "full":
        return None, None
    if cut.keys == "latent":
        return None, curve.key_factors[0].maps(cut.rank)[0]
    if cut.keys == "factors":
        maps = [each.maps(cut.rank) for each in curve.key_factors]
        query = torch.block_diag(*(expand.T for _, expand in maps for _ in range(group)))
        return query, torch.block_diag(*(compress for compress, _ in maps))
    eye = torch.eye(p.head_dim, dtype=torch.float64)
    picked = [eye[torch.cat([kept, kept + p.head_dim // 2])] for kept in _kept_pairs(curve, cut)]
    query = torch.block_diag(*(each for each in picked for _ in range(group)))
    device = p.key.weight.device
    return query.to(device), torch.block_diag(*picked).to(device)


def _kept_pairs(curve: LayerCurves, cut: Cut) -> Tensor:
    """Return (kv_heads, m): the rotation pairs that each head keeps, in ascending order."""
    dropped = curve.parts.head_dim // 2 - cut.rank // 2
    return torch.tensor([sorted(order[dropped:]) for order, _ in curve.pair_orders])


def _write(
    new: nn.Linear, old: nn.Linear, maps: Tensor | None, shift: Tensor | None = None
) -> None:
    """Write maps @ old into new; the shift is taken off what comes out of old."""
    weight = old.weight.double()
    new.weight.copy_(weight if maps is None else maps @ weight)
    if old.bias is not None:
        bias = old.bias.double() if shift is None else old.bias.double() - shift
        new.bias.copy_(bias if maps is None else maps @ bias)
