"""Encoder stacks: what they compute, how they are counted, what they refuse."""

from functools import partial

import pytest
import torch
from torch import nn

from attention.copies import close, random_, tokens
from headwise.attention import (
    Causal,
    FanIn,
    HeadGeometry,
    HeadMean,
    LatentGeometry,
    LearnedAdditive,
    LearnedConcatenated,
    Rotary,
    UnitGaussian,
    mha,
)
from headwise.errors import BadInputError
from headwise.models import EncoderStack, Style, UnitNorm, parameter_counts

GEOMETRIES = {
    "full": HeadGeometry.standard(12, 4),
    "free": HeadGeometry(12, 6, 6, 2, 5),
    "grouped": HeadGeometry.standard(12, 6).grouped(2),
    "rank one": HeadGeometry.free(12, 30, 1),
    "latent": LatentGeometry(12, 3, 3, 6, 4, kv_latent=5, q_latent=7, rope_rank=2),
}


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("norm", ["layer", "rms", "unit"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_counts_agree_with_the_geometry_and_sum_to_all(name, norm, placement):
    geometry = GEOMETRIES[name]
    model = EncoderStack(
        geometry, depth=3, mlp_width=7, norm=norm, style=Style(placement=placement)
    )
    counts = parameter_counts(model)
    assert counts["attention"] == 3 * geometry.parameters
    assert sum(counts.values()) == sum(p.numel() for p in model.parameters())
    assert counts["attention biases"] == 3 * geometry.biases
    assert counts["mlp"] == 3 * (2 * 12 * 7 + 7 + 12)
    assert model(torch.ones(2, 5, 12)).shape == (2, 5, 12)


def test_without_biases_there_are_none():
    model = EncoderStack(
        GEOMETRIES["full"], depth=2, mlp_width=7, norm="unit", style=Style(biases="none")
    )
    counts = parameter_counts(model)
    assert counts == {
        "attention": 2 * GEOMETRIES["full"].parameters,
        "mlp": 2 * 2 * 12 * 7,
        "norm": 5,
    }


def by_hand(model, x, placement):
    block = model.blocks[0]
    if placement == "pre":
        x = x + block.attention(block.attention_norm(x))
        x = x + block.mlp(block.mlp_norm(x))
        return model.last_norm(x)
    x = block.attention_norm(x + block.attention(x))
    return block.mlp_norm(x + block.mlp(x))


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_norms_stand_where_they_are_said_to(placement):
    style = Style(placement=placement, activation="relu")
    model = random_(EncoderStack(GEOMETRIES["full"], depth=1, mlp_width=7, style=style).double())
    x = tokens(2, 5, 12)
    close(model(x), by_hand(model, x, placement))


def test_a_post_norm_stack_equals_torchs_encoder_layer_with_copied_weights():
    theirs = random_(
        nn.TransformerEncoderLayer(
            12, 4, dim_feedforward=7, dropout=0.0, batch_first=True, dtype=torch.float64
        )
    )
    style = Style(placement="post", activation="relu")
    ours = EncoderStack(GEOMETRIES["full"], depth=1, mlp_width=7, style=style).double()
    block, p = ours.blocks[0], ours.blocks[0].attention.projection
    packed = zip(
        (p.query, p.key, p.value),
        theirs.self_attn.in_proj_weight.chunk(3),
        theirs.self_attn.in_proj_bias.chunk(3),
        strict=True,
    )
    with torch.no_grad():
        for linear, weight, bias in packed:
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
    for mine, source in (
        (p.output, theirs.self_attn.out_proj),
        (block.mlp.expand, theirs.linear1),
        (block.mlp.contract, theirs.linear2),
        (block.attention_norm, theirs.norm1),
        (block.mlp_norm, theirs.norm2),
    ):
        mine.load_state_dict(source.state_dict())
    x = tokens(2, 5, 12)
    close(ours(x), theirs(x))


def test_unit_norm_puts_tokens_on_a_sphere_of_one_learned_radius():
    norm = UnitNorm().double()
    with torch.no_grad():
        norm.scale.fill_(3.0)
    close(norm(tokens(2, 5, 12)).norm(dim=-1), torch.full((2, 5), 3.0).double())
    assert norm(torch.zeros(1, 4).double()).abs().max() == 0
    assert sum(p.numel() for p in norm.parameters()) == 1


def test_layers_of_one_stack_differ():
    model = EncoderStack(GEOMETRIES["full"], depth=2, mlp_width=7)
    first, second = (b.attention.projection.query.weight for b in model.blocks)
    assert not torch.equal(first, second)
    assert not torch.equal(model.blocks[0].mlp.expand.weight, model.blocks[1].mlp.expand.weight)


class TestPositions:
    def test_additive_positions_enter_once(self):
        model = EncoderStack(GEOMETRIES["full"], LearnedAdditive(9, 12), depth=2, mlp_width=7)
        assert parameter_counts(model)["position"] == 9 * 12
        assert all(b.attention.position.turned_rank == 0 for b in model.blocks)

    def test_concatenated_positions_widen_the_tokens(self):
        model = EncoderStack(GEOMETRIES["full"], LearnedConcatenated(9, 4), depth=1, mlp_width=7)
        assert model.token_width == 8
        assert model(torch.zeros(2, 5, 8)).shape == (2, 5, 12)

    def test_rotary_positions_turn_in_every_layer(self):
        model = EncoderStack(GEOMETRIES["full"], Rotary(2), depth=3, mlp_width=7)
        assert [b.attention.position.turned_rank for b in model.blocks] == [2, 2, 2]

    def test_without_positions_the_order_of_tokens_does_not_matter(self):
        model = random_(EncoderStack(GEOMETRIES["full"], depth=2, mlp_width=7).double())
        x, order = tokens(2, 5, 12), torch.tensor([3, 1, 4, 0, 2])
        close(model(x)[:, order], model(x[:, order]))

    def test_a_causal_mask_hides_the_future(self):
        model = random_(EncoderStack(GEOMETRIES["full"], depth=2, mlp_width=7).double())
        x = tokens(2, 5, 12)
        changed = torch.cat([x[:, :3], tokens(2, 2, 12, seed=9)], dim=1)
        close(model(x, Causal())[:, :3], model(changed, Causal())[:, :3])


def test_the_heads_papers_layer_is_a_style():
    style = Style(
        placement="post",
        activation="relu",
        initialisation=FanIn(3),
        attention=partial(mha, combination=HeadMean(copies=5)),
    )
    geometry = HeadGeometry.free(12, 60, 1)
    model = EncoderStack(geometry, depth=1, mlp_width=7, norm="unit", style=style)
    assert model.blocks[0].attention.factor == 0.2


def test_the_rank_papers_block_is_a_style():
    model = EncoderStack(
        GEOMETRIES["full"], depth=1, mlp_width=512, style=Style(initialisation=UnitGaussian())
    )
    assert 0.9 < float(model.blocks[0].mlp.expand.weight.detach().std()) < 1.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: EncoderStack(GEOMETRIES["full"], depth=0, mlp_width=7),
            "expected depth of at least 1, got 0",
        ),
        (
            lambda: EncoderStack(GEOMETRIES["full"], depth=1, mlp_width=0),
            "expected mlp_width of at least 1",
        ),
    ],
)
def test_bad_sizes_are_refused(call, message):
    with pytest.raises(BadInputError, match=message):
        call()
