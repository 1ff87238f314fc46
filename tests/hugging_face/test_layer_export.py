"""An export describes the model of the config: its layer, its mask, its images and labels."""

import json
from html import unescape

import pytest
import torch

from headwise import advise
from headwise.advice.export import assumed_sizes
from headwise.advice.render.page import page

VIT = {"model_type": "vit", "hidden_size": 64, "num_attention_heads": 4}
IMAGES = {"image_size": 32, "patch_size": 4, "num_channels": 1}
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4}
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_positions": 32}
BERT = {"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4, "hidden_act": "relu"}
BERT |= {"vocab_size": 50, "max_position_embeddings": 40, "type_vocab_size": 3, "pad_token_id": 7}


def loaded(config, form):
    transformers = pytest.importorskip("transformers")
    return transformers.AutoConfig.for_model(**json.loads(advise(config=config).export(form)))


@pytest.mark.parametrize(
    "labels", [{"num_labels": 3}, {"id2label": {"0": "a", "1": "b", "2": "c"}}]
)
def test_an_image_model_keeps_its_images_and_labels(labels):
    config = VIT | IMAGES | labels | {"qkv_bias": False}
    read = loaded(config, "vit")
    assert {name: getattr(read, name) for name in IMAGES} == IMAGES
    assert (read.num_labels, read.qkv_bias) == (3, False)
    answer = advise(config=config)
    code = answer.export("timm")
    assert "img_size=32, patch_size=4, in_chans=1, num_classes=3, qkv_bias=False" in code
    sizes = {"num_hidden_layers": 12, "intermediate_size": 256}
    assert assumed_sizes(answer, "vit") == assumed_sizes(answer, "timm") == sizes


@pytest.mark.parametrize("form", ["vit", "timm"])
def test_sizes_of_images_that_nobody_gave_are_printed_and_named(form):
    answer = advise(config=VIT)
    said = answer.remarks(form)[0]
    assert "image_size 224, patch_size 16, num_channels 3, num_labels 2" in said
    assert "224" in answer.export(form)


def test_measured_images_give_their_sizes():
    fields = json.loads(advise("digits", heads=4, rank=16).export("vit"))
    assert (fields["image_size"], fields["patch_size"], fields["num_channels"]) == (8, 2, 1)


def test_bert_keeps_what_defines_it():
    config = BERT | {"architectures": ["BertForSequenceClassification"], "num_labels": 5}
    fields = json.loads(advise(config=config).export("bert"))
    assert fields | config == fields
    read = loaded(config, "bert")
    assert (read.num_labels, read.type_vocab_size, read.pad_token_id) == (5, 3, 7)


def run(code, call, geometry_width=64):
    """Run the printed code and the call in its comment."""
    space = {"x": torch.randn(2, 5, geometry_width), "torch": torch, "n": 5}
    exec(code, space)
    for line in call:
        exec(line, space)
    return space


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({}, 'biases="none", position=Rotary(16, base=10000.0)'),
        ({"rope_theta": 5e5}, "base=500000.0"),
        ({"attention_bias": True}, 'biases="all"'),
        ({"num_key_value_heads": 2, "sliding_window": 3}, "mask=Causal() & SlidingWindow(3)"),
    ],
)
def test_the_layer_of_a_llama_turns_and_has_no_biases(more, named):
    code = advise(config=LLAMA | more, length=16).export("torch")
    assert named in code and "# The mask is causal: y = layer(x, mask=Causal())" in code
    space = run(code, ["y = layer(x, mask=Causal())"])
    changed = space["x"].clone()
    changed[:, 3:] += 1
    after = space["layer"](changed, mask=space["Causal"]())
    torch.testing.assert_close(space["y"][:, :3], after[:, :3])


def test_pytorchs_own_layer_is_printed_with_its_causal_mask():
    code = advise(config=GPT2).export("torch")
    assert "nn.MultiheadAttention(embed_dim=64, num_heads=4, batch_first=True)" in code
    lines = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert lines[0] == "The mask is causal. For tokens x of shape (batch, n, 64):"
    assert run(code, lines[1:])["y"].shape == (2, 5, 64)
    assert "mask" not in advise(config=BERT).export("torch")
    assert "mask is causal" in advise(length=64, width=64, mask="causal").export("torch")


@pytest.mark.parametrize(
    ("config", "form", "said"),
    [
        (LLAMA, "qwen3", ["qwen3 is another architecture than llama: it also normalises"]),
        (LLAMA, "mistral", []),
        (GPT2, "mistral", ["mistral is another architecture than gpt2"]),
        (LLAMA | {"model_type": "qwen3"}, "torch", ["qwen3 normalises queries and keys; this"]),
        (LLAMA | {"model_type": "mine"}, "torch", ["the layer of mine is not known: biases are"]),
        (LLAMA | {"rope_scaling": {"factor": 2.0}}, "torch", ["the config scales rotary"]),
        (LLAMA, "torch", []),
    ],
)
def test_what_an_export_changes_is_remarked(config, form, said):
    found = advise(config=config, length=16).remarks(form)
    found = [line for line in found if not line.startswith(("assumed", "the rank", "whether"))]
    found = [line for line in found if "causal mask; this was judged" not in line]
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


REPORTED = {
    "rotary positions, a causal mask": {"model_type": "llama", "num_key_value_heads": 2},
    "a layer that normalises": {"model_type": "qwen3", "head_dim": 16},
    "no family": None,
}


@pytest.mark.parametrize("config", REPORTED.values(), ids=REPORTED)
def test_the_report_has_the_layer_that_the_export_prints(config):
    sizes = {"hidden_size": 64, "num_attention_heads": 4}
    answer = advise(config=config | sizes) if config else advise(length=64, width=64)
    html = unescape(page(answer))
    for part in (answer.export("torch"), *answer.remarks("torch")):
        assert part in html
    if config:
        assert "Rotary(16" in html and "mask=Causal()" in html
