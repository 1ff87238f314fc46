"""Biases, positions and lengths that a config leaves to its family."""

import pytest

from headwise import advise
from headwise.hugging_face import read_config
from headwise.hugging_face.family_layers import FAMILY_LAYERS, FamilyLayer

SIZES = {"hidden_size": 64, "num_attention_heads": 4}


@pytest.mark.parametrize(
    ("fields", "context"),
    [
        ({"model_type": "bert"}, 512),
        ({"model_type": "vit"}, 197),
        ({"model_type": "vit", "patch_size": 32}, 50),
        ({"model_type": "vit", "image_size": 32}, 5),
        ({"model_type": "gpt2"}, 1024),
        ({"model_type": "llama"}, 2048),
    ],
)
def test_a_config_without_a_length_gets_that_of_its_family(fields, context):
    found = read_config(SIZES | fields)
    assert (found.context, found.context_from, found.context_told) == (context, "family", False)
    assert f"{context:,} tokens (the family's default)" in str(advise(config=SIZES | fields))


def test_the_length_of_an_unknown_family_is_assumed():
    assert "2,048 tokens (assumed: the config gives none)" in str(advise(config=SIZES))


@pytest.mark.parametrize(
    ("fields", "layer"),
    [
        ({"model_type": "llama"}, FamilyLayer("none", 10_000.0)),
        ({"model_type": "llama", "attention_bias": True}, FamilyLayer("all", 10_000.0)),
        ({"model_type": "qwen2", "rope_theta": 1e6}, FamilyLayer("qkv", 1e6)),
        ({"model_type": "qwen3"}, FamilyLayer("none", 10_000.0, normed=True)),
        ({"model_type": "stablelm", "use_qkv_bias": True}, FamilyLayer("qkv", 10_000.0, 0.25)),
        ({"model_type": "gpt_neox", "rotary_pct": 0.5}, FamilyLayer("all", 10_000.0, 0.5)),
        ({"model_type": "vit", "qkv_bias": False}, FamilyLayer("none")),
        ({"model_type": "mine", "partial_rotary_factor": "x"}, FamilyLayer()),
    ],
)
def test_the_layer_is_that_of_the_config_or_of_its_family(fields, layer):
    assert read_config(SIZES | fields).layer == layer


@pytest.mark.parametrize("family", sorted(FAMILY_LAYERS))
def test_the_defaults_are_those_of_the_library(family):
    transformers = pytest.importorskip("transformers")
    own, known = transformers.AutoConfig.for_model(family).to_dict(), FAMILY_LAYERS[family]
    lengths = {own.get("max_position_embeddings"), own.get("n_positions")}
    assert known.get("context") is None or known["context"] in lengths
    for name in ("image_size", "patch_size"):
        assert known.get(name) == own.get(name)
    rotary = own.get("rope_parameters") or {}
    if "rotary" in known:
        assert rotary["rope_theta"] == known["rotary"]
        assert rotary.get("partial_rotary_factor", 1.0) == known.get("turned", 1.0)
