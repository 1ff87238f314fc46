"""Batches, layers and sequences that a scan refuses, and what it says."""

import pytest
import torch
from torch import nn

from headwise.attention import HeadGeometry, mha
from headwise.errors import BadInputError, ParameterError
from headwise.probing import RankMonitor, scan, views
from headwise.probing.head_count import head_count
from headwise.probing.refusals import refuse_wrong_question
from headwise.progress import NoProgress
from hugging_face.tiny_models import IDS, inputs, tiny

transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")

TOKENS = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))


def layer():
    return mha(HeadGeometry.standard(12, heads=3))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layers": [0, 99]}, r"expected layers from 0 to 0, got 99; the first layer is ''"),
        ({"layers": []}, "expected layers from 0 to 0, got none"),
        ({"heads": [0, 7]}, "expected heads from 0 to 2, got 7"),
        ({"heads": []}, "expected heads from 0 to 2, got none"),
    ],
)
def test_a_layer_or_head_that_is_not_there_is_refused(given, said):
    """Scans of the others went through as if all had been measured."""
    with pytest.raises(BadInputError, match=said):
        scan(layer(), TOKENS, **given)


def test_arguments_of_the_wrong_type_are_refused_in_words():
    for batch in ("text", None, [TOKENS], TOKENS.numpy()):
        with pytest.raises(ParameterError, match="expected a tensor, a tuple or a mapping"):
            refuse_wrong_question(layer(), batch, None, None)
    with pytest.raises(ParameterError, match="expected a torch module for `model`, got 'model'"):
        refuse_wrong_question("model", TOKENS, None, None)
    with pytest.raises(ParameterError, match=r"expected heads from 0 on, got \[-1\]"):
        scan(layer(), TOKENS, heads=[-1])


@pytest.mark.parametrize("part", ["query", "value"])
def test_values_that_are_not_finite_name_their_layer(part):
    """NaN in values alone left the check and failed in linear algebra."""
    model = tiny(transformers, "bert")
    attention = model.bert.encoder.layer[1].attention.self
    with torch.no_grad():
        getattr(attention, part).weight[0, 0] = torch.nan
    with pytest.raises(BadInputError, match=r"in layer 'bert\.encoder\.layer\.1\.attention\.self'"):
        scan(model, inputs("bert"))


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_sequence_that_is_padding_alone_is_refused(family):
    model, mask = tiny(transformers, family), torch.ones(2, 7, dtype=torch.long)
    mask[1] = 0
    batch = {"input_ids": IDS, "attention_mask": mask}
    with pytest.raises(BadInputError, match="got one that is padding alone"):
        scan(model, batch)
    with pytest.raises(BadInputError, match="got one that is padding alone"):
        RankMonitor(batch)(model)


def test_a_batch_that_the_model_cannot_take_is_one_line_with_the_cause():
    with pytest.raises(BadInputError, match="LlamaForCausalLM could not run on this batch") as told:
        scan(tiny(transformers, "llama"), {"input_ids": IDS, "no_such": 1, "attention_mask": 3})
    assert "\n" not in str(told.value)
    assert told.value.__cause__ is not None


def test_an_error_of_the_measuring_itself_is_not_blamed_on_the_batch(monkeypatch):
    def broken(view):
        raise RuntimeError("ours")

    monkeypatch.setattr("headwise.probing.scanning.head_numbers", broken)
    with pytest.raises(RuntimeError, match=r"^ours$"):
        scan(layer(), TOKENS)


class Counting(NoProgress):
    """Remembers the steps that were announced and done."""

    def __init__(self):
        self.total = self.done = 0

    def start(self, task, total):
        self.total += total

    def advance(self, steps=1):
        self.done += steps


@pytest.mark.parametrize(
    ("family", "given"),
    [
        ("bert", {}),
        ("llama", {"layers": [1]}),
        ("gpt2", {"layers": [0], "heads": [1, 2]}),
        ("t5_both", {}),
        ("clip", {}),
    ],
)
def test_the_progress_announces_as_many_heads_as_are_measured(family, given):
    progress = Counting()
    if family == "t5_both":
        config = transformers.T5Config(d_model=16, d_kv=4, num_heads=2, num_layers=2, d_ff=8)
        config.vocab_size, config.num_decoder_layers = 31, 1
        model = transformers.T5Model(config).eval()
        batch = {"input_ids": IDS, "decoder_input_ids": IDS}
    elif family == "clip":
        parts = [tiny(transformers, f"clip_{each}").config.to_dict() for each in ("text", "image")]
        config = transformers.CLIPConfig(text_config=parts[0], vision_config=parts[1])
        model = transformers.CLIPModel(config).eval()
        batch = inputs("clip_text") | inputs("clip_image")
    else:
        model, batch = tiny(transformers, family), inputs(family)
    scan(model, batch, progress=progress, **given)
    assert progress.total == progress.done > 0


def test_heads_are_counted_in_layers_without_a_config():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 2, 8, batch_first=True), 3)
    assert head_count(encoder, None, None) == 6
    assert head_count(layer(), None, [0, 1]) == 2
    assert head_count(nn.Linear(2, 2), None, None) == 1


def test_views_of_a_batch_that_is_not_unpacked_say_what_to_pass():
    """It ended in the error of the model: AttributeError or TypeError."""
    for batch in ({"input_ids": IDS}, transformers.BatchEncoding({"input_ids": IDS})):
        for family in ("llama", "bert", "t5"):
            with pytest.raises(BadInputError, match=r"could not run on .*; pass \*\*batch") as told:
                views(tiny(transformers, family), batch)
            assert "\n" not in str(told.value)
    with pytest.raises(BadInputError, match=r"could not run on this batch: .*; check the batch"):
        views(layer(), TOKENS, TOKENS, TOKENS, TOKENS, no_such=1)


def test_a_model_that_takes_a_mapping_is_viewed():
    class Taking(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = layer()

        def forward(self, batch):
            return self.inner(batch["tokens"])

    assert list(views(Taking(), {"tokens": TOKENS})) == ["inner"]


def test_the_nan_of_transformers_in_float64_is_named():
    """The inputs were blamed: padding on the left is NaN in its softmax in float32."""
    ids, mask = IDS[:, :4], torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1]])
    model = tiny(transformers, "llama").double()
    with pytest.raises(BadInputError, match="use float32: the eager attention of transformers"):
        scan(model, {"input_ids": ids, "attention_mask": mask})
    assert scan(model.float(), {"input_ids": ids, "attention_mask": mask}).rows
    with torch.no_grad():
        model.model.layers[1].self_attn.q_proj.weight[0, 0] = torch.nan
    with pytest.raises(BadInputError, match="check the inputs and the layers before it"):
        scan(model, {"input_ids": ids, "attention_mask": mask})
