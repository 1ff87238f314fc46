"""Write the smaller maps into a copy of a model."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from headwise.reduction.families import (
    SHARED,
    AttentionParts,
    attention_blocks,
    attention_parts,
    block_maps,
    class_of,
)
from headwise.reduction.maps import QueryKeyMaps, ValueMaps, write_maps
from headwise.reduction.planning import Cut, LayerCurves
from headwise.reduction.rotary import kept_pairs, pair_places, picking

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
        "base": class_of(model),
        "layers": [asdict(cut) for cut in cuts],
    }
    kept = next(model.parameters())
    cut_layers(made, made.config.headwise["layers"])
    made.to(kept.device, kept.dtype).eval()
    for block, curve, cut in zip(attention_blocks(made), curves, cuts, strict=True):
        write_maps(block_maps(block, made.config), curve.parts, *maps_of(curve, cut))
        if cut.keys == "pairs":
            block.self_attn.pairs.copy_(kept_pairs(curve.pair_orders, cut.rank // 2))
        if cut.keys in SHARED:
            compress, expand = curve.key_factors[0].maps(cut.rank)
            block.self_attn.k_restore.weight.copy_(expand)
            if cut.keys == "rotated":
                block.self_attn.k_compress.weight.copy_(compress)
    return made


def _named(cut: Cut, parts: AttentionParts) -> Cut:
    """Keys of a decoder that are not cut stay as they are: at full rank maps only add to them."""
    shared = parts.kv_heads if cut.keys in SHARED else 1
    whole = cut.keys != "factors" and cut.rank == parts.head_dim * shared
    return Cut("full", parts.head_dim, cut.value_rank) if whole else cut


def maps_of(curve: LayerCurves, cut: Cut) -> tuple[QueryKeyMaps, ValueMaps]:
    """Return the smaller maps of one layer at the ranks of a cut."""
    return _key_maps(curve, cut), _value_maps(curve, cut.value_rank)


def _key_maps(curve: LayerCurves, cut: Cut) -> QueryKeyMaps:
    d = curve.parts.head_dim
    if cut.keys in ("full", "rotated"):
        return QueryKeyMaps()
    if cut.keys == "pairs":
        kept = kept_pairs(curve.pair_orders, cut.rank // 2)
        picked = picking(kept, *pair_places(d, d, "halves"), rank=d)
        return QueryKeyMaps(picked, picked)
    compress, expand = curve.key_maps(cut.rank)
    if cut.keys == "latent":
        return QueryKeyMaps(key=compress)
    centred = curve.centred_keys and cut.rank < d
    shift = curve.moments.keys.mean(curve.weighted) if centred else None
    return QueryKeyMaps(expand.mT, compress, shift)


def _value_maps(curve: LayerCurves, rank: int) -> ValueMaps:
    old = curve.parts
    group = old.heads // old.kv_heads
    compress, expand = curve.value_maps(rank)
    weight = old.output.weight.double().cpu()
    bias = None if old.output.bias is None else old.output.bias.double().cpu()
    shift = None
    if bias is not None and curve.centred_values and rank < old.head_dim:
        shift = curve.moments.values.mean(curve.weighted)
        by_head = shift.unflatten(0, (old.kv_heads, -1)).repeat_interleave(group, dim=0)
        bias = bias + weight @ by_head.flatten()
    restore = torch.block_diag(*expand.repeat_interleave(group, dim=0))
    return ValueMaps(compress, weight @ restore, bias, shift)
