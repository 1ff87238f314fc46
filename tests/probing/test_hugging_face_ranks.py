"""Ranks of Hugging Face models, against the weights that they return themselves."""

import re
from pathlib import Path

import pytest
import torch

from headwise.probing import CollapseWarning, RankMonitor, views
from hugging_face.tiny_models import PADDING, inputs, tiny

transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")

CASES = [
    ("vit", "none"),
    *((family, padding) for family in ("bert", "albert", "llama", "t5") for padding in PADDING),
]


@torch.no_grad()
def own_weights(family, padding):
    """The weights that eager attention returns, layer by layer."""
    model = tiny(transformers, family)
    return model(**inputs(family, padding), output_attentions=True).attentions


@pytest.mark.parametrize(("family", "padding"), CASES)
def test_the_ranks_are_those_of_the_models_own_weights_without_padding(family, padding):
    given = inputs(family, padding)
    rows = RankMonitor(given)(tiny(transformers, family))
    for row, weights in zip(rows, own_weights(family, padding), strict=True):
        real = given.get("attention_mask", torch.ones(2, weights.shape[-1])).bool()
        ranks, effective = [], []
        for matrices, kept in zip(weights.double(), real, strict=True):
            values = torch.linalg.svdvals(matrices[:, kept][..., kept])
            # The count is certain: no value lies where the rounding of the weights could decide.
            assert not bool(((values > 1e-9) & (values < 1e-5)).any())
            ranks.append((values >= 1e-8).sum(-1).double().mean() / kept.sum())
            shares = values / values.sum(-1, keepdim=True)
            effective.append(torch.special.entr(shares).sum(-1).exp().mean() / kept.sum())
        assert row.rank_ratio == pytest.approx(float(sum(ranks)) / 2)
        assert row.effective_rank_ratio == pytest.approx(float(sum(effective)) / 2, rel=1e-5)


def test_shared_layers_are_one_row_for_each_depth_and_do_not_stop_training():
    """The second depth of ALBERT was compared with the first, and called collapsed at step 0."""
    monitor = RankMonitor(inputs("albert"), every=1, on_collapse="stop")
    model = tiny(transformers, "albert")
    rows = monitor(model) + monitor(model)
    assert len({row.layer for row in rows}) == 3
    assert not monitor.should_stop


def test_maps_are_counted_from_the_dtype_floor():
    rows = RankMonitor(inputs("bloom"))(tiny(transformers, "bloom"))
    for row, weights in zip(rows, own_weights("bloom", "none"), strict=True):
        values = torch.linalg.svdvals(weights.double())
        counted = values >= 7 * torch.finfo(torch.float32).eps * values[..., :1]
        assert row.rank_ratio == pytest.approx(float(counted.sum(-1).double().mean()) / 7)


def test_sinks_and_half_precision_give_counts():
    rows = RankMonitor(inputs("gpt_oss"))(tiny(transformers, "gpt_oss"))
    assert all(0 < row.rank_ratio <= 1 for row in rows)
    model, given = tiny(transformers, "bert").bfloat16(), inputs("bert")
    for row, view in zip(RankMonitor(given)(model), views(model, **given).values(), strict=True):
        assert view.queries.dtype == torch.bfloat16
        counted = (torch.linalg.svdvals(view.matrix()) >= 1e-8).sum(-1).double().mean()
        assert row.rank_ratio == pytest.approx(float(counted) / 7)


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


def test_a_collapse_is_noticed():
    model = tiny(transformers, "bert")
    monitor = RankMonitor(inputs("bert"), every=1, on_collapse="stop")
    monitor(model)
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.self.query.weight.zero_()
            layer.attention.self.query.bias.zero_()
    with pytest.warns(CollapseWarning, match=r"layer 'bert\.encoder\.layer\.\d.*to 0\.143$"):
        rows = monitor(model)
    assert [row.rank_ratio for row in rows] == pytest.approx([1 / 7] * 2)
    assert monitor.should_stop


def test_the_example_in_the_how_to_prints_what_it_says(capsys):
    """Its fence says ``py``: those that say ``python`` run without transformers."""
    page = Path(__file__).parents[2] / "docs/how-to/advise.md"
    (example,) = re.findall(r"^```py\n(.*?)^```$", page.read_text(), re.M | re.S)
    exec(compile(example, page.name, "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print.*  # (.*)$", example, re.M)


def test_a_collapse_from_nearly_uniform_attention_is_noticed():
    """As BERT begins: an effective rank of hardly more than one, which cannot fall to half."""
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=100
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    monitor = RankMonitor({"input_ids": torch.randint(100, (4, 12))}, every=1, on_collapse="stop")
    assert monitor(model)[0].effective_rank_ratio < 2 / 12
    monitor(model)
    assert not monitor.should_stop
    with torch.no_grad():
        for name, value in model.named_parameters():
            if ".query." in name:
                value.zero_()
    with pytest.warns(CollapseWarning, match=r"rank . tokens fell from 1.000 to 0.083"):
        monitor(model)
    assert monitor.should_stop
