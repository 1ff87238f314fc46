"""The usual ways of counting, against planted spectra and against the certificate."""

import pytest
import torch

from headwise.experiments.count_by_method import WAYS, CountByMethod, gram_ranks, svd_ranks
from headwise.randomness import stream

PLANTED = (1.0, 0.3, 1e-3, 1e-6, 3e-8, 1e-11, 0.0)


def planted(seed: int) -> torch.Tensor:
    """A matrix whose singular values are those above, in random directions."""
    n = len(PLANTED)
    sides = [
        torch.linalg.qr(torch.randn(n, n, generator=stream(seed, side), dtype=torch.float64)).Q
        for side in ("left", "right")
    ]
    values = torch.diag(torch.tensor(PLANTED, dtype=torch.float64))
    return sides[0] @ values @ sides[1].mT


def test_a_decomposition_in_float64_counts_what_was_planted():
    matrices = torch.stack([planted(seed) for seed in range(5)])
    assert svd_ranks(matrices, 1e-8).tolist() == [5] * 5
    assert svd_ranks(matrices, 1e-5).tolist() == [3] * 5


def test_squaring_a_matrix_loses_values_below_the_root_of_rounding():
    matrices = torch.stack([planted(seed) for seed in range(5)])
    assert gram_ranks(matrices, 1e-5).tolist() == [3] * 5
    assert (gram_ranks(matrices, 1e-10) != svd_ranks(matrices, 1e-10)).any()


@pytest.fixture(scope="module")
def rows():
    return CountByMethod(head_dim=16, tokens=60, width=384, heads=5).ask()


def test_there_is_a_row_for_every_method_and_two_of_headwise(rows):
    ways = [(row["stored"], row["method"], row["arithmetic"]) for row in rows]
    assert len(set(ways)) == len(ways) == len(WAYS) + 2
    assert all(row["count"] == 5 and 0 <= row["low"] <= row["high"] <= 1 for row in rows)


def test_float64_agrees_with_the_certificate_and_float32_does_not(rows):
    found = {(row["stored"], row["method"], row["arithmetic"]): row for row in rows}
    truth = found["float64", "headwise", "float64"]
    assert found["float64", "svd at ε", "float64"]["mean"] == truth["mean"]
    assert found["float64", "svd at ε", "float64"]["agreeing"] == 5
    assert found["float32", "svd at ε", "float32"]["agreeing"] == 0
    assert found["float32", "svd at ε", "float32"]["mean"] > 1.2 * truth["mean"]


def test_an_interval_of_a_rounded_copy_holds_the_truth(rows):
    truth, copy = rows[0], rows[-1]
    assert (copy["stored"], copy["method"], copy["agreeing"]) == ("float32", "headwise", 5)
    assert copy["low"] <= truth["low"] <= truth["high"] <= copy["high"]
    assert copy["undecided"] == 5


def test_a_temperature_is_the_whole_divisor():
    given = CountByMethod(head_dim=16, tokens=30, heads=2, temperature=4.0).ask()
    assert given == CountByMethod(head_dim=16, tokens=30, heads=2).ask()
    assert given != CountByMethod(head_dim=16, tokens=30, heads=2, temperature=4000.0).ask()
