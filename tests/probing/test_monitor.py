"""RankMonitor against the rank itself, in a plain training loop."""

import pytest
import torch
from torch import nn

from headwise.attention import HeadGeometry, mha
from headwise.errors import BadInputError
from headwise.models import EncoderStack
from headwise.probing import CollapseWarning, LayerRank, RankMonitor, capture

TOKENS = torch.randn(2, 7, 8, generator=torch.Generator().manual_seed(0))


def stack():
    return EncoderStack(HeadGeometry.standard(8, heads=2), depth=2, mlp_width=16)


def test_the_rank_is_that_of_the_layers_matrices():
    layer = mha(HeadGeometry.standard(8, heads=2)).double()
    (row,) = RankMonitor(TOKENS.double())(layer)
    values = torch.linalg.svdvals(layer.matrix(TOKENS.double()).detach())
    assert row.rank_ratio == pytest.approx(float((values >= 1e-8).sum(-1).double().mean()) / 7)
    shares = values / values.sum(-1, keepdim=True)
    effective = torch.special.entr(shares).sum(-1).exp().mean()
    assert row.effective_rank_ratio == pytest.approx(float(effective) / 7, rel=1e-6)


@pytest.mark.parametrize("batch_first", [True, False])
def test_stock_layers_are_read_as_they_attend(batch_first):
    layer = nn.MultiheadAttention(8, 2, batch_first=batch_first, dropout=0.1).eval()
    x = TOKENS if batch_first else TOKENS.transpose(0, 1)
    allowed = torch.ones(7, 7).tril().bool()
    padding = torch.tensor([[False] * 7, [False] * 5 + [True] * 2])
    seen = []
    with capture(layer, lambda name, view: seen.append(view)):
        _, weights = layer(
            x, x, x, attn_mask=~allowed, key_padding_mask=padding, average_attn_weights=False
        )
    ours = seen[0].logits().values.softmax(-1)
    torch.testing.assert_close(ours, weights.double(), rtol=1e-5, atol=1e-6)


def test_a_fused_encoder_is_read_too():
    layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    monitor = RankMonitor(TOKENS)
    (row,) = monitor(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval())
    assert row.layer == "layers.0.self_attn"
    assert 0 < row.rank_ratio <= 1


def test_a_plain_loop_is_looked_at_every_few_steps_and_left_as_it_was():
    model, logged = stack(), []
    model.blocks[1].eval()
    monitor = RankMonitor((TOKENS,), every=3, log=lambda metrics, step: logged.append(step))
    for _ in range(7):
        model(TOKENS).square().mean().backward()
        monitor(model)
    assert [row.step for row in monitor.rows] == [0, 0, 3, 3, 6, 6] == logged
    assert model.blocks[0].training
    assert not model.blocks[1].training
    assert model.blocks[0].attention.observer is None
    assert all(p.grad is not None for p in model.blocks[0].attention.parameters())


def collapse(layer):
    """Zero queries: every row of attention is uniform, of rank one."""
    with torch.no_grad():
        layer.projection.query.weight.zero_()


def test_a_layer_whose_rows_are_nearly_equal_from_the_beginning_does_not_collapse():
    """Its effective rank falls from 1.00012 to 1.00005 of 12 tokens: the message showed no fall."""
    monitor = RankMonitor(TOKENS, on_collapse="stop")
    for step, above in enumerate((1e-5, 4e-6)):
        monitor._judge(LayerRank(step, "last", 0.5, 1 / 12 + above, tokens=12.0))
    assert not monitor.should_stop


def test_a_collapse_warns_once_and_stops_if_asked():
    layer = mha(HeadGeometry.standard(8, heads=2))
    with torch.no_grad():
        layer.projection.query.weight.mul_(20)
    monitor = RankMonitor({"query": TOKENS}, every=1, on_collapse="stop")
    monitor(layer)
    assert not monitor.should_stop
    collapse(layer)
    with pytest.warns(CollapseWarning, match=r"at step 1: .* rank . tokens from 0\.\d+ to 0.143"):
        monitor(layer)
    assert monitor.should_stop
    monitor(layer)  # a second warning would be an error here


def test_the_step_last_looked_at_is_not_looked_at_again():
    monitor, layer = RankMonitor(TOKENS, every=2), mha(HeadGeometry.standard(8, heads=2))
    for step in (0, 0, 1, 2, 2):  # as batches are counted while gradients are gathered
        monitor(layer, step)
    assert [row.step for row in monitor.rows] == [0, 2]


def test_what_cannot_be_read_is_refused():
    with pytest.raises(BadInputError, match="Linear is a module in which no attention"):
        RankMonitor(TOKENS)(nn.Linear(8, 8))
    for wrong in ({"every": 0}, {"collapse": 1.5}):
        with pytest.raises(BadInputError):
            RankMonitor(TOKENS, **wrong)
