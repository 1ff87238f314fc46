"""What the calibration inputs do in a layer, and the best cuts of its maps for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from headwise.attention import Attention, MaskLike, Padding, Rotary, as_mask
from headwise.attention.weighting import Heads
from headwise.errors import BadInputError, ParameterError
from headwise.reduction.factors import Factors, best_factors, refitted_output
from headwise.reduction.rotary import (
    KeptPairs,
    frequencies_of,
    order_of_dropping,
    pair_interactions,
    pair_places,
    split_of_rank,
)


@dataclass(frozen=True, eq=False)
class HeadsOf(Heads):
    """Heads whose values can be replaced."""

    def with_values(self, values: Tensor) -> Heads:
        """Return the same heads with other values."""
        return Heads(self.queries, self.keys, values, self.mask, self.temperature)


@dataclass(frozen=True, eq=False)
class Pass:
    """One call of a layer: tokens, queries and keys before and after their turn, and values."""

    layer: Attention
    tokens: Tensor
    real: Tensor
    heads: HeadsOf

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
        return cls(layer, tokens, real, HeadsOf(q, k, v, rule, layer.temperature))

    @property
    def rows(self) -> Tensor:
        """Real tokens, (tokens, width)."""
        return self.tokens[self.real]

    def of_head(self, states: Tensor) -> Tensor:
        """Return (heads, tokens, r): real tokens of queries, keys or mixed values."""
        return states.transpose(1, 2)[self.real].transpose(0, 1)

    def projected(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values without positions."""
        return self.layer.projection(self.tokens, self.tokens)

    def mixed(self) -> Tensor:
        """Return the weighted sums of values of every head."""
        return self.layer.weighting.mix(self.heads)

    def combined(self, mixed: Tensor) -> Tensor:
        """Return the output for these sums."""
        return self.layer.projection.combine(mixed, self.layer.factor)

    def output(self) -> Tensor:
        """Return the output of every token."""
        return self.combined(self.mixed())

    def chosen(self, output: Tensor) -> Tensor:
        """Return the rows of real tokens."""
        return output[self.real]

    def output_rows(self) -> Tensor:
        """Return the output of real tokens."""
        return self.chosen(self.output())

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


@dataclass(frozen=True, eq=False)
class CutQueries:
    """Maps (kv_heads, r, d_h) that make the new queries and keys, and the angles left."""

    query: Tensor
    key: Tensor
    shift: Tensor
    loss: float
    frequencies: Tensor | None = None


def cut_queries(layer: Attention, seen: Pass, rank: int) -> CutQueries:
    """Return the best maps of queries and keys of this rank."""
    g = layer.geometry
    eye = torch.eye(g.qk_rank, dtype=torch.float64, device=seen.tokens.device)
    eye = eye.expand(g.kv_heads, -1, -1)
    shift = torch.zeros(g.kv_heads, g.qk_rank, dtype=torch.float64, device=eye.device)
    if rank == g.qk_rank:
        return CutQueries(eye, eye, shift, 0.0)
    if layer.position.turned_rank:
        return _cut_pairs(layer, seen, rank)
    queries, keys, _ = seen.projected()
    queries, keys = seen.of_head(queries), seen.of_head(keys)
    if _centred(layer):
        shift = keys.mean(1)
        keys = keys - shift.unsqueeze(1)
    grouped = queries.unflatten(0, (g.kv_heads, g.group)).flatten(1, 2)
    found = [
        best_factors(k.mT @ k / len(k), q.mT @ q / len(q))
        for q, k in zip(grouped, keys, strict=True)
    ]
    maps = [each.maps(rank) for each in found]
    lost, whole_loss = (sum(float(each.losses[at]) for each in found) for at in (rank, 0))
    return CutQueries(
        query=torch.stack([expand.T for _, expand in maps]),
        key=torch.stack([compress for compress, _ in maps]),
        shift=shift,
        loss=lost / max(whole_loss, 1e-300),
    )


def _cut_pairs(layer: Attention, seen: Pass, rank: int) -> CutQueries:
    """Drop rotation pairs, and cut the dimensions that do not turn in closed form."""
    g, rule = layer.geometry, layer.position
    if not isinstance(rule, Rotary | KeptPairs):
        raise BadInputError(
            f"expected Rotary or no positions in queries and keys, got {type(rule).__name__}",
            hint="reduce the values only: pass value_rank and leave rank",
        )
    turned = rule.turned_rank
    first, second = pair_places(g.qk_rank, turned, getattr(rule, "pairs", "halves"))
    real = seen.real[:, None, :, None]
    queries = (seen.heads.queries * real).unflatten(1, (g.kv_heads, g.group))
    keys = seen.heads.keys * real
    orders, still = [], []
    for head in range(g.kv_heads):
        orders.append(
            order_of_dropping(pair_interactions(queries[:, head], keys[:, head], first, second))
        )
        q = queries[:, head, ..., : g.qk_rank - turned].flatten(0, 2)
        k = keys[:, head, ..., : g.qk_rank - turned].flatten(0, 1)
        # Over len(keys)² pairs of tokens; the pairs above are counted within sequences only.
        still.append(best_factors(k.mT @ k / len(keys), q.mT @ q))
    cut = _kept_pairs(layer, rank, orders, still)
    return replace(cut, loss=_lost_logits(cut, queries, keys))


def _lost_logits(cut: CutQueries, queries: Tensor, keys: Tensor) -> float:
    """Return the exact share of the squared logits that a cut loses, within sequences."""
    eye = torch.eye(keys.shape[-1], dtype=keys.dtype, device=keys.device)
    lost, total = 0.0, 0.0
    for head in range(keys.shape[1]):
        rest = eye - cut.query[head].mT @ cut.key[head]
        asking = torch.einsum("bgnd,bgne->bde", queries[:, head], queries[:, head])
        asked = keys[:, head].mT @ keys[:, head]
        lost += float(((asking @ rest) * (rest @ asked)).sum())
        total += float((asking * asked).sum())
    return lost / max(total, 1e-300)


def _kept_pairs(
    layer: Attention, rank: int, orders: list[tuple[list[int], list[float]]], still: list[Factors]
) -> CutQueries:
    g, rule = layer.geometry, layer.position
    assert isinstance(rule, Rotary | KeptPairs)
    first, second = pair_places(g.qk_rank, rule.turned_rank, getattr(rule, "pairs", "halves"))
    moving = [sum(each) for each in zip(*(losses[::-1] for _, losses in orders), strict=True)]
    lying = [sum(map(float, each)) for each in zip(*(f.losses for f in still), strict=True)]
    kept_still, kept_pairs, _ = split_of_rank(lying, moving, rank)
    if kept_still + 2 * kept_pairs != rank:
        raise ParameterError(
            f"expected an even rank, got {rank}: rotary positions turn dimensions in pairs",
            hint=f"pass rank={rank - 1 or 2} or rank={rank + 1}",
        )
    angles, query, key = [], [], []
    for (order, _), factors, own in zip(
        orders, still, frequencies_of(rule, g.kv_heads), strict=True
    ):
        kept = sorted(order[len(order) - kept_pairs :])
        places = torch.cat([first[kept], second[kept]])
        picked = torch.eye(g.qk_rank, dtype=torch.float64)[places]
        compress, expand = factors.maps(kept_still)
        beyond = (0, rule.turned_rank)
        query.append(torch.cat([pad(expand.T, beyond), picked]))
        key.append(torch.cat([pad(compress, beyond), picked]))
        angles.append(own[kept])
    return CutQueries(
        torch.stack(query),
        torch.stack(key),
        torch.zeros(g.kv_heads, g.qk_rank, dtype=torch.float64),
        loss=0.0,
        frequencies=torch.stack(angles),
    )


@dataclass(frozen=True, eq=False)
class CutValues:
    """Maps (kv_heads, v, d_v) that make the new values, and the output map fitted to them."""

    value: Tensor
    output: Tensor
    bias: Tensor
    loss: float


def cut_values(layer: Attention, seen: Pass, rank: int) -> CutValues:
    """Return the best maps of values of this rank, and the output fitted to them."""
    g, linear = layer.geometry, layer.projection.output
    output = layer.factor * linear.weight.double()
    bias = torch.zeros_like(output[:, 0]) if linear.bias is None else linear.bias.double()
    mixed = seen.of_head(seen.mixed())
    middle = mixed.mean(1, keepdim=True) * float(linear.bias is not None)
    mixed = mixed - middle
    by_group = mixed.unflatten(0, (g.kv_heads, g.group))
    columns = output.T.unflatten(0, (g.kv_heads, g.group, g.v_rank))
    maps = []
    for states, rows in zip(by_group, columns, strict=True):
        flat = states.flatten(0, 1)
        metric = torch.einsum("gvd,gwd->vw", rows, rows)
        maps.append(best_factors(flat.mT @ flat / len(flat), metric).maps(rank))
    compress = torch.stack([each for each, _ in maps])
    kept = torch.block_diag(*compress.repeat_interleave(g.group, dim=0))
    restore = torch.block_diag(*(expand for _, expand in maps for _ in range(g.group)))
    rows = mixed.transpose(0, 1).flatten(1)
    moment = rows.mT @ rows / len(rows)
    fitted, loss = refitted_output(output, moment, kept, restore)
    base = middle.flatten()
    total = float(((output @ moment) * output).sum() + (output @ base + bias).square().sum())
    bias = bias + output @ base - fitted @ (kept @ base)
    return CutValues(compress, fitted / layer.factor, bias, loss / max(total, 1e-300))
