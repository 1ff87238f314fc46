"""Cuts of encoders count the terms between the tokens of a sequence."""

import pytest
import torch

from headwise.reduction.between_tokens import PRODUCT, maps_between_tokens
from headwise.reduction.calibration import Moments, calibrate, mean_pooled
from headwise.reduction.factors import best_factors
from headwise.reduction.families import attention_parts
from headwise.reduction.planning import Cut, LayerCurves
from headwise.reduction.resuming import MomentsFile
from headwise.reduction.smaller_model import cut_model


def sequences(count, seed):
    """Sequences of three words, each four times: what happens at equal tokens adds up."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 61, (count, 3), generator=generator).repeat(1, 4)
    return [{"input_ids": ids, "attention_mask": torch.ones_like(ids)}]


def loss_of(projection, samples):
    """The loss that ``maps_between_tokens`` states, written out."""
    change = projection - torch.eye(projection.shape[-1], dtype=torch.float64)
    m = samples.double()
    form = torch.einsum("hde,shde->sh", change, m).square().mean(0)
    rows, columns = torch.einsum("shde,shfe->hdf", m, m), torch.einsum("shde,shdf->hef", m, m)
    size = torch.einsum("shde,shde->h", m, m)
    product = torch.einsum("hde,hdf,hfg,heg->h", change, rows, change, columns)
    return (1 - PRODUCT) * form + PRODUCT * product / size / len(m)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_the_maps_are_a_minimum_below_the_closed_form(rank):
    generator = torch.Generator().manual_seed(rank)
    mixing = torch.randn(25, 25, generator=generator)
    samples = (torch.randn(60, 2, 25, generator=generator) @ mixing).unflatten(2, (5, 5))
    compress, expand = maps_between_tokens(samples, rank)
    found = loss_of(expand @ compress, samples)
    m = samples.double()
    for head in range(2):
        rows, columns = (each[:, head] for each in (m, m.mT))
        moment = torch.einsum("sde,sdf->ef", rows, rows)
        metric = torch.einsum("sde,sdf->ef", columns, columns)
        small, wide = best_factors(moment, metric).maps(rank)
        closed = loss_of((wide @ small).expand(2, -1, -1), samples)[head]
        assert found[head] < 0.95 * closed
    left, right = (each.contiguous().requires_grad_() for each in (expand, compress))
    descent = torch.optim.LBFGS([left, right], max_iter=500, line_search_fn="strong_wolfe")

    def closure():
        descent.zero_grad()
        total = loss_of(left @ right, samples).sum()
        total.backward()
        return total

    descent.step(closure)
    assert float(found.sum()) <= 1.01 * float(closure().detach())


def test_the_sums_of_a_sequence_are_the_slope_of_a_map_of_its_keys(tiny):
    model, [batch] = tiny("bert").double(), sequences(3, seed=1)
    part = attention_parts(model)[0]
    found = calibrate(model, [batch], between_tokens=True)[0].keys.samples()
    assert found.shape == (6, 4, 8, 8)  # two directions for each of three sequences
    change = torch.randn(4, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))

    def outputs(step):
        maps = torch.eye(8, dtype=torch.float64) + step * change

        def mapped(module, given, keys):
            return torch.einsum("hde,bnhe->bnhd", maps, keys.unflatten(-1, (4, 8))).flatten(2)

        hook = part.key.register_forward_hook(mapped)
        with torch.no_grad():
            states = model(**batch).last_hidden_state
        hook.remove()
        pooled = mean_pooled(states, batch["attention_mask"].bool())
        draw = torch.Generator().manual_seed(0)
        return 2**0.5 * (pooled * torch.randn(pooled.shape, generator=draw)).sum(1)

    slope = (outputs(1e-5) - outputs(-1e-5)) / 2e-5
    predicted = (found[:3].double() * change).sum((1, 2, 3))
    torch.testing.assert_close(predicted, slope, rtol=1e-4, atol=1e-6)


def test_padding_takes_no_part_in_the_sums_of_a_sequence():
    generator = torch.Generator().manual_seed(0)
    states, gradient = (torch.randn(2, 5, 6, generator=generator) for _ in range(2))
    real = torch.ones(2, 5, dtype=torch.bool)
    real[1, 3:] = False
    whole, short = Moments.of_size(6, 2, slots=4), Moments.of_size(6, 2, slots=4)
    whole.add(states, gradient, real)
    short.add(states[1:, :3], gradient[1:, :3], real[1:, :3])
    torch.testing.assert_close(whole.samples()[1:], short.samples())
    assert len(whole.samples()) == 2


def test_sequences_share_slots_when_there_are_more_of_them():
    generator = torch.Generator().manual_seed(0)
    states, gradient = (torch.randn(5, 3, 4, generator=generator) for _ in range(2))
    real = torch.ones(5, 3, dtype=torch.bool)
    many, few = Moments.of_size(4, 2, slots=9), Moments.of_size(4, 2, slots=2)
    for each in (many, few):
        each.add(states[:2], gradient[:2], real[:2])
        each.add(states[2:], gradient[2:], real[2:])
    torch.testing.assert_close(few.samples()[0], many.samples()[[0, 2, 4]].sum(0))
    torch.testing.assert_close(few.samples()[1], many.samples()[[1, 3]].sum(0))


@pytest.mark.parametrize("kind", ["keys", "values"])
@torch.no_grad()
def test_terms_between_tokens_lower_the_change_of_embeddings(tiny, kind):
    model = tiny("bert")
    with torch.enable_grad():
        plain, counted = (
            calibrate(model, sequences(400, seed=1), between_tokens=each) for each in (False, True)
        )
    cut = Cut("factors", 4, 8) if kind == "keys" else Cut("factors", 8, 4)
    judged = sequences(100, seed=2)[0]
    real = judged["attention_mask"].bool()
    before = mean_pooled(model(**judged).last_hidden_state, real)
    changes = []
    for moments in (plain, counted):
        parts = zip(attention_parts(model), moments, strict=True)
        curves = [LayerCurves(part, own, "factors", weighted=True) for part, own in parts]
        made = cut_model(model, curves, [cut, cut])
        after = mean_pooled(made(**judged).last_hidden_state, real)
        changes.append(float((after - before).square().sum()))
    assert changes[1] < 0.95 * changes[0]


def test_what_a_stopped_calibration_kept_is_read_back_whole(tiny, tmp_path):
    model, batches = tiny("bert"), sequences(3, seed=1)
    moments = calibrate(model, batches, between_tokens=True)
    kept = MomentsFile(tmp_path / "out", model, batches, seed=0)
    kept.write(moments, done=2)
    again, done = kept.read()
    assert done == 2
    for one, other in zip(moments, again, strict=True):
        assert torch.equal(one.values.samples(centred=True), other.values.samples(centred=True))
        assert one.keys.tokens == other.keys.tokens
