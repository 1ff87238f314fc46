"""From moments to a plan: error-rank curves of every layer, a budget, and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from headwise.reduction.allocation import Option, Part, allocate
from headwise.reduction.between_tokens import maps_between_tokens
from headwise.reduction.budgets import Budget, affordable, refuse_rank
from headwise.reduction.calibration import LayerMoments, Moments
from headwise.reduction.factors import Factors, best_factors
from headwise.reduction.families import AttentionParts, Keys
from headwise.reduction.maps import stacked_maps
from headwise.reduction.rotary import order_of_dropping, over_positions, pair_places
from headwise.reduction.sizes import Kind, LayerSizes, Measure, cut_kinds

#: Rotated keys are cut for tokens at all positions below this.
POSITIONS = 2048


@dataclass(frozen=True)
class Cut:
    """The ranks of one layer.

    Attributes:
        keys: How keys are cut.
        rank: The rank of each key head, or of the shared latent.
        value_rank: The rank of each value head.
    """

    keys: str
    rank: int
    value_rank: int


@dataclass(frozen=True, eq=False)
class LayerCurves:
    """The best cuts of one layer at every rank, with their losses.

    Attributes:
        parts: The maps of the layer.
        moments: Of its keys and values.
        kind: How keys are cut.
        weighted: Whether keys and values count with the squared norm of their gradients.
    """

    parts: AttentionParts
    moments: LayerMoments
    kind: Keys
    weighted: bool = False

    @cached_property
    def key_factors(self) -> list[Factors]:
        """Factors of each key head, or of all together for a latent."""
        keys = self.moments.keys
        moment, metric = keys.moment(weighted=self.weighted), keys.metric()
        if self.kind == "latent":
            return [best_factors(moment, metric)]
        if self.kind == "rotated":
            p = self.parts
            assert p.rope_theta is not None
            angles = p.rope_theta ** -(torch.arange(0, p.head_dim, 2).double() / p.head_dim)
            both = [over_positions(each, angles, POSITIONS) for each in (moment, metric)]
            return [best_factors(*both)]
        return self._by_head(keys, self.centred_keys)

    @cached_property
    def value_factors(self) -> list[Factors]:
        """Factors of each value head."""
        return self._by_head(self.moments.values, self.centred_values)

    def _by_head(self, moments: Moments, centred: bool) -> list[Factors]:
        moment = moments.moment(centred=centred, weighted=self.weighted)
        metric, d = moments.metric(), self.parts.head_dim
        cuts = [slice(head * d, (head + 1) * d) for head in range(self.parts.kv_heads)]
        return [best_factors(moment[cut, cut], metric[cut, cut]) for cut in cuts]

    def key_maps(self, rank: int) -> tuple[Tensor, Tensor]:
        """Return compress and expand of the key heads, or of the latent, at a rank."""
        return self._maps(self.key_factors, self.moments.keys, rank, self.centred_keys)

    def value_maps(self, rank: int) -> tuple[Tensor, Tensor]:
        """Return compress and expand of the value heads at a rank."""
        return self._maps(self.value_factors, self.moments.values, rank, self.centred_values)

    def _maps(
        self, factors: list[Factors], moments: Moments, rank: int, centred: bool
    ) -> tuple[Tensor, Tensor]:
        """Count the terms between tokens if the moments of single sequences are there."""
        samples = moments.samples(centred=centred, weighted=self.weighted)
        if samples is None or rank == self.parts.head_dim:
            return stacked_maps(factors, rank)
        return maps_between_tokens(samples, rank)

    @cached_property
    def pair_orders(self) -> list[tuple[list[int], list[float]]]:
        """For each key head: its rotation pairs in the order of dropping, and the losses."""
        d = self.parts.head_dim
        moments = self.moments.keys
        table = moments.moment() * moments.metric()
        order = torch.stack(pair_places(d, d, "halves"), dim=1).flatten()
        found = []
        for head in range(self.parts.kv_heads):
            own = table[head * d : (head + 1) * d, head * d : (head + 1) * d][order][:, order]
            found.append(order_of_dropping(own.reshape(d // 2, 2, d // 2, 2).sum((1, 3))))
        return found

    @property
    def centred_keys(self) -> bool:
        """Whether a shift of all keys is free: softmax ignores it, and a bias holds it."""
        return self.kind == "factors" and self.parts.key.bias is not None

    @property
    def centred_values(self) -> bool:
        """Whether the mean value can move into the bias of the output."""
        return self.parts.output.bias is not None and self.parts.value.bias is not None

    def key_losses(self) -> dict[int, float]:
        """Return the loss of the keys by rank."""
        if self.kind == "pairs":
            pairs = self.parts.head_dim // 2
            return {
                2 * kept: sum(losses[pairs - kept] for _, losses in self.pair_orders)
                for kept in range(pairs + 1)
            }
        return _losses(self.key_factors)

    def value_losses(self) -> dict[int, float]:
        """Return the loss of the values by rank."""
        return _losses(self.value_factors)

    @property
    def sizes(self) -> LayerSizes:
        """The ranks that the layer may have, and what it then costs."""
        return LayerSizes(self.parts, self.kind)

    def part(self, layer: int, kind: Kind, *, measure: Measure, itemsize: int, step: int) -> Part:
        """Return the options of the keys or values."""
        losses = self.key_losses() if kind == "keys" else self.value_losses()
        sizes = self.sizes
        options = tuple(
            Option(r, sizes.cost(kind, r, measure, itemsize), losses[r])
            for r in sizes.ranks(kind, step)
        )
        return Part(layer, kind, options, energy=losses[0])


def plan(
    curves: Sequence[LayerCurves],
    budget: Budget,
    *,
    itemsize: int,
    step: int = 8,
    only: Kind | None = None,
) -> list[Cut]:
    """Choose the ranks of every layer for a budget.

    Args:
        curves: The layers.
        budget: What the model may cost.
        itemsize: Bytes of one number in the cache.
        step: Ranks are multiples of it.
        only: Cut keys or values alone; the budget counts these alone.

    Returns:
        One cut for each layer.
    """
    sizes = [each.sizes for each in curves]
    parts = [
        each.part(layer, kind, measure=budget.measure, itemsize=itemsize, step=step)
        for layer, each in enumerate(curves)
        for kind in cut_kinds(only)
    ]
    if budget.asked is not None:
        chosen = allocate(parts, affordable(sizes, budget, itemsize, step, only))
    else:
        if budget.rank is not None:
            refuse_rank(sizes, budget.rank, step, only)
        chosen = [_by_rule(part, budget) for part in parts]
    ranks = {(p.layer, p.kind): option.rank for p, option in zip(parts, chosen, strict=True)}
    return [
        Cut(
            each.kind,
            ranks.get((layer, "keys"), each.sizes.whole("keys")),
            ranks.get((layer, "values"), each.sizes.whole("values")),
        )
        for layer, each in enumerate(curves)
    ]


def predicted_loss(curves: Sequence[LayerCurves], cuts: Sequence[Cut]) -> float:
    """Return the sum of the losses of all cuts."""
    return sum(
        each.key_losses()[cut.rank] + each.value_losses()[cut.value_rank]
        for each, cut in zip(curves, cuts, strict=True)
    )


def _by_rule(part: Part, budget: Budget) -> Option:
    """Choose by a rank for all, or by the share of energy to keep."""
    if budget.rank is not None:
        fitting = [option for option in part.options if option.rank <= budget.rank]
        return max(fitting, key=lambda option: option.rank)
    assert budget.keep is not None
    allowed = (1 - budget.keep) * part.energy * (1 + 1e-12)
    enough = [option for option in part.options if option.loss <= allowed] or [part.full]
    return min(enough, key=lambda option: option.rank)


def _losses(factors: Sequence[Factors]) -> dict[int, float]:
    total: Tensor = torch.stack([each.losses for each in factors]).sum(0)
    return {rank: float(loss) for rank, loss in enumerate(total)}
