"""A scan against a dense float64 oracle, head by head."""

import math

import pytest
import torch
from torch import nn

from headwise.attention import Causal, HeadGeometry, mha
from headwise.errors import BadInputError
from headwise.models import EncoderStack
from headwise.probing import scan
from headwise.probing.scanning import COARSE

TOKENS = torch.randn(2, 9, 12, generator=torch.Generator().manual_seed(0))


def model():
    return EncoderStack(HeadGeometry.standard(12, heads=3), depth=2, mlp_width=16)


def test_every_number_is_that_of_the_matrix():
    layer = mha(HeadGeometry.standard(12, heads=3), temperature=0.05)
    found = scan(layer, TOKENS)
    matrices = layer.view(TOKENS).matrix().detach()
    assert [row.head for row in found.rows] == [0, 1, 2]
    for row in found.rows:
        values = torch.linalg.svdvals(matrices[:, row.head])
        energy = values.square() / values.square().sum(-1, keepdim=True)
        shares = values / values.sum(-1, keepdim=True)
        logits = layer.view(TOKENS).logits().values[:, row.head]
        wanted = {
            "rank_low": (values >= 1e-8).sum(-1),
            "rank_high": (values >= 1e-8).sum(-1),
            "coarse_rank": (values >= COARSE).sum(-1),
            "effective_rank": torch.special.entr(shares).sum(-1).exp(),
            "stable_rank": values.square().sum(-1) / values[:, 0].square(),
            "energy_90": (energy.cumsum(-1) < 0.9).sum(-1) + 1,
            "logit_scale": torch.stack([each.std() for each in logits]),
        }
        for name, each in wanted.items():
            assert getattr(row, name) == pytest.approx(float(each.double().mean()), rel=1e-9), name
        assert (row.tokens, row.head_dim, row.mask, row.dtype) == (9.0, 4, "none", "float32")
        assert row.sequences == 2


def test_planted_ranks_are_found():
    """Equal queries make equal rows: rank one; sharp causal heads on themselves: full rank."""
    layer = mha(HeadGeometry.standard(12, heads=3))
    with torch.no_grad():
        layer.projection.query.weight.zero_()
    for row in scan(layer, TOKENS).rows:
        assert (row.rank, row.coarse_rank, row.energy_90) == (1.0, 1.0, 1.0)
        assert row.effective_rank == pytest.approx(1.0, abs=1e-6)
        assert row.logit_scale == 0.0


def test_padding_is_left_out_and_the_mode_is_restored():
    encoder = nn.TransformerEncoderLayer(12, 3, dim_feedforward=16, batch_first=True).train()
    padded = torch.tensor([[False] * 9, [False] * 5 + [True] * 4])
    found = scan(encoder, {"src": TOKENS, "src_key_padding_mask": padded})
    assert {row.tokens for row in found.rows} == {7.0}
    assert encoder.training
    alone = [scan(encoder, TOKENS[:1]).rows[0], scan(encoder, TOKENS[1:, :5]).rows[0]]
    mean = sum(row.effective_rank for row in alone) / 2
    assert found.rows[0].effective_rank == pytest.approx(mean, rel=1e-5)


def test_rows_become_a_table_and_a_picture(tmp_path):
    found = scan(model(), (TOKENS, Causal()))
    assert found.layers == ["blocks.0.attention", "blocks.1.attention"]
    assert {row.mask for row in found.rows} == {"causal"}
    table = found.table("rank")
    assert [len(heads) for heads in table] == [3, 3]
    assert all(math.isfinite(value) for heads in table for value in heads)
    found.plot(file=tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 0
    assert len(repr(found)) < 300


def test_rows_become_a_frame():
    found = scan(model(), TOKENS)
    frame = found.to_frame()
    assert len(frame) == 6
    assert frame.coarse_rank.tolist() == [row.coarse_rank for row in found.rows]


def test_bad_activations_are_refused_with_the_layer():
    broken = model()
    with torch.no_grad():
        broken.blocks[1].attention.projection.key.weight.fill_(torch.nan)
    with pytest.raises(BadInputError, match=r"NaN or infinity in layer 'blocks\.1\.attention'"):
        scan(broken, TOKENS)
