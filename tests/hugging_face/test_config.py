"""Configs of many families, read as JSON."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.errors import BadInputError, HeadwiseError, UnreadableFileError
from headwise.geometry import HeadGeometry, LatentGeometry
from headwise.hugging_face import read_config
from hugging_face import models

LLAMA = models.SMALL_LLAMA
FAMILIES = [
    (LLAMA, HeadGeometry(64, 8, 2, 8, 8)),
    (LLAMA | {"head_dim": 16}, HeadGeometry(64, 8, 2, 16, 16)),
    ({"model_type": "gpt2", "n_embd": 64, "n_head": 4}, HeadGeometry(64, 4, 4, 16, 16)),
    ({"model_type": "bert", **LLAMA, "head_dim": 99}, HeadGeometry(64, 8, 2, 8, 8)),
    ({"d_model": 64, "num_heads": 4, "d_kv": 32}, HeadGeometry(64, 4, 4, 32, 32)),
    ({"dim": 64, "n_heads": 4}, HeadGeometry(64, 4, 4, 16, 16)),
    ({"hidden_size": 64, "n_head": 4, "multi_query": True}, HeadGeometry(64, 4, 1, 16, 16)),
    ({"text_config": LLAMA, "vision_config": {}}, HeadGeometry(64, 8, 2, 8, 8)),
    (
        {
            "hidden_size": 64,
            "num_attention_heads": 4,
            "kv_lora_rank": 32,
            "q_lora_rank": None,
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 8,
            "v_head_dim": 16,
        },
        LatentGeometry(64, 4, 4, 24, 16, 32, None, 8),
    ),
]


@pytest.mark.parametrize(("config", "geometry"), FAMILIES)
def test_the_geometry_is_read(config, geometry, write):
    assert read_config(write(config)).geometry == geometry


@pytest.mark.parametrize(
    "family",
    [
        "BertConfig",
        "GPT2Config",
        "Qwen3Config",
        "DeepseekV3Config",
        "ViTConfig",
        "T5Config",
        "MistralConfig",
    ],
)
def test_a_real_configuration_is_read_as_the_library_reads_it(family, tmp_path):
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, family)()
    config.save_pretrained(tmp_path)
    found = read_config(tmp_path)
    assert found.geometry.heads == config.num_attention_heads
    assert found.geometry.width == config.hidden_size
    if family == "ViTConfig":
        assert found.context == 197
    if family == "DeepseekV3Config":
        assert found.geometry.content_rank == config.qk_nope_head_dim


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "resnet", "hidden_sizes": [64]}, "describes no attention"),
        ({"num_attention_heads": 4}, "gives no width"),
        ({"hidden_size": 64, "num_attention_heads": 5}, "has 5 heads in width 64 and no head_dim"),
        (
            {"hidden_size": 64, "num_attention_heads": "4"},
            "whole number above zero for num_attention_heads, got '4'",
        ),
        ({"hidden_size": 96, "num_heads": [3, 6]}, "per layer (2 numbers)"),
        ({"hidden_size": 64, "n_head": 4, "kv_lora_rank": 8}, "but not qk_nope_head_dim"),
    ],
)
def test_a_config_without_a_geometry_gets_one_clear_line(config, words, write):
    with pytest.raises(BadInputError) as raised:
        read_config(write(config))
    assert words in str(raised.value)


@pytest.mark.parametrize("text", ["{", "[1]", "\x00"])
def test_a_file_that_is_no_config_is_refused(text, write):
    with pytest.raises(UnreadableFileError):
        read_config(write(text))


def test_a_mapping_and_a_transformers_config_are_read_too():
    assert read_config(LLAMA).geometry == HeadGeometry(64, 8, 2, 8, 8)
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_embd=64, n_head=4)
    assert read_config(config).geometry == HeadGeometry.standard(64, 4)


@pytest.mark.parametrize(
    ("fields", "mask", "known"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, "causal", "config"),
        ({"is_decoder": True}, "causal", "config"),
        ({"architectures": ["BertForMaskedLM"], "is_decoder": False}, "none", "config"),
        ({"model_type": "llama"}, "causal", "family"),
        ({"model_type": "bert"}, "none", "family"),
        ({"model_type": "my_model"}, "none", "unknown"),
        ({}, "none", "unknown"),
    ],
)
def test_the_mask_is_known_from_the_config_or_its_family_or_not(fields, mask, known):
    found = read_config(LLAMA | fields)
    assert (found.mask, found.mask_from) == (mask, known)


@pytest.mark.parametrize("family", ["LlamaConfig", "MistralConfig", "GPT2Config", "Qwen3Config"])
def test_a_decoder_saved_without_architectures_is_causal(family, tmp_path):
    transformers = pytest.importorskip("transformers")
    getattr(transformers, family)().save_pretrained(tmp_path)
    assert "architectures" not in json.loads((tmp_path / "config.json").read_text())
    found = read_config(tmp_path)
    assert (found.mask, found.task) == ("causal", "next-token")


def test_missing_sizes_are_the_defaults_of_the_family():
    pytest.importorskip("transformers")
    assert read_config({"model_type": "llama"}).geometry == HeadGeometry.standard(4096, 32)


@pytest.mark.parametrize("value", [[], {}, 7])
def test_a_model_type_that_is_no_name_gets_one_clear_line(value):
    with pytest.raises(BadInputError, match="expected a name for model_type"):
        read_config(LLAMA | {"model_type": value})


def test_a_name_in_a_part_that_is_none_gets_one_clear_line():
    with pytest.raises(BadInputError, match="expected a name for model_type, got \\[\\]"):
        read_config({"model_type": "llava", "text_config": LLAMA | {"model_type": []}})


@pytest.mark.parametrize("count", [10**6, 10**12, 10**400])
@pytest.mark.parametrize(
    "name", ["num_labels", "num_hidden_layers", "n_layer", "num_local_experts", "decoder_layers"]
)
def test_counts_that_no_model_has_are_refused_at_once(name, count):
    """transformers made a list of them: 47 bytes took all memory, for minutes."""
    for config in ({"model_type": "bert", name: count}, {"text_config": {name: count}}):
        with pytest.raises(BadInputError, match=rf"expected at most [\d,]+ for {name}, got"):
            read_config(config)
    with pytest.raises(BadInputError, match="expected at most 2,000 for depths, got 1,000,000"):
        read_config({"model_type": "swin", "depths": [2, 10**6]})


ODD = [None, True, 0, -1, 3, 2**70, 1.5, "8", "", [], [8], {}, {"a": 1}, [None], "llama"]
FIELDS = sorted({name for config in models.ALL for name in config} | {"head_dim", "layer_types"})


@settings(max_examples=1500, deadline=None)
@given(
    config=st.sampled_from(models.ALL),
    changed=st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(ODD), min_size=1, max_size=4),
)
def test_a_mutated_config_is_read_or_refused_in_one_line(config, changed):
    try:
        found = read_config(config | changed)
    except HeadwiseError as error:
        assert "\n" not in str(error)
        return
    assert found.geometry.parameters > 0
    assert found.context >= 2


def test_a_config_without_end_is_refused():
    if not Path("/dev/zero").exists():
        pytest.skip("needs /dev/zero")
    with pytest.raises(UnreadableFileError, match="expected a config of at most"):
        read_config("/dev/zero")


def test_a_config_that_is_no_json_says_where(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama",\n]')
    with pytest.raises(UnreadableFileError, match=r"is not JSON: .* at line 2, column 1; pass a"):
        read_config(tmp_path / "config.json")
