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
    at_least,
    at_most,
    equal,
    gaussian,
)


def _one_head(seed: int, same: bool) -> Evidence:
    """How often a random rank-one head is right, d = 16."""
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


def _same_query_and_key(seed: int) -> Evidence:
    return _one_head(seed, same=True)


def _independent_query_and_key(seed: int) -> Evidence:
    return _one_head(seed, same=False)


def _votes(seed: int, different: int) -> Evidence:
    """The squared error of 21 votes, ``different`` of them by different heads."""
    heads, d = 21, 4
    generator = stream(seed, "votes")
    pairs, y = neighbours(d, 20000, generator)
    forms = torch.randn(20000, different, d, generator=generator, dtype=torch.float64)
    x = (pairs[:, 0] - pairs[:, 1]).unsqueeze(-1)
    ballots = torch.sign(forms @ x) * torch.sign(forms @ y.unsqueeze(-1))
    wrong = torch.sign(ballots.sum((1, 2))) != torch.sign((x[..., 0] * y).sum(-1))
    return Evidence(
        (at_least("independent heads", different, heads),),
        (
            equal(
                "mean squared error",
                Estimate.of(2 * wrong.double()),
                majority_vote_error(d, heads),
            ),
        ),
    )


def _independent_votes(seed: int) -> Evidence:
    return _votes(seed, 21)


def _repeated_votes(seed: int) -> Evidence:
    return _votes(seed, 1)


def _two_layers(seed: int, targets: int) -> Evidence:
    """The error of the two-layer construction, against that of a majority vote."""
    d, heads, losses = 4, 21, []
    for number in range(60):
        model = TwoLayerVote(d, heads, seed=1000 * seed + number)
        pairs, y = neighbours(d, 100, stream(seed, "two layers", number))
        nearer = pairs[torch.arange(100), (pairs @ y.unsqueeze(-1))[..., 0].argmax(-1)]
        if targets == 1:  # without index, tokens cannot be told apart: both are the first
            pairs = pairs[:, :1].expand(-1, 2, -1)
        losses.append((model(pairs, y) - nearer).square().sum(-1).mean())
    found, geometry = Estimate.of(torch.stack(losses)), TwoLayerVote(d, heads).look_up.geometry
    return Evidence(
        (equal("target points the vote can tell apart", targets, 2),),
        (
            equal("mean squared error", found, majority_vote_error(d, heads)),
            equal("query-key rank of the look-up head", geometry.qk_rank, 1),
            equal("value rank of the look-up head, d", geometry.v_rank, d),
        ),
    )


def _two_targets(seed: int) -> Evidence:
    return _two_layers(seed, 2)


def _one_target(seed: int) -> Evidence:
    return _two_layers(seed, 1)


VOTES = (
    Statement(
        "Random rank-one head",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "q = k, uniform; N = 2.",
        "The head is right with probability ½ + asin|wᵀy|/π; on average ½ + 0.254/√d.",
        _same_query_and_key,
        _independent_query_and_key,
        finding="Printed as about ½ + 1/√d: the rate is right, the constant is √(2/π)/π = 0.254.",
    ),
    Statement(
        "Majority vote",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "An odd number of independent random rank-one heads.",
        "The majority is right with high probability; its error is exactly the binomial one.",
        _independent_votes,
        _repeated_votes,
    ),
    Statement(
        "Two-layer construction",
        Source.HEADS_PAPER,
        "slide Modified Attention Construction",
        "N = 2; tokens (x₁; 1; 0), (x₂; −1; 0), (y; 0; 0).",
        "Two hardmax layers of query-key rank one, without an MLP, return what the majority chose.",
        _two_targets,
        _one_target,
        finding="The look-up head has query-key rank 1 and value rank d: a rank-one value could "
        "not return a point.",
    ),
)
