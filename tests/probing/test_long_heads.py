"""Heads on long sequences, against the singular values of the matrix."""

import pytest
import torch

from headwise.attention.masks import EVERYTHING, Additive, Allowed, Causal
from headwise.attention.view import AttentionView
from headwise.errors import TooLargeError
from headwise.probing import scan
from headwise.probing.long_heads import long_numbers
from headwise.probing.numbers import head_numbers
from hugging_face.tiny_models import inputs, tiny

N = 500


def view(mask, scale=4.0):
    generator = torch.Generator().manual_seed(3)
    queries, keys, values = torch.randn(3, 1, 1, N, 8, dtype=torch.float64, generator=generator)
    return AttentionView(scale * queries, keys, mask, 8**0.5, values=values)


@pytest.mark.parametrize("mask", [EVERYTHING, Causal()])
def test_the_effective_rank_has_no_bias_from_few_steps(mask):
    """It lay above the truth by its whole error in every head, because its steps are few."""
    given = view(mask)
    values = torch.linalg.svdvals(given.matrix()[0, 0])
    truth = float(torch.special.entr(values / values.sum()).sum().exp())
    found = long_numbers(given).values
    assert found["effective_rank"] == pytest.approx(truth, rel=0.04)
    assert abs(found["effective_rank"] - truth) < found["effective_rank_error"]


def bias():
    drawn = torch.randn(1, 1, N, N, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    return drawn / 2


@pytest.mark.parametrize("mask", [Additive(bias()), Allowed(bias() > -0.5), Allowed(bias() > 0.9)])
def test_masks_that_are_tensors_are_measured_too(mask):
    """A position bias, as T5 has it, was refused for its leading dimensions."""
    given = view(mask)
    found, dense = long_numbers(given).values, head_numbers(given).values
    for name in ("hardmax_rank", "output_rank", "query_key_rank"):
        assert found[name] == dense[name], name
    assert found["stable_rank"] == pytest.approx(dense["stable_rank"], rel=1e-3)
    assert found["logit_scale"] == pytest.approx(dense["logit_scale"], rel=1e-9)


def test_a_long_head_that_has_to_be_formed_is_refused_if_it_does_not_fit(monkeypatch):
    """Softcap and sinks need the matrix; a long sequence would have filled the memory."""
    transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")
    model, batch = tiny(transformers, "gpt_oss"), inputs("gpt_oss")
    assert {row.method for row in scan(model, batch, longest_dense=4).rows} == {"dense"}
    monkeypatch.setattr("headwise.memory.available_bytes", lambda device: 1000)
    monkeypatch.setattr("headwise.memory.ALWAYS_TRIED", 0)
    with pytest.raises(TooLargeError, match=r"on 7 tokens it needs 2\.35 kB of memory"):
        scan(model, batch, longest_dense=4)
