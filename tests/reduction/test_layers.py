"""Cuts of one layer: equal at full rank, optimal below, damage predicted as measured."""

from itertools import combinations

import pytest
import torch
from torch import nn

from headwise.attention import HeadGeometry, HeadMean, Rotary, generalized, gqa, mha, mla
from headwise.errors import BadInputError, ParameterError
from headwise.geometry import LatentGeometry
from headwise.reduction import best_factors, reduce_layer
from headwise.reduction.rotary import order_of_dropping

WIDTH = 12


def tokens(batch=1, length=40, seed=0):
    """Correlated tokens with a mean, as real ones are."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(
        WIDTH, WIDTH, generator=torch.Generator().manual_seed(5), dtype=torch.float64
    )
    drawn = torch.randn(batch, length, WIDTH, generator=generator, dtype=torch.float64)
    return drawn @ mixing * torch.logspace(0, -1, WIDTH) + 0.3


def disturbed(layer):
    """The layer with random biases, in float64."""
    generator = torch.Generator().manual_seed(3)
    for parameter in layer.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data += 0.2 * noise
    return layer.double()


GEOMETRY = HeadGeometry(WIDTH, heads=4, kv_heads=2, qk_rank=6, v_rank=5)
LAYERS = {
    "plain": lambda: mha(HeadGeometry.standard(WIDTH, heads=3)),
    "biased": lambda: mha(HeadGeometry.standard(WIDTH, heads=3), biases="all"),
    "grouped": lambda: gqa(GEOMETRY, biases="qkv"),
    "averaged": lambda: mha(HeadGeometry.free(WIDTH, 4, 5), "all", combination=HeadMean(2)),
    "rotary": lambda: gqa(GEOMETRY, position=Rotary(6)),
    "adjacent": lambda: gqa(GEOMETRY, position=Rotary(6, pairs="adjacent")),
    "partly rotary": lambda: gqa(GEOMETRY, position=Rotary(4), biases="all"),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_full_rank_changes_nothing(name, mask):
    layer, x = disturbed(LAYERS[name]()), tokens(batch=2)
    rank = layer.geometry.qk_rank
    found = reduce_layer(layer, x, rank=rank, value_rank=layer.geometry.v_rank, mask=mask)
    other = tokens(batch=2, seed=1)
    torch.testing.assert_close(found.layer(other, mask=mask), layer(other, mask=mask))
    assert found.predicted.logits == found.predicted.values == 0


@pytest.mark.parametrize("biased", [True, False])
def test_torch_layers_keep_their_calls(biased):
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(WIDTH, 3, bias=biased, batch_first=True).double().eval()
    x = tokens(batch=2)
    found = reduce_layer(layer, x, rank=4)
    expected, weights = layer(x, x, x)
    got, same = found.layer(x, x, x)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(same, weights)
    assert reduce_layer(layer, x, rank=3).layer(x, x, x)[0].shape == expected.shape


@pytest.mark.parametrize("name", LAYERS)
def test_damage_on_the_calibration_is_as_predicted(name):
    layer, x = disturbed(LAYERS[name]()), tokens(length=60)
    found = reduce_layer(layer, x, rank=2, value_rank=3, mask="causal")
    measured = found.measure(x, mask="causal")
    assert found.predicted.logits == pytest.approx(measured.logits, rel=1e-8)
    assert found.predicted.values == pytest.approx(measured.values, rel=1e-8)
    assert measured.output > 0


@pytest.mark.parametrize("name", LAYERS)
def test_damage_on_new_inputs_is_near_the_prediction(name):
    layer = disturbed(LAYERS[name]())
    found = reduce_layer(layer, tokens(batch=30), rank=2, value_rank=3, mask="causal")
    measured = found.measure(tokens(batch=30, seed=9), mask="causal")
    assert measured.values == pytest.approx(found.predicted.values, rel=0.3)
    assert measured.logits == pytest.approx(found.predicted.logits, rel=0.3)


def least(objective, *shapes):
    """The least value that L-BFGS finds from several starts."""
    return min(searched(objective, shapes, seed) for seed in range(2))


def searched(objective, shapes, seed):
    generator = torch.Generator().manual_seed(seed)
    free = [
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    ]
    search = torch.optim.LBFGS(
        free,
        max_iter=300,
        tolerance_grad=1e-11,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def closure():
        search.zero_grad()
        value = objective(*free)
        value.backward()
        return value

    search.step(closure)
    return float(objective(*free).detach())


def test_no_search_finds_a_better_query_key_form():
    """Two heads share a key; queries have a free map each, the key one."""
    layer, x = disturbed(gqa(GEOMETRY)), tokens()
    q, k, _ = (states[0].detach() for states in layer.projection(x, x))
    found = reduce_layer(layer, x, rank=2)
    losses, totals = 0.0, 0.0
    for head in range(2):
        queries, keys = q[2 * head : 2 * head + 2], k[head]
        logits = queries @ keys.T

        def objective(first, second, key, queries=queries, keys=keys, logits=logits):
            new = torch.stack([queries[0] @ first, queries[1] @ second])
            return (new @ (keys @ key).T - logits).square().mean()

        losses += least(objective, (6, 2), (6, 2), (6, 2))
        totals += float(logits.square().mean())
    assert found.predicted.logits == pytest.approx(losses / totals, rel=1e-6)


def test_a_constant_key_is_free_where_biases_can_hold_it():
    layer, x = disturbed(mha(HeadGeometry.standard(WIDTH, heads=3), "all")), tokens()
    layer.projection.key.bias.data += 50.0
    found = reduce_layer(layer, x, rank=3, value_rank=4)
    assert found.measure(x).output < 0.05


def test_no_search_finds_a_better_value_output_form():
    """With one head nothing is shared, so the whole cut is one best rank-r map."""
    layer, x = disturbed(mha(HeadGeometry.free(WIDTH, 1, 6))), tokens()
    z = layer.weighting.mix(layer.heads(x))[0, 0].detach()
    output = layer.projection.output.weight.detach()

    def objective(compress, restore):
        return (z @ compress @ restore - z @ output.T).square().sum()

    loss = least(objective, (6, 2), (2, WIDTH)) / float((z @ output.T).square().sum())
    found = reduce_layer(layer, x, rank=6, value_rank=2)
    assert found.predicted.values == pytest.approx(loss, rel=1e-6)


def test_no_search_finds_a_better_output_for_the_kept_values():
    layer, x = disturbed(mha(HeadGeometry.standard(WIDTH, heads=3))), tokens()
    found = reduce_layer(layer, x, rank=4, value_rank=2)
    kept = found.layer.weighting.mix(found.layer.heads(x))[0].transpose(0, 1).flatten(1)
    kept, wanted = kept.detach(), layer(x)[0].detach()
    best = torch.linalg.lstsq(kept, wanted).solution
    loss = (kept @ best - wanted).square().sum() / wanted.square().sum()
    assert found.predicted.values == pytest.approx(float(loss), rel=1e-8)


def test_the_best_projection_beats_random_ones():
    generator = torch.Generator().manual_seed(0)
    x, g = (torch.randn(50, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    moment, metric = x.T @ x, g.T @ g
    found = best_factors(moment, metric)
    eye = torch.eye(5, dtype=torch.float64)

    def loss(p):
        return float(torch.trace(metric @ (eye - p) @ moment @ (eye - p).T))

    for rank in range(6):
        compress, expand = found.maps(rank)
        assert loss(expand @ compress) == pytest.approx(float(found.losses[rank]), abs=1e-8)
        other = torch.randn(5, rank, generator=generator, dtype=torch.float64)
        assert loss(other @ torch.linalg.pinv(other)) >= float(found.losses[rank]) - 1e-8


@pytest.mark.parametrize("moment", [torch.zeros(4, 4), torch.ones(4, 4), torch.eye(4)])
def test_degenerate_inputs_keep_the_identity_at_full_rank(moment):
    found = best_factors(moment, torch.eye(4))
    torch.testing.assert_close(found.expand @ found.compress, torch.eye(4, dtype=torch.float64))
    assert found.losses[-1] == 0
    assert int((found.losses > 0).sum()) == int(torch.linalg.matrix_rank(moment))


def test_pairs_are_dropped_at_their_exact_cost():
    """Every set of pairs: the loss of elimination is exact, and here it is the least."""
    layer, x = (
        disturbed(gqa(HeadGeometry(WIDTH, 2, 1, 8, 4), position=Rotary(8))),
        tokens(length=80),
    )
    q, k = (t.detach() for t in layer.position.turn(*layer.projection(x, x)[:2]))
    pairs = [[i, i + 4] for i in range(4)]

    def loss(dropped):
        places = [place for pair in dropped for place in pairs[pair]]
        lost = q[0][..., places] @ k[0][..., places].mT
        return float(lost.square().sum() / (q[0] @ k[0].mT).square().sum())

    for kept in range(1, 4):
        found = reduce_layer(layer, x, rank=2 * kept, value_rank=4)
        every = [loss(dropped) for dropped in combinations(range(4), 4 - kept)]
        assert found.predicted.logits == pytest.approx(min(every), rel=1e-9)


def test_elimination_counts_what_pairs_share():
    order, losses = order_of_dropping(torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64))
    assert (order, losses) == ([0, 1], [0.0, 1.0, 9.0])


def test_padding_takes_no_part():
    layer, x = disturbed(LAYERS["biased"]()), tokens(batch=2)
    real = torch.ones(2, 40, dtype=torch.bool)
    real[1, 25:] = False
    noisy = x.masked_fill(~real.unsqueeze(-1), 100.0)
    first = reduce_layer(layer, x, rank=2, real=real).predicted
    assert reduce_layer(layer, noisy, rank=2, real=real).predicted == first
    assert reduce_layer(layer, noisy, rank=2).predicted != first


def test_layers_that_cannot_be_cut_are_refused_by_name():
    x = tokens()
    latent = mla(LatentGeometry(WIDTH, 2, 2, 6, 4, kv_latent=6, q_latent=None, rope_rank=2))
    with pytest.raises(BadInputError, match="got LatentProjection"):
        reduce_layer(latent, x, rank=2)
    with pytest.raises(BadInputError, match="KeyProjection with AnyMap"):
        reduce_layer(generalized(HeadGeometry.free(WIDTH, 2, 3), nn.Identity()), x, rank=2)
    with pytest.raises(BadInputError, match="without add_zero_attn"):
        reduce_layer(nn.MultiheadAttention(WIDTH, 3, add_zero_attn=True), x, rank=2)
    with pytest.raises(BadInputError, match=r"got Linear; use headwise\.reduce"):
        reduce_layer(nn.Linear(2, 2), x, rank=2)


def test_ranks_and_inputs_out_of_range_are_refused():
    layer = mha(HeadGeometry.standard(WIDTH, heads=3))
    with pytest.raises(ParameterError, match="rank"):
        reduce_layer(layer, tokens().float(), rank=5)
    with pytest.raises(BadInputError, match="at least 4 tokens to calibrate on, got 2"):
        reduce_layer(layer, tokens(length=2).float(), rank=2)
    with pytest.raises(BadInputError, match="batch, sequence, width"):
        reduce_layer(layer, tokens()[0].float(), rank=2)
    rotary = gqa(GEOMETRY, position=Rotary(6))
    with pytest.raises(ParameterError, match="even rank, got 3"):
        reduce_layer(rotary, tokens().float(), rank=3)
