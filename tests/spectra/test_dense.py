"""Counts of dense matrices of 48 to 383 rows, on planted singular values."""

import pytest
import torch

from headwise.spectra.dense import DenseChunk, Thresholds, count_by_svd, count_dense
from oracles import normal

EPSILON = 1e-8


def planted(sigma, n, m, seed=0):
    """A matrix with these singular values and zeros."""
    left = torch.linalg.qr(normal(n, len(sigma), seed=seed))[0]
    right = torch.linalg.qr(normal(m, len(sigma), seed=seed + 1))[0]
    return (left * torch.as_tensor(sigma, dtype=torch.float64)) @ right.mT


def counted(batch, doubt=0.0):
    ones = torch.ones(len(batch), dtype=torch.float64)
    chunk = DenseChunk(torch.arange(len(batch)), batch)
    return count_dense(chunk, Thresholds(ones * EPSILON, ones * doubt))


@pytest.mark.parametrize("shape", [(64, 64), (130, 90), (90, 130)])
@pytest.mark.parametrize("rank", [0, 1, 14, 90])
def test_ranks_equal_the_decomposition(shape, rank):
    rank = min(rank, *shape)
    matrix = planted(torch.logspace(0, -6, rank).tolist(), *shape) if rank else torch.zeros(shape)
    at = Thresholds(torch.full((1,), EPSILON).double(), torch.zeros(1).double())
    (found,), (exact,) = counted(matrix.double()[None]), count_by_svd(matrix.double()[None], at)
    assert (found.low, found.high) == (exact.low, exact.high) == (rank, rank)
    assert found.method == ("qr" if rank == min(shape) else "svd")


@pytest.mark.parametrize("factor", [1 - 1e-2, 1.0, 1 + 1e-2])
def test_the_last_singular_value_at_the_tolerance_is_never_miscounted(factor):
    (found,) = counted(planted([1.0] * 63 + [factor * EPSILON], 64, 64)[None])
    assert found.low <= 63 + (factor >= 1) <= found.high
    assert found.high == 63 + (factor > 0.999)
    assert found.low == 63 + (factor > 1.001)


def test_a_batch_of_different_ranks_equals_the_decomposition():
    ranks = [3, 60, 64, 1, 64, 64, 63, 20, 8]
    for order in (ranks, ranks[::-1], sorted(ranks)):
        for size in (64, 128):  # counted four at a time, and one at a time
            full = [r * size // 64 for r in order]
            batch = torch.stack([planted([1.0] * r, size, size, seed=r) for r in full])
            assert [(one.low, one.high) for one in counted(batch)] == [(r, r) for r in full]


def test_full_rank_is_tried_by_qr_again_after_a_matrix_of_full_rank():
    batch = torch.stack([planted([1.0] * r, 128, 128) for r in (128, 3, 128, 128)])
    assert [one.method for one in counted(batch)] == ["qr", "svd", "svd", "qr"]


def test_doubt_enters_delta():
    (found,) = counted(planted([1.0], 60, 60)[None], doubt=1e-12)
    assert found.delta > 1e-12
