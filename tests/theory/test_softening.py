"""The softmax predictor: its limits, its parts, and simulation with real singular values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import sparse

from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.spectra import Absolute, Estimate, LogWeights, count
from headwise.theory.law_formula import law_share
from headwise.theory.softening import KEPT_LIMIT, _RowEntries, softmax_ratio


def simulated(n: int, d: int, temperature: float, epsilon: float, draws: int) -> Estimate:
    generator = stream(11, n, d)
    queries = torch.randn(draws, n, d, generator=generator, dtype=torch.float64)
    keys = torch.randn(draws, n, d, generator=generator, dtype=torch.float64)
    ranks = count(LogWeights(queries @ keys.mT / temperature), Absolute(epsilon))
    return Estimate.of((ranks.low + ranks.high).double() / (2 * n))


@pytest.mark.parametrize(("n", "d"), [(2, 16), (200, 16), (1024, 64), (50, 1)])
def test_cold_softmax_is_the_law(n, d):
    found = softmax_ratio(n, d, temperature=1e-12)
    assert found.ratio == pytest.approx(float(law_share(n, d)), abs=1e-6)
    assert found.kept == pytest.approx(1, abs=1e-6)


def test_hot_softmax_is_full_rank():
    assert softmax_ratio(100, 256, temperature=5.0).ratio == pytest.approx(1, abs=1e-3)


def test_rank_rises_with_temperature_and_falls_with_tolerance():
    ratios = [softmax_ratio(200, 64, heat).ratio for heat in (1e-6, 0.01, 0.05, 0.1, 0.5)]
    assert ratios == sorted(ratios)
    assert softmax_ratio(200, 64, 0.1, 1e-4).ratio < softmax_ratio(200, 64, 0.1, 1e-8).ratio


@pytest.mark.parametrize(
    ("n", "d", "reach", "epsilon"),
    [(150, 64, 0.1, 1e-8), (150, 16, 0.2, 1e-8), (120, 256, 0.2, 1e-4), (120, 16, 0.03, 1e-4)],
)
def test_prediction_is_near_simulation_where_it_is_valid(n, d, reach, epsilon):
    temperature = reach * math.sqrt(d) / math.log(1 / epsilon)
    found = softmax_ratio(n, d, temperature, epsilon)
    seen = simulated(n, d, temperature, epsilon, draws=20)
    assert found.valid
    assert found.ratio == pytest.approx(seen.mean, abs=found.error + 2 * seen.stderr)


@pytest.mark.parametrize("reach", [0.4, 0.8, 1.6])
def test_outside_its_range_the_wider_error_is_stated_and_kept(reach):
    temperature = reach * math.sqrt(64) / math.log(1e8)
    found = softmax_ratio(150, 64, temperature)
    seen = simulated(150, 64, temperature, 1e-8, draws=10)
    assert not found.valid
    assert found.ratio == pytest.approx(seen.mean, abs=found.error)


def test_validity_is_part_of_the_result():
    narrow = softmax_ratio(200, 8, temperature=1e-3)
    assert not narrow.valid
    assert "head dimension ≥ 16" in narrow.range
    assert softmax_ratio(200, 64, 1.0).kept > KEPT_LIMIT


def test_kept_entries_against_counting():
    n, d, reach = 60, 32, 0.8
    generator = stream(5, "kept")
    queries = torch.randn(60, n, d, generator=generator, dtype=torch.float64)
    keys = torch.randn(60, n, d, generator=generator, dtype=torch.float64)
    scores = queries @ keys.mT
    kept = (scores >= scores.amax(-1, keepdim=True) - reach).double().sum(-1)
    found = _RowEntries.of(n, d, reach)
    assert found.mean == pytest.approx(float(kept.mean()), rel=0.02)
    half = float(found.generating(np.array([0.5]))[0])
    assert half == pytest.approx(float((0.5**kept).mean()), rel=0.02)


def test_matching_formula_against_real_matchings():
    """Wide head: rows keep 1 or 2 uniformly random columns; the matching is counted."""
    random, n, sizes = np.random.default_rng(0), 2000, []
    kept = softmax_ratio(n, 10**5, temperature=1.5).kept
    for _ in range(4):
        second = random.random(n) < min(kept - 1, 1.0)
        rows = np.concatenate([np.arange(n), np.flatnonzero(second)])
        graph = sparse.csr_matrix(
            (np.ones(len(rows)), (rows, random.integers(0, n, len(rows)))), shape=(n, n)
        )
        pairs = sparse.csgraph.maximum_bipartite_matching(graph, perm_type="column")
        sizes.append((pairs >= 0).mean())
    share = min(kept - 1, 1.0)
    q = 1.0
    for _ in range(500):
        q = math.exp(-(1 - share) - 2 * share * (1 - q))
    assert np.mean(sizes) == pytest.approx(1 - q + share * q**2, abs=0.01)


@pytest.mark.parametrize(
    ("temperature", "epsilon"), [(0.0, 1e-8), (-1.0, 1e-8), (1.0, 0.0), (1.0, 1.0)]
)
def test_bad_temperature_or_tolerance_is_refused(temperature, epsilon):
    with pytest.raises(BadInputError):
        softmax_ratio(100, 16, temperature, epsilon)
