"""What an export keeps of the model whose config was read."""

import json

import pytest

from headwise import advise
from headwise.advice.export import assumed_sizes, exported
from hugging_face import models

GPT2 = {"n_embd": 64, "n_head": 4, "n_layer": 7, "n_inner": 200}
GPT2 |= {"vocab_size": 500, "n_positions": 96}

QWEN = models.SMALL_LLAMA | {"num_hidden_layers": 7, "intermediate_size": 200}
QWEN |= {"vocab_size": 500, "max_position_embeddings": 96}


@pytest.mark.parametrize("config", [GPT2, QWEN, {"vocab_size": 500, "text_config": QWEN}])
def test_an_export_keeps_the_sizes_of_the_model(config, write):
    answer = advise(config=write(config), length=64, multiple_of=2)
    fields = json.loads(exported(answer, "qwen3"))
    assert fields["num_hidden_layers"] == 7
    assert fields["intermediate_size"] == 200
    assert fields["vocab_size"] == 500
    assert fields["max_position_embeddings"] == 96
    assert assumed_sizes(answer, "qwen3") == {}


OWN = {"rope_theta": 500_000.0, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
OWN |= {"hidden_act": "gelu", "eos_token_id": [7, 8], "bos_token_id": 0, "initializer_range": 0.01}


SCALING = {"rope_type": "linear", "factor": 4.0}


@pytest.mark.parametrize("form", ["qwen3", "mistral"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("composed", [False, True])
def test_an_export_keeps_what_both_families_have(form, scaled, folded, composed, write):
    """Rotary bases stand in one field of newer configs, in two of older ones."""
    config = QWEN | OWN | ({"rope_scaling": SCALING} if scaled else {})
    if folded:
        rotary = {"rope_theta": config.pop("rope_theta"), "rope_type": "default"}
        config["rope_parameters"] = rotary | config.pop("rope_scaling", {})
    if composed:
        tied = {"tie_word_embeddings": config.pop("tie_word_embeddings")}
        config = tied | {"text_config": config}
    answer = advise(config=write(config), length=64, multiple_of=2)
    fields = json.loads(exported(answer, form))
    assert fields | OWN == fields
    assert fields.get("rope_scaling") == (SCALING if scaled else None)
    transformers = pytest.importorskip("transformers")
    read = transformers.AutoConfig.for_model(**fields)
    assert read.rope_parameters["rope_theta"] == 500_000.0
    assert read.rope_parameters["rope_type"] == ("linear" if scaled else "default")
    assert (read.rms_norm_eps, read.hidden_act, read.tie_word_embeddings) == (1e-5, "gelu", True)


@pytest.mark.parametrize(
    ("fields", "window"),
    [
        ({}, None),
        ({"sliding_window": 32}, 32),
        ({"sliding_window": 32, "use_sliding_window": False}, None),
    ],
)
def test_a_window_is_exported_where_there_was_one_and_nowhere_else(fields, window, write):
    """Mistral's own default is a window of 4,096 tokens."""
    answer = advise(config=write(QWEN | fields), length=64, multiple_of=2)
    mistral = json.loads(exported(answer, "mistral"))
    assert mistral["sliding_window"] == window
    assert "sliding_window" not in json.loads(exported(answer, "qwen3"))
    transformers = pytest.importorskip("transformers")
    assert transformers.AutoConfig.for_model(**mistral).sliding_window == window


def test_missing_or_wrong_fields_of_a_config_are_not_exported(write):
    odd = {"rope_theta": "large", "rms_norm_eps": True, "tie_word_embeddings": 1}
    answer = advise(config=write(QWEN | odd), length=64, multiple_of=2)
    fields = json.loads(exported(answer, "qwen3"))
    assert not {*odd, "hidden_act", "rope_scaling"} & set(fields)


@pytest.mark.parametrize("family", ["LlamaConfig", "Qwen3Config", "DeepseekV3Config"])
def test_a_model_of_the_library_keeps_its_rotary_base_in_an_export(family, tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4}
    rotary = {"rope_type": "default", "rope_theta": 77.0}
    config = getattr(transformers, family)(**sizes, rope_parameters=rotary, rms_norm_eps=1e-4)
    config.save_pretrained(tmp_path)
    form = "deepseek_v3" if family == "DeepseekV3Config" else "qwen3"
    answer = advise(config=tmp_path, length=16, multiple_of=2)
    read = transformers.AutoConfig.for_model(**json.loads(exported(answer, form)))
    assert read.rope_parameters["rope_theta"] == 77.0
    assert read.rms_norm_eps == 1e-4


def test_sizes_that_a_config_does_not_tell_are_assumed_and_named(write):
    sizes = {"num_hidden_layers": True, "intermediate_size": [1, 2], "vocab_size": 0}
    answer = advise(config=write(models.SMALL_LLAMA | sizes), multiple_of=2)
    fields = json.loads(exported(answer, "qwen3"))
    for name, value in {
        "num_hidden_layers": 12,
        "intermediate_size": 256,
        "vocab_size": 32_000,
        "max_position_embeddings": 2048,
    }.items():
        assert fields[name] == value
        assert assumed_sizes(answer, "qwen3")[name] == value
    assert assumed_sizes(answer, "torch") == {}
