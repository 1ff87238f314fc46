"""Cut queries and keys that rotary positions turn: drop whole rotation pairs.

Rotary positions turn each pair of dimensions by its own angle, so the query-key form depends on
the distance and is not one matrix. Maps that mix pairs do not commute with the rotation. Dropping a
pair does: the other pairs and their angles stay exactly as they were, and the logits lose exactly
the terms of the dropped pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from headwise.attention import PositionRule, Rotary
from headwise.shapes import Float


def pair_interactions(
    queries: Float[Tensor, "b g n d"], keys: Float[Tensor, "b m d"], first: Tensor, second: Tensor
) -> Float[Tensor, "p p"]:
    """Return what pairs of dimensions contribute to the squared logits of one group of heads.

    Args:
        queries: Turned queries of the heads that share the keys; zero where padded.
        keys: Turned keys; zero where padded.
        first: The first dimension of each pair.
        second: The second dimension of each pair.

    Returns:
        T with Σ_{p,p' ∈ D} T[p, p'] = Σ (change of a logit)² when the pairs D are dropped,
        summed over sequences, heads, queries and keys.
    """
    order = torch.stack([first, second], dim=1).flatten()
    q, k = queries.double()[..., order], keys.double()[..., order]
    products = torch.einsum("bgnd,bgne->bde", q, q) * (k.mT @ k)
    pairs = len(first)
    return products.sum(0).reshape(pairs, 2, pairs, 2).sum((1, 3))


def order_of_dropping(interactions: Float[Tensor, "p p"]) -> tuple[list[int], list[float]]:
    """Order the pairs by backward elimination: each step drops the pair that adds least.

    Args:
        interactions: The result of ``pair_interactions``.

    Returns:
        The pairs, the first to drop first, and the exact loss after 0, 1, 2, … drops.
    """
    total = interactions + interactions.T
    added = interactions.diagonal().clone()
    dropped: list[int] = []
    losses = [0.0]
    for _ in range(len(added)):
        worst = int(added.argmin())
        dropped.append(worst)
        losses.append(losses[-1] + float(added[worst]))
        added = added + total[worst]
        added[dropped] = torch.inf
    return dropped, losses


def over_positions(
    moment: Float[Tensor, "d d"], frequencies: Float[Tensor, " m"], positions: int
) -> Float[Tensor, "d d"]:
    """Return the mean over positions t of R_t M R_tᵀ: the moment of vectors after their turn.

    Args:
        moment: M, of vectors of one or several heads before their turn.
        frequencies: The angle of each pair (i, i + m) of a head for one step of position.
        positions: Tokens stand at 0, 1, … positions − 1, equally often.

    Returns:
        The mean, from 512 positions at equal distances if there are more.
    """
    heads = len(moment) // (2 * len(frequencies))
    steps = torch.linspace(0, positions - 1, min(positions, 512), dtype=torch.float64).round()
    angles = (steps.unsqueeze(1) * frequencies.double()).to(moment.device)
    # Row by row: R_t x = cos ∘ x + sin ∘ (x with the dimensions of each pair exchanged).
    cosine, sine = (each.repeat(1, 2 * heads) for each in (angles.cos(), angles.sin()))
    d, half = 2 * len(frequencies), len(frequencies)
    place = torch.arange(heads * d, device=moment.device)
    first = place % d < half
    other = torch.where(first, place + half, place - half)
    sine = torch.where(first, -sine, sine)
    wide = moment.double()
    terms = (
        (cosine.T @ cosine) * wide,
        (sine.T @ cosine) * wide[other],
        (cosine.T @ sine) * wide[:, other],
        (sine.T @ sine) * wide[other][:, other],
    )
    return torch.stack(terms).sum(0) / len(steps)


class KeptPairs(PositionRule):
    """Rotary positions for the pairs that are left, head by head.

    The last dimensions of queries and keys turn in halves: i with i + m, for m pairs.

    Args:
        frequencies: (kv_heads, m) angle of each pair for one step of position.
    """

    frequencies: Tensor

    def __init__(self, frequencies: Float[Tensor, "k m"]) -> None:
        super().__init__()
        self.register_buffer("frequencies", frequencies.double())

    def turn(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys turned, each by its own position from zero."""
        group = queries.shape[1] // keys.shape[1]
        own = self.frequencies.repeat_interleave(group, dim=0)
        return _turned(queries, own), _turned(keys, self.frequencies)

    def within_layers(self) -> PositionRule:
        """Return itself: every layer turns its queries and keys."""
        return self

    @property
    def turned_rank(self) -> int:
        """The number of dimensions that turn."""
        return 2 * self.frequencies.shape[1]


def _turned(x: Tensor, frequencies: Tensor) -> Tensor:
    moving = 2 * frequencies.shape[1]
    still, first, second = x.split([x.shape[-1] - moving, moving // 2, moving // 2], dim=-1)
    steps = torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)
    angle = steps.unsqueeze(-1) * frequencies.to(x.device).unsqueeze(1)
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return torch.cat([still, *turned], dim=-1)


def pair_places(
    rank: int, turned: int, pairs: Literal["halves", "adjacent"]
) -> tuple[Tensor, Tensor]:
    """Return the first and the second dimension of each pair, in a head of ``rank`` dimensions.

    >>> pair_places(6, 4, "halves")
    (tensor([2, 3]), tensor([4, 5]))
    """
    start, half = rank - turned, turned // 2
    if pairs == "halves":
        first = start + torch.arange(half)
        return first, first + half
    first = start + 2 * torch.arange(half)
    return first, first + 1


def kept_pairs(orders: Sequence[tuple[list[int], list[float]]], count: int) -> Tensor:
    """Return (kv_heads, count): the pairs that each head keeps of its order, ascending."""
    return torch.tensor(
        [sorted(order[len(order) - count :]) for order, _ in orders], dtype=torch.int64
    )


def picking(kept: Tensor, first: Tensor, second: Tensor, rank: int) -> Float[Tensor, "k r d"]:
    """Return the maps from ``rank`` dimensions of each head to those of its kept pairs."""
    places = torch.cat([first[kept], second[kept]], dim=1)
    return torch.eye(rank, dtype=torch.float64)[places]


def frequencies_of(rule: Rotary | KeptPairs, kv_heads: int) -> Float[Tensor, "k m"]:
    """Return the angle of each pair for one step, for each key-value head."""
    if isinstance(rule, KeptPairs):
        return rule.frequencies
    powers = torch.arange(0, rule.rank, 2, dtype=torch.float64) / rule.rank
    return (rule.base**-powers).expand(kv_heads, -1)


def split_of_rank(
    still: Sequence[float], moving: Sequence[float], rank: int
) -> tuple[int, int, float]:
    """Divide a rank between still dimensions (1 each) and rotation pairs (2 each).

    Args:
        still: Loss at 0, 1, 2, … still dimensions.
        moving: Loss at 0, 1, 2, … pairs.
        rank: The dimensions to divide.

    Returns:
        Still dimensions, pairs and the least loss. A dimension may be left over.

    >>> split_of_rank([4.0, 1.0, 0.0], [9.0, 0.5], rank=3)
    (1, 1, 1.5)
    """
    choices = [
        (still[min(rank - 2 * pairs, len(still) - 1)] + loss, -pairs)
        for pairs, loss in enumerate(moving)
        if 2 * pairs <= rank
    ]
    loss, pairs = min(choices)
    return min(rank + 2 * pairs, len(still) - 1), -pairs, loss
