"""Counts by sketch against the decomposition, on matrices with planted singular values."""

import pytest
import torch

from headwise.spectra import LogWeights, count
from headwise.spectra.batches import DenseChunk
from headwise.spectra.dense import Thresholds, count_by_svd, count_dense
from headwise.spectra.sketch import LARGEST_DELTA, count_by_sketch
from oracles import normal

EPSILON = 1e-8


def planted(sigma, n, m, seed=0):
    """A matrix with these singular values and zeros."""
    left = torch.linalg.qr(normal(n, len(sigma), seed=seed))[0]
    right = torch.linalg.qr(normal(m, len(sigma), seed=seed + 1))[0]
    return (left * torch.as_tensor(sigma, dtype=torch.float64)) @ right.mT


def at(number=1, epsilon=EPSILON, doubt=0.0):
    ones = torch.ones(number, dtype=torch.float64)
    return Thresholds(ones * epsilon, ones * doubt)


def sketched(matrix, share=1 / 4, epsilon=EPSILON, doubt=0.0):
    one = at(epsilon=epsilon, doubt=doubt)
    return count_by_sketch(matrix[None], one.epsilon, one.doubt, share)[0][0]


@pytest.mark.parametrize("shape", [(64, 64), (130, 90), (90, 130), (256, 256)])
@pytest.mark.parametrize("rank", [0, 1, 5, 14])
def test_low_ranks_equal_the_decomposition(shape, rank):
    matrix = planted(torch.logspace(0, -6, rank).tolist(), *shape) if rank else torch.zeros(shape)
    found, exact = sketched(matrix.double()), count_by_svd(matrix.double()[None], at())[0]
    assert found.method == "sketch"
    assert (found.low, found.high) == (exact.low, exact.high) == (rank, rank)
    assert found.delta <= LARGEST_DELTA * EPSILON


@pytest.mark.parametrize("factor", [1 - 1e-2, 1 - 1e-6, 1.0, 1 + 1e-6, 1 + 1e-2])
def test_a_singular_value_at_the_tolerance_is_never_miscounted(factor):
    found = sketched(planted([1.0, 0.1, factor * EPSILON], 100, 100))
    assert found.low <= 2 + (factor >= 1) <= found.high
    assert found.high == 2 + (factor > 0.999)
    assert found.low == 2 + (factor > 1.001)


def test_singular_values_beyond_the_sketch_are_never_lost():
    """A tail below the tolerance counts for nothing only if it is in δ; else no answer."""
    for tail in (1e-15, 1e-13, 1e-11, 1e-9, 2e-8):
        sigma = [1.0, 0.5] + [tail] * 98
        found = sketched(planted(sigma, 100, 100))
        truth = 100 if tail > EPSILON else 2
        assert found is None or (found.low <= truth <= found.high and found.delta >= tail)
    assert sketched(planted([1.0] * 30, 100, 100)) is None
    assert sketched(planted([1.0] * 24, 100, 100)).low == 24


def test_doubt_enters_delta():
    assert sketched(planted([1.0], 60, 60), doubt=1e-12).delta > 1e-12
    assert sketched(planted([1.0], 60, 60), doubt=0.6 * EPSILON) is None


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 1e200])
def test_numbers_that_overflow_get_no_sketch(bad):
    matrix = torch.eye(64, dtype=torch.float64)
    matrix[3, 5] = bad
    assert sketched(matrix) is None


def test_a_batch_of_different_ranks_equals_the_decomposition():
    ranks = [3, 60, 64, 1, 63, 20, 8]
    for order in (ranks, ranks[::-1], sorted(ranks)):
        batch = torch.stack([planted([1.0] * r, 64, 64, seed=r) for r in order])
        found = count_dense(DenseChunk(torch.arange(7), batch), at(7))
        assert [(one.low, one.high) for one in found] == [(r, r) for r in order]


def test_smooth_attention_is_counted_by_sketch():
    logits = normal(3, 256, 2, seed=4) @ normal(3, 2, 256, seed=5) * 0.05
    found = count(LogWeights(logits))
    assert set(found.methods) == {"sketch"}
    assert torch.equal(found.values, count(LogWeights(logits), method="svd").values)


def test_answers_can_be_repeated():
    matrix = planted([1.0, 1e-3], 80, 80)
    assert sketched(matrix) == sketched(matrix.clone())
