"""The stack at initialisation, against torch's own encoder layer and against plain formulas."""

import math

import pytest
import torch
from torch import nn

from headwise.experiments import initial_stack
from headwise.experiments.initial_stack import InitialLayer, StackShape, collapse


def tokens_of(batch=3, n=7, width=12, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, n, width, generator=generator, dtype=torch.float64)


def torch_layer(layer: InitialLayer, shape: StackShape) -> nn.TransformerEncoderLayer:
    """torch's encoder layer with the same weights and no biases to speak of."""
    inner = shape.heads * shape.head_dim
    oracle = nn.TransformerEncoderLayer(
        shape.width,
        shape.heads,
        shape.mlp_width,
        dropout=0.0,
        batch_first=True,
        norm_first=shape.norm == "pre",
        dtype=torch.float64,
    )
    weights = {
        name: layer._weights(name, *sizes)
        for name, sizes in {
            "queries": (shape.width, inner),
            "keys": (shape.width, inner),
            "values": (shape.width, inner),
            "output": (inner, shape.width),
            "expand": (shape.width, shape.mlp_width),
            "contract": (shape.mlp_width, shape.width),
        }.items()
    }
    with torch.no_grad():
        for parameter in oracle.parameters():
            parameter.zero_()
        oracle.norm1.weight.fill_(1)
        oracle.norm2.weight.fill_(1)
        parts = [weights[name].T for name in ("queries", "keys", "values")]
        oracle.self_attn.in_proj_weight.copy_(torch.cat(parts))
        oracle.self_attn.out_proj.weight.copy_(weights["output"].T)
        oracle.linear1.weight.copy_(weights["expand"].T)
        oracle.linear2.weight.copy_(weights["contract"].T)
    return oracle


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("weights", ["normal(0,1)", "xavier"])
def test_a_layer_is_torchs_encoder_layer(norm, weights):
    shape = StackShape(12, 4, heads=3, mlp_width=5, weights=weights, norm=norm)
    layer, tokens = InitialLayer(shape, seed=0, number=1), tokens_of()
    with torch.no_grad():
        expected = torch_layer(layer, shape)(tokens)
    torch.testing.assert_close(layer(tokens), expected, rtol=1e-10, atol=1e-10)


def test_parts_that_are_taken_away_are_away():
    shape = StackShape(12, 4, heads=3, mlp_width=0, skip=False, norm="none")
    layer, tokens = InitialLayer(shape, seed=0, number=2), tokens_of()
    found = torch.zeros_like(tokens)
    for head in range(3):
        at = slice(4 * head, 4 * head + 4)
        query, key = tokens @ layer._reading[0][:, at], tokens @ layer._reading[1][:, at]
        value = tokens @ layer._weights("values", 12, 12)[:, at]
        attention = torch.softmax(query @ key.mT / math.sqrt(4), -1)
        found += attention @ value @ layer._weights("output", 12, 12)[at]
    torch.testing.assert_close(layer(tokens), found)


def test_heads_a_few_at_a_time_are_all_heads(monkeypatch):
    shape = StackShape(12, 2, heads=6, temperature=0.5)
    layer, tokens = InitialLayer(shape, seed=3, number=1), tokens_of()
    whole, after = [part.values for part in layer.logits(tokens)], layer(tokens)
    for limit in ("LOGITS_AT_ONCE", "LOGITS_NEAR"):
        monkeypatch.setattr(initial_stack, limit, 2 * 3 * 7 * 7)
    parts = [part.values for part in layer.logits(tokens)]
    assert [len(part) for part in parts] == [2, 2, 2]
    torch.testing.assert_close(torch.cat(parts), torch.cat(whole), rtol=0, atol=0)
    torch.testing.assert_close(layer(tokens), after)
    query, key = tokens @ layer._reading[0][:, 2:4], tokens @ layer._reading[1][:, 2:4]
    torch.testing.assert_close(whole[0][1], query @ key.mT / 0.5)


@pytest.mark.parametrize(("projected", "sizes"), [(1, [2, 2, 2, 1]), (5, [2, 2, 2, 1]), (7, None)])
def test_heads_projected_a_few_at_a_time_are_all_heads(monkeypatch, projected, sizes):
    shape = StackShape(14, 2, heads=7)
    layer, tokens = InitialLayer(shape, seed=3, number=1), tokens_of(width=14)
    (whole,), after = [part.values for part in layer.logits(tokens)], layer(tokens)
    if sizes is not None:
        for limit in ("LOGITS_AT_ONCE", "LOGITS_NEAR"):
            monkeypatch.setattr(initial_stack, limit, 2 * 3 * 7 * 7)
    monkeypatch.setattr(initial_stack, "PROJECTED_AT_ONCE", projected * 3 * 7 * 2)
    parts = [part.values for part in layer.logits(tokens)]
    assert [len(part) for part in parts] == (sizes or [7])
    torch.testing.assert_close(torch.cat(parts), whole)
    torch.testing.assert_close(layer(tokens), after)


def test_every_layer_and_seed_has_its_own_weights():
    shape = StackShape(12, 4, heads=3)
    first = InitialLayer(shape, 0, 1)._reading[0]
    assert torch.equal(first, InitialLayer(shape, 0, 1)._reading[0])
    assert not torch.equal(first, InitialLayer(shape, 0, 2)._reading[0])
    assert not torch.equal(first, InitialLayer(shape, 1, 1)._reading[0])
    assert not torch.equal(first, InitialLayer(shape, 0, 1)._reading[1])


def test_collapse_by_hand():
    tokens = torch.tensor([[[3.0, 0.0], [0.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]]).double()
    # Mean (1.5, 2), both tokens 2.5 away: √12.5 of a size of 5; the second item is all equal.
    assert collapse(tokens) == pytest.approx(math.sqrt(12.5) / 5 / 2)
