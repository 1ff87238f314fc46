"""The heads paper: random rank-one heads, their majority vote, and a second layer."""

from __future__ import annotations

import math

import torch

from headwise.attention.constructions import TwoLayerVote
from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory.nearest import (
    majority_vote_error,
    mean_rank_one_success,
    neighbours,
)
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_most,
    equal,
    gaussian,
    unlinked,
)


def _one_head(seed: int, same: bool) -> Evidence:
    """d = 16, 60,000 draws; (P − ½)√d at d = 10,000. Violator: q and k are independent."""
    d, draws = 16, 60000
    pairs, y = neighbours(d, draws, stream(seed, "one head"))
    key = gaussian(seed, "key", draws, d)
    query = key if same else gaussian(seed, "query", draws, d)
    x = pairs[:, 0] - pairs[:, 1]
    guess = (key * x).sum(-1).sign() * (query * y).sum(-1).sign()
    right = Estimate.of((guess == (x * y).sum(-1).sign()).double())
    asymptotic = (mean_rank_one_success(10**4) - 0.5) * 100
    return Evidence(
        (at_most("largest |q − k|", float((query - key).abs().max()), 0.0),),
        (
            equal("P(right)", right, mean_rank_one_success(d)),
            equal("(P − ½)√d", Estimate(asymptotic, 1e-4, 1), math.sqrt(2 / math.pi) / math.pi),
        ),
    )


def _votes(seed: int, repeated: bool) -> Evidence:
    """d = 4, 21 heads, 20,000 draws. Violator: one head 21 times."""
    heads, d, draws = 21, 4, 20000
    generator = stream(seed, "votes")
    pairs, y = neighbours(d, draws, generator)
    different = 1 if repeated else heads
    forms = torch.randn(draws, different, d, generator=generator, dtype=torch.float64)
    forms = forms.expand(-1, heads, -1)
    x = (pairs[:, 0] - pairs[:, 1]).unsqueeze(-1)
    ballots = torch.sign(forms @ x) * torch.sign(forms @ y.unsqueeze(-1))
    wrong = torch.sign(ballots.sum((1, 2))) != torch.sign((x[..., 0] * y).sum(-1))
    error = Estimate.of(2 * wrong.double())
    return Evidence(
        (
            unlinked(forms[:, 0], forms[:, 1], "the weights of two heads"),
            equal("votes left over from pairs", forms.shape[1] % 2, 1),
        ),
        (equal("mean squared error", error, majority_vote_error(d, heads)),),
    )


def _two_layers(seed: int, same_point: bool) -> Evidence:
    """d = 4, 21 heads, 60 layers of 100 draws, against the formula of the vote.

    Violator: both points are the first, the target is as before.
    """
    d, heads, losses, apart = 4, 21, [], 0.0
    for number in range(60):
        model = TwoLayerVote(d, heads, seed=1000 * seed + number)
        pairs, y = neighbours(d, 100, stream(seed, "two layers", number))
        nearer = pairs[torch.arange(100), (pairs @ y.unsqueeze(-1))[..., 0].argmax(-1)]
        pairs = pairs[:, :1].expand(-1, 2, -1) if same_point else pairs
        apart = max(apart, float((pairs[:, 0] - pairs[:, 1]).norm(dim=-1).sub(2**0.5).abs().max()))
        losses.append((model(pairs, y) - nearer).square().sum(-1).mean())
    found, geometry = Estimate.of(torch.stack(losses)), TwoLayerVote(d, heads).look_up.geometry
    return Evidence(
        (at_most("distance of the two points, off √2", apart, 0.0),),
        (
            equal("mean squared error", found, majority_vote_error(d, heads)),
            equal("query-key rank of the look-up head", geometry.qk_rank, 1),
            equal("value rank of the look-up head, d", geometry.v_rank, d),
        ),
    )


VOTES = (
    Statement(
        "Random rank-one head",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "q = k, uniform; N = 2; y uniform on the sphere and w = (x₁ − x₂)/|x₁ − x₂|.",
        "The head is right with probability about ½ + 1/√d. Ours: ½ + asin|wᵀy|/π, on average "
        "about ½ + 0.254/√d for large d.",
        _one_head,
        {"same": True},
        {"same": False},
        finding="Published as about ½ + 1/√d: the rate is right, the constant is √(2/π)/π = 0.254.",
    ),
    Statement(
        "Majority vote",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "Many independent random rank-one heads. Ours: an odd number.",
        "The majority is right with high probability. Ours: its error is exactly the binomial one.",
        _votes,
        {"repeated": False},
        {"repeated": True},
    ),
    Statement(
        "Two-layer construction",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "N = 2; tokens (x₁; 1; 0), (x₂; −1; 0), (y; 0; 0). Ours: an orthonormal pair (violator: "
        "one point twice).",
        "Two hardmax layers of query-key rank one, without an MLP, return what the majority chose.",
        _two_layers,
        {"same_point": False},
        {"same_point": True},
        finding="The look-up head has query-key rank 1 and value rank d: a rank-one value could "
        "not return a point.",
    ),
)
