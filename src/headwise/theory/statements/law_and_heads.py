"""The finite law, and the heads paper's price of low rank."""

from __future__ import annotations

import torch

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory.ensembles import IndependentHead
from headwise.theory.harmonics import Values, error_lower_bound
from headwise.theory.law import finite_law
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.nearest import heads_error, neighbours, random_heads_error
from headwise.theory.rank_one import majority_vote_error
from headwise.theory.statements.statement import Evidence, Sense, Statement


def _gaussian_head(seed: int) -> Evidence:
    return Evidence(simulate_ratio(IndependentHead(100, 16), 200, seed), (100, 16))


def _unit_keys(seed: int) -> Evidence:
    """Keys of equal norm share the queries evenly: the rank of a far wider Gaussian head."""
    found = simulate_ratio(IndependentHead(100, 16, _on_the_sphere), 200, seed)
    return Evidence(found, (100, 16))


def _on_the_sphere(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    entries = torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(entries, dim=-1)


def _random_heads(seed: int) -> Evidence:
    return Evidence(random_heads_error(6, 3, 6, Values.ANY, seed), (6, 3, 6, Values.ANY))


def _random_identity_heads(seed: int) -> Evidence:
    found = random_heads_error(8, 4, 24, Values.IDENTITY, seed)
    return Evidence(found, (8, 4, 24, Values.IDENTITY))


def _full_rank_head(seed: int) -> Evidence:
    one = torch.eye(6, dtype=torch.float64).unsqueeze(0)
    return Evidence(heads_error(one, Values.ANY, seed), (6, 3, 6, Values.ANY))


def _full_rank_identity_head(seed: int) -> Evidence:
    one = torch.eye(8, dtype=torch.float64).unsqueeze(0)
    return Evidence(heads_error(one, Values.IDENTITY, seed), (8, 4, 24, Values.IDENTITY))


def _votes(seed: int, heads: int) -> Estimate:
    """Squared error of a majority vote of random rank-1 heads, each sample with its own heads."""
    generator = stream(seed, "votes")
    pairs, y = neighbours(4, 20000, generator)
    forms = torch.randn(20000, heads, 4, generator=generator, dtype=torch.float64)
    x = (pairs[:, 0] - pairs[:, 1]).unsqueeze(-1)
    ballots = torch.sign(forms @ x) * torch.sign(forms @ y.unsqueeze(-1))
    wrong = torch.sign(ballots.sum((1, 2))) != torch.sign((x[..., 0] * y).sum(-1))
    return Estimate.of(2 * wrong.double())


def _majority(seed: int) -> Evidence:
    return Evidence(_votes(seed, 21), (4, 21))


def _smaller_majority(seed: int) -> Evidence:
    return Evidence(_votes(seed, 11), (4, 21))


def _law(length: int, head_dim: int) -> float:
    return float(finite_law(length, head_dim))


LAW_AND_HEADS_STATEMENTS = (
    Statement(
        "Finite law",
        "headwise: derived in docs/theory.md",
        "The expected hardmax rank over n of a Gaussian head is at most L(n, d_h).",
        _law,
        Sense.AT_MOST,
        _gaussian_head,
        _unit_keys,
    ),
    Statement(
        "Lower bound, any values",
        "heads paper, Theorem 2, made computable",
        "H generalised rank-r heads have at least the error of the harmonics they cannot "
        "reach, M(r, ℓ) counted for value matrices of any form.",
        error_lower_bound,
        Sense.AT_LEAST,
        _random_heads,
        _full_rank_head,
    ),
    Statement(
        "Lower bound, values a·I",
        "heads paper, Theorem 2, made computable",
        "The same with M(r, ℓ) = C(r+ℓ−1, ℓ), for value matrices that are multiples of I.",
        error_lower_bound,
        Sense.AT_LEAST,
        _random_identity_heads,
        _full_rank_identity_head,
    ),
    Statement(
        "Majority vote",
        "heads paper, section on rank-1 heads",
        "The majority vote of an odd number of random rank-1 heads has at most (in fact "
        "exactly) the binomial error.",
        majority_vote_error,
        Sense.AT_MOST,
        _majority,
        _smaller_majority,
    ),
)
