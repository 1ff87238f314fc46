"""Certificates from queries and keys whose products leave the range of float64."""

import math

import pytest
import torch

from headwise.attention import logits
from headwise.attention.masks import Additive, Mask
from headwise.attention.scores import masked
from headwise.spectra import LogWeights, count


def column(*numbers):
    return torch.tensor([[x] for x in numbers], dtype=torch.float64)


@pytest.mark.parametrize("softcap", [None, 5.0])
@pytest.mark.parametrize("mask", ["none", torch.zeros(2, 2, dtype=torch.float64)])
def test_a_product_that_overflows_is_not_taken_for_a_masked_key(softcap, mask):
    """The logits are −2.2 and 0; −2.2·10^308 became −∞, and two different rows were equal."""
    queries, keys = column(1e154, 1.1e154), column(-2e154, 1.0)
    found = logits(queries, keys, temperature=1e308, mask=mask, softcap=softcap)
    assert found.row_error.tolist() == [math.inf, math.inf]
    one = count(found, 1e-3).item()
    assert (one.low, one.high) == (0, 2)


def test_a_product_below_the_largest_number_has_a_finite_error():
    queries, keys = column(1e154, 0.8e154), column(-1e154, 1.0)
    found = logits(queries, keys, temperature=1e308)
    assert bool((found.row_error < 1e-14).all())
    assert count(found, 1e-3).item().exact


def test_a_quotient_that_overflows_is_not_certain():
    found = logits(column(-10.0), column(1.0, 0.0), temperature=1e-308)
    assert found.row_error.tolist() == [math.inf]


def test_tiny_queries_are_not_certain_while_the_processor_flushes_them():
    """The logits are of the size of one; all were zero, and rank 3 was certified as 1."""
    queries, keys = column(1e-310, 2e-310, 3e-310), column(1e308, -1e308, 5e307)
    assert count(logits(queries, keys, temperature=1.0), 1e-8).item().low == 3
    assert torch.set_flush_denormal(True)
    try:
        found = count(logits(queries, keys, temperature=1.0), 1e-8).item()
    finally:
        torch.set_flush_denormal(False)
    assert found.low <= 3 <= found.high


def test_learned_biases_are_counted():
    """The bound on their rounding carried gradients, which ended in a RuntimeError."""
    weights = 30 * torch.randn(20, 20, dtype=torch.float64, generator=torch.manual_seed(0))
    bias = (2 * weights.mT).contiguous().requires_grad_()
    for found in (
        logits(weights, torch.eye(20, dtype=torch.float64), mask=Additive(bias)),
        masked(LogWeights(weights), bias),
    ):
        assert not found.row_error.requires_grad
        assert count(found).item().exact


def test_a_mask_of_ones_own_may_add():
    """Beside 1e16 a slope of 0.9 is lost, and without it all rows are equal."""

    class Slope(Mask):
        @property
        def name(self):
            return "[slope]"

        def apply(self, logits, grid):
            return logits - 0.9 * (grid.column_index == grid.row_index)

        def allowed(self, grid):
            return torch.ones(1, 1, dtype=torch.bool)

    large = LogWeights(torch.full((2, 2), 1e16, dtype=torch.float64))
    found = count(masked(large, Slope()), 1e-8).item()
    assert found.low <= 2 <= found.high
