"""The best smaller maps of one layer for some inputs, and what they lose there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from headwise.attention import Attention, MaskLike, Padding, Rotary, as_mask
from headwise.attention.weighting import Heads
from headwise.errors import BadInputError, ParameterError
from headwise.reduction.factors import best_factors, refitted_output
from headwise.reduction.maps import QueryKeyMaps, ValueMaps, stacked_maps
from headwise.reduction.rotary import (
    KeptPairs,
    frequencies_of,
    kept_pairs,
    order_of_dropping,
    pair_interactions,
    pair_places,
    picking,
    split_of_rank,
)


@dataclass(frozen=True, eq=False)
class Pass:
    """One call of a layer: tokens, queries and keys before and after their turn, and values."""

    layer: Attention
    tokens: Tensor
    real: Tensor
    heads: Heads

    @classmethod
    def of(cls, layer: Attention, inputs: Tensor, real: Tensor | None, mask: MaskLike) -> Pass:
        """Call a layer on inputs without padding, in the dtype of the layer."""
        if inputs.ndim != 3:
            raise BadInputError(
                f"expected inputs of shape (batch, sequence, width), got {tuple(inputs.shape)}",
                hint="add a batch dimension",
            )
        rule = as_mask(mask)
        if real is None:
            real = torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        else:
            rule = rule & Padding(real)
        wide = next(layer.parameters()).dtype
        tokens = layer.position.embed(inputs.to(wide))
        q, k, v = layer.projection(tokens, tokens)
        q, k = layer.position.turn(q, k)
        return cls(layer, tokens, real, Heads(q, k, v, rule, layer.temperature))

    def of_head(self, states: Tensor) -> Tensor:
        """Return (heads, tokens, r): real tokens of queries, keys or mixed values."""
        return states.transpose(1, 2)[self.real].transpose(0, 1)

    def mixed(self) -> Tensor:
        """Return the weighted sums of values of every head."""
        return self.layer.weighting.mix(self.heads)

    def output(self, mixed: Tensor | None = None) -> Tensor:
        """Return the output of real tokens, (tokens, width), for these sums or its own."""
        mixed = self.mixed() if mixed is None else mixed
        return self.layer.projection.combine(mixed, self.layer.factor)[self.real]

    def logits(self) -> Tensor:
        """Return the logits of all pairs of real tokens, zero elsewhere."""
        heads = self.heads
        real = self.real[:, None, :, None]
        keys = heads.keys * real
        if _centred(self.layer):
            keys = (heads.keys - keys.sum(2, keepdim=True) / real.sum(2, keepdim=True)) * real
        return (heads.queries * real) @ heads.shared(keys).mT / heads.temperature


def share_of(change: Tensor, before: Tensor) -> float:
    """Return E change² / E before²."""
    change, before = change.double(), before.double()
    return float(change.square().sum() / before.square().sum().clamp_min(1e-300))


def _centred(layer: Attention) -> bool:
    """Whether keys may shift: softmax ignores it, and a bias can hold it."""
    return layer.projection.biases != "none" and layer.position.turned_rank == 0


def best_key_maps(layer: Attention, seen: Pass, rank: int) -> tuple[QueryKeyMaps, float]:
    """Return the best maps of queries and keys of this rank, and their share of lost logits²."""
    g = layer.geometry
    if rank == g.qk_rank:
        return QueryKeyMaps(), 0.0
    if layer.position.turned_rank:
        return _best_pairs(layer, seen, rank)
    queries, keys, _ = layer.projection(seen.tokens, seen.tokens)
    queries, keys = seen.of_head(queries), seen.of_head(keys)
    shift = None
    if _centred(layer):
        shift = keys.mean(1)
        keys = keys - shift.unsqueeze(1)
    grouped = queries.unflatten(0, (g.kv_heads, g.group)).flatten(1, 2)
    found = [
        best_factors(k.mT @ k / len(k), q.mT @ q / len(q))
        for q, k in zip(grouped, keys, strict=True)
    ]
    compress, expand = stacked_maps(found, rank)
    lost, whole_loss = (sum(float(each.losses[at]) for each in found) for at in (rank, 0))
    return QueryKeyMaps(expand.mT, compress, shift), lost / max(whole_loss, 1e-300)


def _best_pairs(layer: Attention, seen: Pass, rank: int) -> tuple[QueryKeyMaps, float]:
    """Drop rotation pairs, and cut the dimensions that do not turn in closed form."""
    g, rule = layer.geometry, layer.position
    if not isinstance(rule, Rotary | KeptPairs):
        raise BadInputError(
            f"expected Rotary or no positions in queries and keys, got {type(rule).__name__}",
            hint="reduce the values only: pass value_rank and leave rank",
        )
    turned = rule.turned_rank
    places = pair_places(g.qk_rank, turned, getattr(rule, "pairs", "halves"))
    real = seen.real[:, None, :, None]
    queries = (seen.heads.queries * real).unflatten(1, (g.kv_heads, g.group))
    keys = seen.heads.keys * real
    orders, still = [], []
    for head in range(g.kv_heads):
        orders.append(
            order_of_dropping(pair_interactions(queries[:, head], keys[:, head], *places))
        )
        q = queries[:, head, ..., : g.qk_rank - turned].flatten(0, 2)
        k = keys[:, head, ..., : g.qk_rank - turned].flatten(0, 1)
        # Over len(keys)² pairs of tokens; the pairs above are counted within sequences only.
        still.append(best_factors(k.mT @ k / len(keys), q.mT @ q))
    moving = [sum(each) for each in zip(*(losses[::-1] for _, losses in orders), strict=True)]
    lying = [sum(map(float, each)) for each in zip(*(f.losses for f in still), strict=True)]
    still_count, pair_count, _ = split_of_rank(lying, moving, rank)
    if still_count + 2 * pair_count != rank:
        raise ParameterError(
            f"expected an even rank, got {rank}: rotary positions turn dimensions in pairs",
            hint=f"pass rank={rank - 1 or 2} or rank={rank + 1}",
        )
    kept = kept_pairs(orders, pair_count)
    picked = picking(kept, *places, rank=g.qk_rank)
    compress, expand = stacked_maps(still, still_count)
    query, key = (
        torch.cat([pad(each, (0, turned)), picked.to(each)], dim=1)
        for each in (expand.mT, compress)
    )
    angles = frequencies_of(rule, g.kv_heads).gather(1, kept)
    found = QueryKeyMaps(query, key, frequencies=angles)
    return found, _lost_logits(found, queries, keys)


def _lost_logits(cut: QueryKeyMaps, queries: Tensor, keys: Tensor) -> float:
    """Return the exact share of the squared logits that a cut loses, within sequences."""
    assert cut.query is not None and cut.key is not None
    eye = torch.eye(keys.shape[-1], dtype=keys.dtype, device=keys.device)
    lost, total = 0.0, 0.0
    for head in range(keys.shape[1]):
        rest = eye - cut.query[head].mT @ cut.key[head]
        asking = torch.einsum("bgnd,bgne->bde", queries[:, head], queries[:, head])
        asked = keys[:, head].mT @ keys[:, head]
        lost += float(((asking @ rest) * (rest @ asked)).sum())
        total += float((asking * asked).sum())
    return lost / max(total, 1e-300)


def best_value_maps(layer: Attention, seen: Pass, rank: int) -> tuple[ValueMaps, float]:
    """Return the best maps of values of this rank, the output fitted to them, and their loss."""
    g, linear = layer.geometry, layer.projection.output
    output = layer.factor * linear.weight.double()
    bias = torch.zeros_like(output[:, 0]) if linear.bias is None else linear.bias.double()
    mixed = seen.of_head(seen.mixed())
    middle = mixed.mean(1, keepdim=True) * float(linear.bias is not None)
    mixed = mixed - middle
    by_group = mixed.unflatten(0, (g.kv_heads, g.group))
    columns = output.T.unflatten(0, (g.kv_heads, g.group, g.v_rank))
    found = []
    for states, rows in zip(by_group, columns, strict=True):
        flat = states.flatten(0, 1)
        metric = torch.einsum("gvd,gwd->vw", rows, rows)
        found.append(best_factors(flat.mT @ flat / len(flat), metric))
    compress, expand = stacked_maps(found, rank)
    kept, restore = (
        torch.block_diag(*each.repeat_interleave(g.group, dim=0)) for each in (compress, expand)
    )
    rows = mixed.transpose(0, 1).flatten(1)
    moment = rows.mT @ rows / len(rows)
    fitted, loss = refitted_output(output, moment, kept, restore)
    base = middle.flatten()
    total = float(((output @ moment) * output).sum() + (output @ base + bias).square().sum())
    bias = bias + output @ base - fitted @ (kept @ base)
    return ValueMaps(compress, fitted / layer.factor, bias), loss / max(total, 1e-300)
