"""What is read of Hugging Face models against the weights that they return themselves."""

import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from headwise.errors import BadInputError
from headwise.probing import CollapseWarning, RankMonitor
from headwise.probing.hugging_face import capture_hugging_face, hugging_face_models
from probing.tiny_models import inputs, tiny

transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")

TEXT = ("bert", "gpt2", "llama", "qwen3", "gemma2", "t5")
PADDINGS = ("none", "right", "left")
CASES = [("vit", "none"), *((family, padding) for family in TEXT for padding in PADDINGS)]
#: Logits that a layer caps are computed by eager attention alone.
IMPLEMENTED = [
    (*case, implementation)
    for case in CASES
    for implementation in ("eager", "sdpa")
    if (case[0], implementation) != ("gemma2", "sdpa")
]


@torch.no_grad()
def own_weights(family, padding):
    """The weights that eager attention returns, layer by layer."""
    model = tiny(transformers, family)
    return model(**inputs(family, padding), output_attentions=True).attentions


@torch.no_grad()
def read(model, given):
    """The output within the block, and what was seen."""
    seen = []
    with capture_hugging_face(model, lambda *layer: seen.append(layer)):
        return model(**given)[0], dict(seen)


@pytest.mark.parametrize(("family", "padding", "implementation"), IMPLEMENTED)
def test_the_views_weigh_as_the_model_does_and_change_nothing(family, padding, implementation):
    model, given = tiny(transformers, family, implementation), inputs(family, padding)
    with torch.no_grad():
        alone = model(**given)[0]
    within, seen = read(model, given)
    assert torch.equal(alone, within)
    # Within sdpa the second layer's input is rounded otherwise.
    atol = 1e-6 if implementation == "eager" else 5e-6
    for view, weights in zip(seen.values(), own_weights(family, padding), strict=True):
        ours = view.logits().values.softmax(-1)
        torch.testing.assert_close(ours, weights.double(), rtol=0, atol=atol)


@pytest.mark.parametrize(
    ("family", "layer"),
    [
        ("bert", "bert.encoder.layer.0.attention.self"),
        ("gpt2", "transformer.h.0.attn"),
        ("llama", "model.layers.0.self_attn"),
    ],
)
def test_layers_go_by_the_names_of_their_modules(family, layer):
    model = tiny(transformers, family)
    _, seen = read(model, inputs(family))
    assert next(iter(seen)) == layer
    assert model.get_submodule(layer).config is model.config


def test_grouped_keys_stay_grouped():
    _, seen = read(tiny(transformers, "llama"), inputs("llama"))
    view = next(iter(seen.values()))
    assert (view.queries.shape[1], view.keys.shape[1]) == (4, 2)


@pytest.mark.parametrize(("family", "padding"), CASES)
def test_the_ranks_are_those_of_the_models_own_weights(family, padding):
    rows = RankMonitor(inputs(family, padding))(tiny(transformers, family))
    for row, weights in zip(rows, own_weights(family, padding), strict=True):
        values = torch.linalg.svdvals(weights.double())
        tokens = weights.shape[-1]
        # The count is certain: no value lies where the rounding of the weights could decide.
        assert not bool(((values > 1e-9) & (values < 1e-5)).any())
        counted = (values >= 1e-8).sum(-1).double().mean()
        assert row.rank == pytest.approx(float(counted) / tokens)
        shares = values / values.sum(-1, keepdim=True)
        effective = torch.special.entr(shares).sum(-1).exp().mean()
        assert row.effective_rank == pytest.approx(float(effective) / tokens, rel=1e-5)


def test_half_precision_gives_a_count_too():
    model, given = tiny(transformers, "bert").bfloat16(), inputs("bert", "right")
    _, seen = read(model, given)
    for row, view in zip(RankMonitor(given)(model), seen.values(), strict=True):
        assert view.queries.dtype == torch.bfloat16
        weights = view.logits().values.softmax(-1)
        counted = (torch.linalg.svdvals(weights) >= 1e-8).sum(-1).double().mean()
        assert row.rank == pytest.approx(float(counted) / 7)


def test_a_mask_of_ones_own_is_read_boolean_or_added():
    allowed = torch.ones(7, 7).tril().bool().expand(2, 1, 7, 7)
    added = torch.zeros(2, 1, 7, 7).masked_fill(~allowed, torch.finfo(torch.float32).min)
    given, found = inputs("bert"), []
    for implementation, mask in (("sdpa", allowed), ("eager", added)):
        model = tiny(transformers, "bert", implementation)
        _, seen = read(model, given | {"attention_mask": mask})
        found.append([view.logits().values.softmax(-1) for view in seen.values()])
    for one, other in zip(*found, strict=True):
        assert bool((one.triu(1) == 0).all())
        torch.testing.assert_close(one, other, rtol=0, atol=5e-6)


def registered():
    return transformers.AttentionInterface.get_interface


def test_what_was_set_before_is_set_again_after_an_exception_too():
    model, before = tiny(transformers, "bert", "sdpa"), registered()
    with capture_hugging_face(model, lambda *seen: None):
        assert registered() is not before
        assert model.config._attn_implementation == "sdpa"
    assert registered() is before
    with pytest.raises(ZeroDivisionError), capture_hugging_face(model, lambda *seen: 1 / 0):
        model(**inputs("bert"))
    assert registered() is before
    assert model.config._attn_implementation == "sdpa"


def test_a_block_within_a_block_and_another_model_do_not_mix():
    one, other, seen = tiny(transformers, "bert"), tiny(transformers, "gpt2"), []
    with (
        capture_hugging_face(one, lambda name, view: seen.append("one")),
        capture_hugging_face(other, lambda name, view: seen.append("other")),
    ):
        other(**inputs("gpt2"))
        one(**inputs("bert"))
    assert seen == ["other"] * 2 + ["one"] * 2


class Wrapped(nn.Module):
    """As a Lightning module holds its model."""

    def __init__(self):
        super().__init__()
        self.inner = tiny(transformers, "bert")

    def forward(self, ids):
        return self.inner(input_ids=ids)


def test_a_model_within_another_is_read():
    rows = RankMonitor(inputs("bert")["input_ids"])(Wrapped())
    assert rows[0].layer == "inner.bert.encoder.layer.0.attention.self"


def test_a_look_leaves_mode_and_gradients():
    model = tiny(transformers, "bert").train()
    model.bert.embeddings.eval()
    model(**inputs("bert")).logits.sum().backward()
    before = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    RankMonitor(inputs("bert"))(model)
    assert model.training
    assert not model.bert.embeddings.training
    after = [p.grad for p in model.parameters() if p.grad is not None]
    assert all(map(torch.equal, before, after))


def test_a_collapse_is_seen():
    model = tiny(transformers, "bert")
    monitor = RankMonitor(inputs("bert"), every=1, on_collapse="stop")
    monitor(model)
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.self.query.weight.zero_()
            layer.attention.self.query.bias.zero_()
    with pytest.warns(CollapseWarning, match=r"layer 'bert\.encoder\.layer\.\d.*to 0\.143$"):
        rows = monitor(model)
    assert [row.rank for row in rows] == pytest.approx([1 / 7] * 2)
    assert monitor.should_stop


def test_attention_that_passes_the_interface_by_is_refused():
    model = tiny(transformers, "gpt2", reorder_and_upcast_attn=True)
    with pytest.raises(BadInputError, match=r"GPT2LMHeadModel has no .*transformers\.Attention"):
        RankMonitor(inputs("gpt2"))(model)


def test_masks_that_stay_within_a_kernel_are_refused(monkeypatch):
    functions = transformers.AttentionInterface._global_mapping
    monkeypatch.setitem(functions, "own_kernel", functions["sdpa"])
    model = tiny(transformers, "bert")
    model.set_attn_implementation("own_kernel")
    with pytest.raises(BadInputError, match=r"'own_kernel'.*set_attn_implementation\('sdpa'\)"):
        RankMonitor(inputs("bert"))(model)


def test_sinks_are_refused():
    model = tiny(transformers, "gpt_oss")
    with pytest.raises(BadInputError, match="GptOssAttention keeps a share of every row"):
        RankMonitor(inputs("gpt_oss"))(model)


def test_where_transformers_was_not_imported_nothing_is_looked_for(monkeypatch):
    model = tiny(transformers, "bert")
    assert list(hugging_face_models(model)) == ["", "bert"]
    monkeypatch.setitem(sys.modules, "transformers.modeling_utils", None)
    assert hugging_face_models(model) == {}


def test_the_example_in_the_how_to_prints_what_it_says(capsys):
    """Its fence says ``py``: those that say ``python`` run without transformers."""
    page = Path(__file__).parents[2] / "docs/how-to/advise.md"
    (example,) = re.findall(r"^```py\n(.*?)^```$", page.read_text(), re.M | re.S)
    exec(compile(example, page.name, "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print.*  # (.*)$", example, re.M)


def test_a_collapse_of_attention_that_began_nearly_uniform_is_seen():
    """As BERT begins: an effective rank of hardly more than one, which cannot fall to half."""
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=100
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    monitor = RankMonitor({"input_ids": torch.randint(100, (4, 12))}, every=1, on_collapse="stop")
    assert monitor(model)[0].effective_rank < 2 / 12
    monitor(model)
    assert not monitor.should_stop
    with torch.no_grad():
        for name, value in model.named_parameters():
            if ".query." in name:
                value.zero_()
    with pytest.warns(CollapseWarning, match=r"rank fell from 1.000 to 0.083"):
        monitor(model)
    assert monitor.should_stop
