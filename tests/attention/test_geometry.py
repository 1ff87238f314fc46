"""Head geometry: formulas of cost, and refusals that name what would work."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headwise.attention import HeadGeometry, LatentGeometry
from headwise.errors import BadInputError
from headwise.geometry import usual

sizes = st.integers(1, 40)


@given(width=sizes, group=sizes, kv_heads=sizes, qk=sizes, v=sizes)
def test_costs_count_the_matrices_themselves(width, group, kv_heads, qk, v):
    geometry = HeadGeometry(width, group * kv_heads, kv_heads, qk, v)
    heads = group * kv_heads
    shapes = [(heads * qk, width), (kv_heads * qk, width), (kv_heads * v, width)]
    weights = [torch.empty(shape, device="meta") for shape in [*shapes, (width, heads * v)]]
    assert geometry.parameters == sum(w.numel() for w in weights)
    assert geometry.biases == sum(w.shape[0] for w in weights)
    assert geometry.cache_bytes_per_token(2) == 2 * kv_heads * (qk + v)
    assert geometry.flops_per_token(7) == 2 * geometry.parameters + 2 * 7 * heads * (qk + v)
    assert geometry.group == group


def test_rank_one_heads_cost_what_full_rank_costs_at_equal_product():
    many, few = HeadGeometry.free(64, 4096, 1), HeadGeometry.free(64, 64, 64)
    assert many.parameters == few.parameters == 4 * 64 * 4096


def test_standard_divides_the_width():
    assert HeadGeometry.standard(60, 4) == HeadGeometry(60, 4, 4, 15, 15)


def test_grouping_shrinks_the_cache():
    full = HeadGeometry.standard(64, 8)
    assert full.grouped(2).cache_bytes_per_token(4) * 4 == full.cache_bytes_per_token(4)


@given(st.integers(1, 10_000))
def test_the_usual_heads_fill_the_width_where_a_head_dimension_near_64_can(width):
    found = usual(width)
    near = [rank for rank in range(43, 97) if width % rank == 0]
    assert found.heads * found.qk_rank == width or not near
    assert found.qk_rank == 64 or width % 64
    assert found.qk_rank == width or width > 64


@pytest.mark.parametrize(("width", "shape"), [(96, (2, 48)), (160, (2, 80)), (257, (4, 64))])
def test_the_usual_head_dimension_is_the_divisor_nearest_to_64(width, shape):
    assert (usual(width).heads, usual(width).qk_rank) == shape


class TestLatent:
    geometry = LatentGeometry(7168, 128, 128, 192, 128, kv_latent=512, q_latent=1536, rope_rank=64)

    def test_the_published_deepseek_v3_layer(self):
        # q_a 7168·1536, q_b 1536·24576, kv_a 7168·576, kv_b 512·32768, o 16384·7168
        assert self.geometry.parameters == 11010048 + 37748736 + 4128768 + 16777216 + 117440512
        assert self.geometry.cache_bytes_per_token(2) == 2 * 576

    def test_flops_use_the_whole_rank(self):
        attending = 2 * 1000 * 128 * (192 + 128)
        assert self.geometry.flops_per_token(1000) == 2 * self.geometry.parameters + attending

    def test_queries_may_stay_uncompressed(self):
        plain = LatentGeometry(64, 4, 4, 24, 16, kv_latent=32, q_latent=None, rope_rank=8)
        assert plain.parameters == 64 * 96 + 64 * 40 + 32 * 4 * 32 + 64 * 64
        assert plain.biases == 96 + 40 + 64

    def test_no_rotary_part_is_allowed(self):
        assert LatentGeometry(8, 2, 2, 4, 4, 8, None, rope_rank=0).content_rank == 4


REFUSALS = {
    "kv heads": (
        lambda: HeadGeometry(64, 8, 3, 8, 8),
        "expected kv_heads that divides 8 heads, got 3; choose kv_heads from 1, 2, 4, 8",
    ),
    "zero rank": (
        lambda: HeadGeometry(64, 8, 8, 0, 8),
        "expected qk_rank of at least 1, got 0; pass 1 or more",
    ),
    "true heads": (lambda: HeadGeometry(64, True, 1, 8, 8), "for heads, got True"),
    "indivisible width": (
        lambda: HeadGeometry.standard(64, 5),
        "expected heads that divide the width 64, got 5; choose heads from 1, 2, 4, 8, 16, 32, 64",
    ),
    "grouped latent": (
        lambda: LatentGeometry(64, 8, 2, 8, 8, 16, None, 0),
        "expected kv_heads=8 for latent attention, got 2; pass kv_heads=8",
    ),
    "odd rotary part": (
        lambda: LatentGeometry(64, 8, 8, 8, 8, 16, None, 3),
        "expected an even rope_rank below qk_rank 8, got 3; choose rope_rank from 0, 2, 4, 6",
    ),
    "zero latent": (
        lambda: LatentGeometry(64, 8, 8, 8, 8, 0, None, 2),
        "expected kv_latent of at least 1, got 0",
    ),
    "zero query latent": (
        lambda: LatentGeometry(64, 8, 8, 8, 8, 8, 0, 2),
        "expected q_latent of at least 1, got 0",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_impossible_geometry_names_the_choices(name):
    call, message = REFUSALS[name]
    with pytest.raises(BadInputError, match=message):
        call()
