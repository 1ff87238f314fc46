"""Reduce one attention layer, headwise's or torch's, and measure what that costs."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from headwise.attention import (
    EVERYTHING,
    AnyMap,
    Attention,
    FullProjection,
    GroupedProjection,
    HeadGeometry,
    MaskLike,
)
from headwise.checks import whole
from headwise.errors import BadInputError
from headwise.reduction.best_maps import Pass, best_key_maps, best_value_maps, share_of
from headwise.reduction.families import AttentionParts
from headwise.reduction.maps import QueryKeyMaps, ValueMaps, write_maps
from headwise.reduction.rotary import KeptPairs
from headwise.report.results import short_repr


@dataclass(frozen=True)
class Damage:
    """What a cut changes, as shares of what was there.

    Attributes:
        logits: E (change of a logit)² / E logit², over all pairs of real tokens. Without rotary
            positions logits are centred over keys first if the layer has biases, because softmax
            ignores a constant in a row.
        values: E‖change of the output‖² / E‖output‖² if only values and output are cut.
        output: The same with both cuts; None where it was not measured.
    """

    logits: float
    values: float
    output: float | None = None


@dataclass(frozen=True, eq=False)
class ReducedLayer:
    """A smaller layer, and what its cut costs.

    Attributes:
        layer: The smaller layer. It replaces the original one, also ``nn.MultiheadAttention``.
        original: The layer before the cut, as a headwise layer.
        predicted: Damage by the discarded singular values, on the inputs of the calibration.
    """

    layer: Attention
    original: Attention
    predicted: Damage

    __repr__ = short_repr

    @torch.no_grad()
    def measure(
        self,
        inputs: Tensor,
        *,
        real: Tensor | None = None,
        mask: MaskLike = EVERYTHING,
    ) -> Damage:
        """Measure the damage on inputs, best on ones that were not used for the cut.

        Args:
            inputs: Tokens (batch, sequence, width).
            real: True where a token is real; all by default.
            mask: Which keys each query attends to, for example "causal".

        Returns:
            Shares of the squared logits and outputs that the cut changes on these inputs.
        """
        before = Pass.of(self.original, inputs, real, mask)
        after = Pass.of(self.layer, inputs, real, mask)
        mixed = self.original.weighting.mix(replace(before.heads, values=after.heads.values))
        wanted = before.output()
        return Damage(
            logits=share_of(after.logits() - before.logits(), before.logits()),
            values=share_of(after.output(mixed) - wanted, wanted),
            output=share_of(after.output() - wanted, wanted),
        )


@torch.no_grad()
def reduce_layer(
    layer: nn.Module,
    inputs: Tensor,
    *,
    rank: int | None = None,
    value_rank: int | None = None,
    real: Tensor | None = None,
    mask: MaskLike = EVERYTHING,
) -> ReducedLayer:
    """Cut an attention layer to a lower rank at the least cost on these inputs.

    Queries and keys: without rotary positions W_QᵀW_K is one matrix for each head, and the cut is
    the optimum of E (change of q·k)² over independent tokens. Heads that share a key share the
    cut. Rotary positions allow only whole rotation pairs to go; those with the least share of the
    logits go first. Values and output: first the best subspace of each head (or group of heads)
    for E‖W_O (z − P z)‖², then W_O is fitted again to what is left of all heads together.

    Args:
        layer: A layer of headwise with full or grouped projections, or ``nn.MultiheadAttention``.
        inputs: Tokens (batch, sequence, width) as the layer meets them.
        rank: The new rank of queries and keys; unchanged by default.
        value_rank: The new rank of values; ``rank`` by default.
        real: True where a token is real; padding takes no part. All by default.
        mask: Which keys each query attends to, for example "causal".

    Returns:
        The smaller layer with its predicted damage. At full rank it equals the original.

    Raises:
        BadInputError: The layer is of a kind that cannot be cut, or there are fewer tokens than
            dimensions in a head, or a rank is out of range.

    Example:
        >>> from headwise.attention import mha
        >>> x = torch.randn(4, 16, 8, generator=torch.Generator().manual_seed(0))
        >>> cut = reduce_layer(mha(HeadGeometry.standard(8, heads=2)), x, rank=2)
        >>> cut.layer.geometry.qk_rank, cut.layer(x).shape
        (2, torch.Size([4, 16, 8]))
        >>> 0 < cut.predicted.values < 1
        True
    """
    original = _as_attention(layer)
    g = original.geometry
    rank = whole("rank", g.qk_rank if rank is None else rank, most=g.qk_rank)
    value_rank = whole("value_rank", value_rank or min(rank, g.v_rank), most=g.v_rank)
    exact = copy.deepcopy(original).double().eval()
    seen = Pass.of(exact, inputs, real, mask)
    tokens, least = int(seen.real.sum()), max(g.qk_rank, g.v_rank)
    if tokens < least:
        raise BadInputError(
            f"expected at least {least} tokens to calibrate on, got {tokens}",
            hint="pass more inputs",
        )
    keys, logits_lost = best_key_maps(exact, seen, rank)
    values, values_lost = best_value_maps(exact, seen, value_rank)
    made = with_maps(original, keys, values)
    return ReducedLayer(made, original, Damage(logits=logits_lost, values=values_lost))


@torch.no_grad()
def with_maps(original: Attention, keys: QueryKeyMaps, values: ValueMaps) -> Attention:
    """Return a layer with smaller maps, and everything else as it was."""
    g, old = original.geometry, original.projection
    assert isinstance(old, GroupedProjection)
    rank = g.qk_rank if keys.key is None else keys.key.shape[1]
    geometry = HeadGeometry(g.width, g.heads, g.kv_heads, rank, values.value.shape[1])
    kind = FullProjection if g.kv_heads == g.heads else GroupedProjection
    made = kind(geometry, old.biases).to(old.output.weight)
    smaller, parts = (
        {name: getattr(each, name) for name in ("query", "key", "value", "output")}
        for each in (made, old)
    )
    write_maps(smaller, AttentionParts(**parts, heads=g.heads, kv_heads=g.kv_heads), keys, values)
    new = copy.copy(original)
    new._modules = dict(original._modules)
    new.projection, new.observer = made, None
    if keys.frequencies is not None:
        new.position = KeptPairs(keys.frequencies).to(old.output.weight.device)
    return new


def _as_attention(layer: nn.Module) -> Attention:
    """Return the layer as a headwise layer that can be cut, or refuse it by name."""
    if isinstance(layer, nn.MultiheadAttention):
        return _from_torch(layer)
    if not isinstance(layer, Attention):
        raise BadInputError(
            f"expected headwise's Attention or nn.MultiheadAttention, got {type(layer).__name__}",
            hint="use headwise.reduce for a Hugging Face model",
        )
    if not isinstance(layer.projection, GroupedProjection) or isinstance(layer.weighting, AnyMap):
        raise BadInputError(
            f"expected full or grouped projections with softmax or hardmax, got "
            f"{type(layer.projection).__name__} with {type(layer.weighting).__name__}",
            hint="latent attention is compressed already, and other maps have no query-key form",
        )
    return layer


def _from_torch(layer: nn.MultiheadAttention) -> Attention:
    for name, value in (
        ("kdim or vdim", not layer._qkv_same_embed_dim),
        ("add_bias_kv", layer.bias_k is not None),
        ("add_zero_attn", layer.add_zero_attn),
    ):
        if value:
            raise BadInputError(
                f"expected nn.MultiheadAttention without {name}, got one with it",
                hint="build the layer without it",
            )
    geometry = HeadGeometry.standard(layer.embed_dim, layer.num_heads)
    biased = layer.in_proj_bias is not None
    projection = FullProjection(geometry, "all" if biased else "none").to(layer.out_proj.weight)
    parts = (projection.query, projection.key, projection.value)
    for part, weight in zip(parts, layer.in_proj_weight.chunk(3), strict=True):
        part.weight.copy_(weight)
    projection.output.weight.copy_(layer.out_proj.weight)
    if biased:
        for part, bias in zip(parts, layer.in_proj_bias.chunk(3), strict=True):
            part.bias.copy_(bias)
        projection.output.bias.copy_(layer.out_proj.bias)
    made = Attention(projection, dropout=layer.dropout, batch_first=layer.batch_first)
    return made.train(layer.training)
