"""The one layer against stock layers and against the formula written out."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.copies import close, ours_from_stock, random_, stock, tokens
from headwise.attention import (
    Attention,
    Causal,
    FanIn,
    FullProjection,
    Hardmax,
    HeadGeometry,
    HeadMean,
    LearnedAdditive,
    LearnedConcatenated,
    Padding,
    Rotary,
    StraightThroughHardmax,
    gqa,
    mha,
)
from headwise.errors import BadInputError


def written_out(layer, x, context=None, mask=None):
    """Σ_h W_O,h softmax(q kᵀ / T) v head by head, in the plainest way."""
    p, g, context = layer.projection, layer.geometry, x if context is None else context
    total = torch.zeros(x.shape[0], x.shape[1], g.width, dtype=x.dtype)
    for head in range(g.heads):
        kv, r, v = head // g.group, g.qk_rank, g.v_rank

        def part(linear, source, index, rank):
            rows = slice(index * rank, (index + 1) * rank)
            bias = 0 if linear.bias is None else linear.bias[rows]
            return source @ linear.weight[rows].T + bias

        q, k = part(p.query, x, head, r), part(p.key, context, kv, r)
        logits = q @ k.mT / layer.temperature
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        mixed = torch.softmax(logits, -1) @ part(p.value, context, kv, v)
        total = total + mixed @ p.output.weight[:, head * v : (head + 1) * v].T * layer.factor
    return total if p.output.bias is None else total + p.output.bias


@pytest.mark.parametrize("heads", [1, 3, 12])
@pytest.mark.parametrize("bias", [True, False])
def test_standard_mha_equals_torch_with_copied_weights_gradients_included(heads, bias):
    theirs = stock(12, heads, bias=bias)
    ours = ours_from_stock(theirs)
    x, y = tokens(2, 7, 12).requires_grad_(), tokens(2, 7, 12).requires_grad_()
    a, b = ours(x), theirs(y, y, y, need_weights=False)[0]
    close(a, b)
    direction = tokens(2, 7, 12, seed=5)
    a.backward(direction)
    b.backward(direction)
    close(x.grad, y.grad)
    p = ours.projection
    packed = torch.cat([p.query.weight.grad, p.key.weight.grad, p.value.weight.grad])
    close(packed, theirs.in_proj_weight.grad)
    close(p.output.weight.grad, theirs.out_proj.weight.grad)
    if bias:
        packed = torch.cat([p.query.bias.grad, p.key.bias.grad, p.value.bias.grad])
        close(packed, theirs.in_proj_bias.grad)
        close(p.output.bias.grad, theirs.out_proj.bias.grad)


def test_cross_attention_and_masks_equal_torch():
    theirs = stock(12, 3)
    ours = ours_from_stock(theirs)
    x, context = tokens(2, 7, 12), tokens(2, 5, 12, seed=2)
    close(ours(x, context), theirs(x, context, context)[0])
    allowed = torch.ones(7, 5, dtype=torch.bool).tril()
    close(ours(x, context, mask=allowed), theirs(x, context, context, attn_mask=~allowed)[0])
    causal = theirs(x, x, x, attn_mask=~torch.ones(7, 7, dtype=torch.bool).tril())[0]
    close(ours(x, mask=Causal()), causal)
    padding = Padding.of_lengths(torch.tensor([3, 5]), size=5)
    padded = theirs(x, context, context, key_padding_mask=~padding.real)[0]
    close(ours(x, context, mask=padding), padded)


def test_the_matrix_equals_torchs():
    theirs = stock(12, 3)
    x = tokens(2, 7, 12)
    wanted = theirs(x, x, x, average_attn_weights=False)[1]
    close(ours_from_stock(theirs).matrix(x), wanted)


def test_averaged_copies_are_one_layer_with_more_heads():
    copies = [stock(8, 8, seed=s) for s in range(5)]
    layer = random_(mha(HeadGeometry.free(8, 40, 1), "all", combination=HeadMean(5)).double())
    p = layer.projection
    with torch.no_grad():
        for index, name in enumerate(("query", "key", "value")):
            linear = getattr(p, name)
            linear.weight.copy_(torch.cat([c.in_proj_weight.chunk(3)[index] for c in copies]))
            linear.bias.copy_(torch.cat([c.in_proj_bias.chunk(3)[index] for c in copies]))
        p.output.weight.copy_(torch.cat([c.out_proj.weight for c in copies], dim=1))
        p.output.bias.copy_(torch.stack([c.out_proj.bias for c in copies]).mean(0))
    x, y = tokens(3, 6, 8).requires_grad_(), tokens(3, 6, 8).requires_grad_()
    a = layer(x)
    b = torch.stack([c(y, y, y, need_weights=False)[0] for c in copies]).mean(0)
    close(a, b)
    a.square().sum().backward()
    b.square().sum().backward()
    close(x.grad, y.grad)
    stacked = torch.cat([c.in_proj_weight.grad.chunk(3)[1] for c in copies])
    close(p.key.weight.grad, stacked)


@settings(deadline=None, max_examples=40)
@given(
    width=st.integers(1, 9),
    group=st.integers(1, 3),
    kv_heads=st.integers(1, 3),
    qk=st.integers(1, 4),
    v=st.integers(1, 4),
    n=st.integers(1, 5),
    m=st.integers(1, 5),
    biases=st.sampled_from(["none", "qkv", "all"]),
)
def test_any_geometry_equals_the_formula(width, group, kv_heads, qk, v, n, m, biases):
    geometry = HeadGeometry(width, group * kv_heads, kv_heads, qk, v)
    layer = random_(gqa(geometry, biases, temperature=0.7).double())
    x, context = tokens(2, n, width), tokens(2, m, width, seed=2)
    close(layer(x, context), written_out(layer, x, context))
    close(layer(x, mask=Causal()), written_out(layer, x, mask=torch.ones(n, n).tril() > 0))


def test_grouped_with_equal_heads_is_full():
    geometry = HeadGeometry.free(8, 4, 3)
    assert torch.equal(
        gqa(geometry)(tokens(1, 5, 8).float()), mha(geometry)(tokens(1, 5, 8).float())
    )


def test_one_token_returns_its_value():
    layer = random_(mha(HeadGeometry.standard(8, 2)).double())
    x = tokens(2, 1, 8)
    wanted = x @ layer.projection.value.weight.T @ layer.projection.output.weight.T
    close(layer(x), wanted)


def test_4096_rank_one_heads_make_no_loop_over_heads(monkeypatch):
    calls = 0
    original = torch.nn.Linear.forward

    def counted(self, x):
        nonlocal calls
        calls += 1
        return original(self, x)

    monkeypatch.setattr(torch.nn.Linear, "forward", counted)
    layer = mha(HeadGeometry.free(8, 4096, 1))
    assert layer(torch.zeros(1, 3, 8)).shape == (1, 3, 8)
    assert calls == 4


class TestHardmax:
    geometry = HeadGeometry.free(8, 4, 3)

    def test_it_is_the_cold_limit_of_softmax(self):
        x = tokens(2, 5, 8)
        hard = random_(mha(self.geometry, weighting=Hardmax()).double()).eval()
        cold = random_(mha(self.geometry, temperature=1e-9).double())
        close(hard(x), cold(x))
        close(hard.matrix(x), cold.matrix(x))

    def test_straight_through_has_the_value_of_hardmax_and_the_gradient_of_softmax(self):
        x = tokens(2, 5, 8)
        hard = random_(mha(self.geometry, weighting=Hardmax()).double()).eval()
        through = random_(mha(self.geometry, weighting=StraightThroughHardmax()).double())
        soft = random_(mha(self.geometry).double())
        close(through(x), hard(x))
        direction = tokens(2, 4, 5, 5)
        for layer in (through, soft):
            layer.matrix(x).backward(direction)
        close(through.projection.query.weight.grad, soft.projection.query.weight.grad)
        assert through.projection.query.weight.grad.abs().max() > 0

    def test_training_without_a_gradient_rule_is_refused(self):
        layer = mha(self.geometry, weighting=Hardmax())
        with pytest.raises(BadInputError, match=r"no gradient.*StraightThroughHardmax"):
            layer(torch.zeros(1, 2, 8))
        with torch.no_grad():
            layer(torch.zeros(1, 2, 8))


class TestPositionsInALayer:
    def test_rotary_logits_depend_on_the_distance_alone(self):
        layer = random_(mha(HeadGeometry.free(8, 2, 6), position=Rotary(6)).double())
        same = tokens(1, 1, 8).expand(1, 9, 8)
        logits = layer.view(same).logits().values[0, 0]
        for offset in range(-8, 9):
            diagonal = logits.diagonal(offset)
            close(diagonal, diagonal[:1].expand_as(diagonal))
        assert logits.std() > 1e-3

    def test_learned_positions_reach_the_layer(self):
        added = mha(HeadGeometry.standard(8, 2), position=LearnedAdditive(5, 8))
        joined = mha(HeadGeometry.standard(12, 2), position=LearnedConcatenated(5, 4))
        x = torch.zeros(1, 5, 8)
        assert added(x).std() > 0
        assert joined(x).shape == (1, 5, 12)


REFUSALS = {
    "flat tokens": (
        lambda layer: layer(torch.zeros(8)),
        r"expected query of shape \(batch, sequence, width\), got \(8,\); pass \(sequence, width\)",
    ),
    "another width": (
        lambda layer: layer(torch.zeros(1, 3, 9)),
        "expected query of width 8, got 9; the layer was built for width 8",
    ),
    "context of another width": (
        lambda layer: layer(torch.zeros(1, 3, 8), torch.zeros(1, 3, 7)),
        "expected key of width 8, got 7",
    ),
    "mask of wrong shape": (
        lambda layer: layer(torch.zeros(1, 3, 8), mask=torch.ones(4, 3).bool()),
        r"broadcasts to logits of shape \(1, 2, 3, 3\), got shape \(4, 3\)",
    ),
    "mask of wrong dtype": (
        lambda layer: layer(torch.zeros(1, 3, 8), mask=torch.ones(3, 3).int()),
        "expected a boolean or float mask, got dtype int32",
    ),
    "a row that masks everything": (
        lambda layer: layer(torch.zeros(1, 3, 8), mask=torch.zeros(3, 3).bool()),
        "row 0 .*masks every key",
    ),
    "a row that masks everything, with hardmax": (
        lambda _: mha(HeadGeometry.standard(8, 2), weighting=StraightThroughHardmax())(
            torch.zeros(1, 3, 8), mask=torch.zeros(3, 3).bool()
        ),
        r"row 0 .*masks every key",
    ),
    "uneven copies": (
        lambda _: mha(HeadGeometry.free(8, 4, 1), combination=HeadMean(3)),
        "expected copies to divide 4 heads, got 3; pass a divisor of 4",
    ),
    "cold": (
        lambda _: mha(HeadGeometry.free(8, 4, 1), temperature=0.0),
        "expected `temperature` above zero, got 0.0",
    ),
    "shared heads in a full projection": (
        lambda _: mha(HeadGeometry.standard(8, 4).grouped(2)),
        r"a full projection needs .* 4 heads, got kv_heads=2; use gqa",
    ),
    "a sequence longer than the table": (
        lambda _: mha(HeadGeometry.standard(8, 2), position=LearnedAdditive(5, 8))(
            torch.zeros(1, 6, 8)
        ),
        "a sequence of 6 tokens is longer than the position table of 5; .* with length=6",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_refused_with_the_remedy(name):
    call, message = REFUSALS[name]
    with pytest.raises(BadInputError, match=message):
        call(mha(HeadGeometry.standard(8, heads=2)))


def test_the_same_seed_draws_the_same_layer_and_another_seed_another():
    geometry = HeadGeometry.standard(8, 2)
    first, same, other = (mha(geometry, "none", FanIn(s)) for s in (0, 0, 1))
    assert torch.equal(first.projection.key.weight, same.projection.key.weight)
    assert not torch.equal(first.projection.key.weight, other.projection.key.weight)
    assert not torch.equal(first.projection.key.weight, first.projection.query.weight)


def test_making_a_layer_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    Attention(FullProjection(HeadGeometry.standard(8, 2), "all"))
    assert torch.equal(before, torch.get_rng_state())


def test_a_function_can_be_applied_to_every_part_of_a_model():
    """As initialisers do: no part may take ``nn.Module.apply`` for itself."""
    seen = []
    mha(HeadGeometry.standard(8, heads=2)).apply(seen.append)
    assert any(isinstance(part, Attention) for part in seen)
