"""Layers whose softmax has a sink: certificates cover the rounding of logits and weights."""

from dataclasses import replace

import numpy as np
import torch

from headwise.attention.masks import EVERYTHING
from headwise.attention.view import AttentionView
from headwise.probing.numbers import head_numbers


def test_sinks_do_not_hide_the_rounding_of_logits():
    """Logits of 1e16 round to one matrix of rank 1, whose exact one has rank 2."""
    queries = torch.tensor([[1e16, 1, 0, -1e16], [1e16, 0, 1, -1e16]], dtype=torch.float64)
    keys = torch.tensor([[1, 0.9, 0, 1], [1, 0, 0.9, 1]], dtype=torch.float64)
    view = AttentionView(queries[None, None], keys[None, None], EVERYTHING, 1.0)
    numbers = head_numbers(replace(view, sinks=torch.zeros(1))).values
    assert (numbers["rank_low"], numbers["rank_high"]) == (0, 2)


def test_the_error_of_matrices_with_sinks_is_a_bound():
    """Longer arithmetic than float64 tells the true distance."""
    drawn = torch.randn(2, 1, 1, 12, 8, generator=torch.Generator().manual_seed(0)).double()
    for scale in (0.1, 1.0, 30.0):
        view = AttentionView(drawn[0] * scale, drawn[1], EVERYTHING, 1.0, sinks=torch.ones(1))
        parts = drawn[0] * scale, drawn[1]
        queries, keys = (part[0, 0].numpy().astype(np.longdouble) for part in parts)
        joined = np.concatenate([queries @ keys.T, np.ones((12, 1), np.longdouble)], axis=1)
        weights = np.exp(joined - joined.max(1, keepdims=True))
        exact = (weights / weights.sum(1, keepdims=True))[:, :-1]
        distance = np.sqrt(((view.matrix()[0, 0].numpy() - exact) ** 2).sum())
        assert 0 < distance <= float(view.matrix_error()[0, 0]) < 1e-6
