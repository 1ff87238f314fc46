"""Rank-1 heads and the published separation theorems."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import integrate, stats

from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.theory.harmonic_bound import Values, error_lower_bound
from headwise.theory.nearest import best_weights_error, majority_vote_error, majority_vote_limit
from headwise.theory.separation import (
    high_accuracy_regime,
    high_dimensional_regime,
)


@pytest.mark.parametrize(("d", "heads"), [(2, 1), (4, 101), (64, 1001), (7, 5)])
def test_majority_vote_against_the_binomial(d, heads):
    def wrong(angle):
        p = 0.5 + angle / math.pi
        return math.cos(angle) ** (d - 2) * stats.binom.cdf((heads - 1) // 2, heads, p)

    total = integrate.quad(lambda a: math.cos(a) ** (d - 2), 0, math.pi / 2)[0]
    expected = 2 * integrate.quad(wrong, 0, math.pi / 2, limit=200)[0] / total
    assert majority_vote_error(d, heads) == pytest.approx(expected, rel=1e-7)


def test_majority_vote_tends_to_its_limit():
    assert majority_vote_error(10**5, 10**5 + 1) == pytest.approx(
        majority_vote_limit(10**5, 10**5 + 1), rel=1e-4
    )


def test_an_even_vote_is_refused():
    with pytest.raises(BadInputError, match="can tie; pass an odd number"):
        majority_vote_error(8, 10)


@pytest.mark.parametrize("same", [True, False])
def test_best_weights_against_least_squares_on_a_sample(same):
    generator = stream(3, "rank one")
    keys = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    queries = keys if same else torch.randn(6, 5, generator=generator, dtype=torch.float64)
    x, y = torch.randn(2, 200_000, 5, generator=generator, dtype=torch.float64)
    answers = torch.sign(x @ keys.mT) * torch.sign(y @ queries.mT)
    target = torch.sign((x * y).sum(-1, keepdim=True))
    fitted = torch.linalg.lstsq(answers, target).solution
    left = float((answers @ fitted - target).square().mean()) / 2
    assert best_weights_error(keys, queries) == pytest.approx(left, abs=0.003)


def test_repeated_heads_add_nothing():
    one = torch.tensor([[1.0, 2.0, 3.0]]).double()
    assert best_weights_error(one.repeat(3, 1), one.repeat(3, 1)) == pytest.approx(
        best_weights_error(one, one), abs=1e-9
    )


@pytest.mark.parametrize(("d", "heads"), [(4, 30), (8, 128), (16, 100)])
def test_best_weights_respect_the_lower_bound(d, heads):
    keys = torch.randn(heads, d, generator=stream(1, d), dtype=torch.float64)
    bound = error_lower_bound(d, 1, heads, Values.IDENTITY)
    assert best_weights_error(keys, keys) >= bound


def test_first_regime_as_printed():
    found = high_accuracy_regime(64, 4, small=0.5, scale=3.0)
    assert found.error == 0.5 / 65
    assert found.log_heads == pytest.approx(math.log(3 * 2 ** (64 - 5 * math.log2(32))))


def test_second_regime_as_printed():
    found = high_dimensional_regime(4096, 2, 0.25, exponent=2.0)
    assert found.log_heads == pytest.approx(math.log(0.5 * (4096 / (2 * math.e * 10)) ** 8))


@pytest.mark.parametrize(
    "work",
    [
        lambda: high_accuracy_regime(10, 8),
        lambda: high_dimensional_regime(10, 5, 0.1),
        lambda: high_dimensional_regime(4096, 1, 1e-9),
    ],
)
def test_outside_their_hypotheses_the_theorems_refuse(work):
    with pytest.raises(BadInputError):
        work()


def test_the_computable_bound_obeys_the_first_regimes_shape():
    """Heads for error c/(d+1) at fixed r grow exponentially in d in both."""
    from headwise.theory.harmonic_bound import log_heads_needed

    ours = [log_heads_needed(d, 1, 0.05 / (d + 1)) for d in (16, 32, 64)]
    printed = [high_accuracy_regime(d, 1).log_heads for d in (16, 32, 64)]
    assert ours[2] - ours[1] > printed[2] - printed[1] > 0
