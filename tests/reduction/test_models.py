"""Whole models: equal at full rank, with and without a cache, and smaller caches."""

import pytest
import torch

from headwise.errors import BadInputError, ParameterError
from headwise.reduction.budgets import Budget
from headwise.reduction.calibration import Moments, calibrate
from headwise.reduction.families import attention_parts
from headwise.reduction.planning import LayerCurves, plan, predicted_loss
from headwise.reduction.rotary import over_positions
from headwise.reduction.smaller_model import cut_model

KINDS = [
    ("llama", "pairs"),
    ("llama", "latent"),
    ("llama", "rotated"),
    ("mistral", "pairs"),
    ("qwen2", "latent"),
    ("qwen2", "rotated"),
    ("qwen2", "pairs"),
    ("bert", "factors"),
]


def curves_of(model, batches, kind):
    found = calibrate(model, batches)
    return [LayerCurves(p, m, kind) for p, m in zip(attention_parts(model), found, strict=True)]


def outputs(model, ids, **named):
    found = model(input_ids=ids, **named)
    return found.logits if hasattr(found, "logits") else found.last_hidden_state


@pytest.mark.parametrize(("family", "kind"), KINDS)
@torch.no_grad()
def test_full_rank_changes_nothing(tiny, batches, family, kind):
    model = tiny(family).double()
    with torch.enable_grad():
        curves = curves_of(model, batches, kind)
    cuts = plan(curves, Budget(keep=1.0), itemsize=8, step=1)
    made = cut_model(model, curves, cuts)
    ids = batches[0]["input_ids"]
    mask = torch.ones_like(ids)
    mask[1, :5] = 0
    for named in ({}, {"attention_mask": mask}):
        torch.testing.assert_close(outputs(made, ids, **named), outputs(model, ids, **named))


@pytest.mark.parametrize(
    ("family", "kind"),
    [("llama", "pairs"), ("llama", "latent"), ("llama", "rotated"), ("mistral", "rotated")],
)
@torch.no_grad()
def test_decoding_with_a_cache_equals_one_pass(tiny, batches, family, kind):
    model = tiny(family).double()
    with torch.enable_grad():
        curves = curves_of(model, batches, kind)
    made = cut_model(model, curves, plan(curves, Budget(kv_bytes="50%"), itemsize=8, step=2))
    ids = batches[0]["input_ids"]
    whole = made(input_ids=ids).logits
    first = made(input_ids=ids[:, :7], use_cache=True)
    cache = first.past_key_values
    rest = [made(input_ids=ids[:, i : i + 1], past_key_values=cache).logits for i in range(7, 20)]
    # The angles of transformers are float32 whatever the model.
    torch.testing.assert_close(torch.cat([first.logits, *rest], dim=1), whole, rtol=1e-4, atol=1e-5)
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    before = model(input_ids=ids, use_cache=True).past_key_values
    original = sum(layer.keys.nbytes + layer.values.nbytes for layer in before.layers)
    assert held <= original / 2


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@torch.no_grad()
def test_keys_restored_in_place_give_the_logits_of_copied_ones(tiny, batches, family, monkeypatch):
    model = tiny(family).double()
    with torch.enable_grad():
        curves = curves_of(model, batches, "latent")
    made = cut_model(model, curves, plan(curves, Budget(kv_bytes="50%"), itemsize=8, step=2))
    ids, calls = batches[0]["input_ids"], []
    kind = type(made.model.layers[0].self_attn)
    in_place = kind._restored_in_place

    def counted(*given):
        calls.append(given)
        return in_place(*given)

    def decoded():
        cache = made(input_ids=ids[:, :7], use_cache=True).past_key_values
        tokens = [made(input_ids=ids[:, i : i + 1], past_key_values=cache) for i in range(7, 20)]
        return torch.cat([each.logits for each in tokens], dim=1)

    monkeypatch.setattr(kind, "_restored_in_place", counted)
    found = decoded()
    assert len(calls) == 13 * 2
    monkeypatch.setattr(kind, "_restored_in_place", kind._restored)
    torch.testing.assert_close(found, decoded(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["latent", "rotated"])
@torch.no_grad()
def test_generation_with_left_padding_equals_each_text_alone(tiny, batches, kind):
    model = tiny("llama").double()
    with torch.enable_grad():
        curves = curves_of(model, batches, kind)
    made = cut_model(model, curves, plan(curves, Budget(kv_bytes="50%"), itemsize=8, step=2))
    ids = batches[0]["input_ids"][:, :9]
    mask = torch.ones_like(ids)
    mask[1, :4] = 0
    settings = {"max_new_tokens": 5, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    together = made.generate(ids, attention_mask=mask, **settings)
    alone = made.generate(ids[1:, 4:], **settings)
    assert together[1, 9:].tolist() == alone[0, 5:].tolist()


def test_the_original_stays_as_it_was(tiny, batches):
    model = tiny("llama")
    before = {name: each.clone() for name, each in model.state_dict().items()}
    curves = curves_of(model, batches, "latent")
    cut_model(model, curves, plan(curves, Budget(kv_bytes="25%"), itemsize=4, step=2))
    assert not hasattr(model.config, "headwise")
    for name, each in model.state_dict().items():
        assert torch.equal(each, before[name])
    assert all(each.requires_grad and each.grad is None for each in model.parameters())


def divergence(model, made, batches):
    """Mean divergence of the predictions, in nats for each token."""
    total = []
    for batch in batches:
        p, q = (each(**batch).logits.log_softmax(-1) for each in (model, made))
        total.append((p.exp() * (p - q)).sum(-1).mean())
    return float(torch.stack(total).mean())


@pytest.mark.parametrize("kind", ["pairs", "latent", "rotated"])
@torch.no_grad()
def test_the_plan_beats_one_rank_for_all(tiny, batches, kind):
    model = tiny("llama").double()
    with torch.enable_grad():
        curves = curves_of(model, batches, kind)
    chosen = plan(curves, Budget(kv_bytes="50%"), itemsize=8, step=2)
    rank = 4 if kind == "pairs" else 8
    same = [type(cut)(cut.keys, rank, 4) for cut in chosen]
    assert predicted_loss(curves, chosen) < predicted_loss(curves, same)


@torch.no_grad()
def test_a_small_cut_costs_about_what_is_predicted(tiny, batches):
    """A cut of one rank in one layer; the prediction is of second order and leaves terms out."""
    model = tiny("llama", initializer_range=0.1).double()
    generator = torch.Generator().manual_seed(8)
    many = [{"input_ids": torch.randint(3, 61, (8, 24), generator=generator)} for _ in range(6)]
    with torch.enable_grad():
        curves = curves_of(model, many, "latent")
    full = plan(curves, Budget(keep=1.0), itemsize=8, step=1)
    cuts = [type(full[0])("latent", full[0].rank, 6), full[1]]
    made = cut_model(model, curves, cuts)
    measured = divergence(model, made, many)
    assert measured == pytest.approx(predicted_loss(curves, cuts), rel=0.7)


def test_moments_after_the_rotation_are_means_over_positions():
    generator = torch.Generator().manual_seed(2)
    root = torch.randn(12, 12, generator=generator, dtype=torch.float64)
    angles = torch.tensor([0.9, 0.2, 0.01], dtype=torch.float64)
    total = torch.zeros(12, 12, dtype=torch.float64)
    for place in range(40):
        c, s = (place * angles).cos().diag(), (place * angles).sin().diag()
        turn = torch.cat([torch.cat([c, -s], dim=1), torch.cat([s, c], dim=1)])
        both = torch.block_diag(turn, turn)
        total += both @ root @ root.T @ both.T / 40
    torch.testing.assert_close(over_positions(root @ root.T, angles, 40), total)


def test_keys_count_with_their_squared_gradients():
    generator = torch.Generator().manual_seed(3)
    states, slopes = torch.randn(2, 50, 6, generator=generator, dtype=torch.float64)
    found = Moments.of_size(6, 2)
    found.add(states[None], slopes[None], torch.ones(1, 50, dtype=torch.bool))
    for head in (slice(0, 3), slice(3, 6)):
        weight = slopes[:, head].square().sum(1)
        centred = states[:, head] - (weight @ states[:, head]) / weight.sum()
        expected = (centred * weight[:, None]).T @ centred / weight.sum()
        torch.testing.assert_close(found.moment(centred=True, weighted=True)[head, head], expected)
        product = (
            found.metric()[head, head].trace() * found.moment(weighted=True)[head, head].trace()
        )
        true = (slopes[:, head].square().sum(1) * states[:, head].square().sum(1)).mean() / 2
        torch.testing.assert_close(product, true)


def test_budgets_that_cannot_be_met_name_the_smallest(tiny, batches):
    curves = curves_of(tiny("llama"), batches, "pairs")
    with pytest.raises(
        BadInputError, match=r"`kv_bytes` of at least 32 \(50%\), got 6 of 64; pass 32"
    ):
        plan(curves, Budget(kv_bytes="10%"), itemsize=1, step=4)
    with pytest.raises(ParameterError, match="rank` of at least 8 with `step=8`, got 4"):
        plan(curves, Budget(rank=4), itemsize=1, step=8)


def test_one_budget_at_a_time():
    with pytest.raises(ParameterError, match="got none"):
        Budget()
    with pytest.raises(ParameterError, match="got kv_bytes and rank"):
        Budget(kv_bytes="50%", rank=8)
    with pytest.raises(ParameterError, match="number above 0 or a share"):
        from headwise.reduction.budgets import amount

        amount("kv_bytes", "half", 10)
    with pytest.raises(ParameterError, match="got 'inf'"):
        amount("kv_bytes", "inf", 10)
    asked = ("50%", "2k", "1,500", 1000)
    assert [amount("kv_bytes", one, 10_000) for one in asked] == [5000, 2000, 1500, 1000]


def test_other_families_are_refused_with_the_list(tiny):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=8, n_head=2, n_layer=1, vocab_size=11)
    with pytest.raises(BadInputError, match="llama, mistral, qwen2, bert, got gpt2"):
        attention_parts(transformers.GPT2LMHeadModel(config))
    scaled = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    with pytest.raises(BadInputError, match="type default, got linear"):
        attention_parts(tiny("llama", rope_parameters=scaled))
