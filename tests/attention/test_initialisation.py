"""Initialisations: the distributions they state."""

import pytest
import torch
from torch import nn

from headwise.attention import (
    FanIn,
    HeadGeometry,
    LatentGeometry,
    Stock,
    UnitGaussian,
    mha,
    mla,
)

GEOMETRY = HeadGeometry.free(64, heads=50, rank=7)


def spread(weight):
    return float(weight.detach().std())


@pytest.mark.parametrize(
    ("rule", "reading", "writing"),
    [
        (FanIn(), 64**-0.5, (50 * 7) ** -0.5),
        (UnitGaussian(), 1.0, 1.0),
        (Stock(), (6 / (4 * 64) / 3) ** 0.5, (1 / 64 / 3) ** 0.5),
    ],
)
def test_spreads_are_as_stated(rule, reading, writing):
    # 22,400 draws: the standard error of a spread is below 0.5 %, and 3 % is six of them.
    p = mha(GEOMETRY, "all", rule).projection
    for linear in (p.query, p.key, p.value):
        assert spread(linear.weight) == pytest.approx(reading, rel=0.03)
        assert linear.bias.abs().max() == 0
    assert spread(p.output.weight) == pytest.approx(writing, rel=0.03)


def test_fan_in_keeps_unit_variance_for_any_number_of_heads():
    tokens = torch.randn(64, 16, 64, generator=torch.Generator().manual_seed(0))
    for heads, rank in ((1, 64), (400, 1), (3, 20)):
        layer = mha(HeadGeometry.free(64, heads, rank))
        q, k, v = layer.projection(tokens, tokens)
        assert [spread(t) for t in (q, k, v)] == pytest.approx([1, 1, 1], rel=0.2)
        unmixed = layer.projection.combine(v)
        assert spread(unmixed) == pytest.approx(1, rel=0.2)


def test_stock_has_the_bounds_of_torch():
    torch_layer = nn.MultiheadAttention(64, 4)
    ours = mha(HeadGeometry.standard(64, 4), "all", Stock()).projection
    assert float(ours.query.weight.detach().abs().max()) == pytest.approx(
        float(torch_layer.in_proj_weight.detach().abs().max()), rel=0.01
    )
    assert float(ours.output.weight.detach().abs().max()) == pytest.approx(
        float(torch_layer.out_proj.weight.detach().abs().max()), rel=0.01
    )


def test_latent_maps_are_all_drawn():
    geometry = LatentGeometry(64, 4, 4, 24, 16, kv_latent=32, q_latent=20, rope_rank=8)
    p = mla(geometry, "none", UnitGaussian()).projection
    for linear in (p.query_down, p.query, p.key_value_down, p.key_value_up, p.output):
        assert spread(linear.weight) == pytest.approx(1, rel=0.1)


def test_children_draw_their_own_streams():
    assert UnitGaussian(1).child("layer", 0) != UnitGaussian(1).child("layer", 1)
    assert isinstance(UnitGaussian(1).child("layer", 0), UnitGaussian)
