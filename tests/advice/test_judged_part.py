"""Configs of real models: which part is judged, under which mask, at which length."""

import json

import pytest

from advice import models
from headwise.advice.advisor import advise_config
from headwise.advice.config import read_config
from headwise.errors import BadInputError


@pytest.fixture
def write(tmp_path):
    def put(config) -> str:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        return str(path)

    return put


@pytest.mark.parametrize(
    "config",
    [
        models.MAMBA2,
        {"hidden_size": 64, "num_heads": 4, "state_size": 16},
        {"model_type": "xlstm", "hidden_size": 64, "num_heads": 4},
        {"d_model": 64, "n_heads": 4, "ssm_cfg": {"layer": "Mamba2"}},
    ],
)
def test_the_heads_of_a_recurrence_are_not_taken_for_attention(config, write):
    with pytest.raises(BadInputError, match="are those of a recurrence"):
        read_config(write(config))


@pytest.mark.parametrize("config", [models.JAMBA, models.NEMOTRON_H])
def test_a_hybrid_is_read_by_its_heads_of_attention(config, write):
    geometry = read_config(write(config)).geometry
    assert (geometry.heads, geometry.kv_heads, geometry.qk_rank) == (32, 8, 128)


@pytest.mark.parametrize("config", models.DECODERS)
def test_decoders_are_known_as_such(config, write):
    assert read_config(write(config)).mask == "causal"


@pytest.mark.parametrize(
    "config",
    [
        models.WHISPER,
        models.T5,
        models.CLIP,
        models.VIT,
        models.GEMMA3_BRIEF,
        models.BLIP2_T5,
        # A vision tower is none, whatever the model around it is.
        {"architectures": ["LlavaForCausalLM"], "vision_config": models.VISION},
    ],
)
def test_what_is_no_decoder_is_taken_without_a_mask(config, write):
    assert read_config(write(config)).mask == "none"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (models.CLIP, "Judged: text_config, and not vision_config."),
        (models.GEMMA3, "Judged: text_config, and not vision_config."),
        (models.GEMMA3_BRIEF, "Judged: vision_config, and not text_config."),
        ({"vision_config": models.VISION}, "Judged: vision_config."),
        (models.QWEN2_VL, "Judged: the model around its parts, and not vision_config."),
        (
            models.WHISPER,
            "Judged: the encoder. For the decoder ask again with a causal mask and a length of "
            "448.",
        ),
        (models.T5, "Judged: the encoder. For the decoder ask again with a causal mask."),
        (
            models.WHISPER | {"decoder_attention_heads": 4},
            "Judged: the encoder. The decoder has 4 heads, which were not judged.",
        ),
    ],
)
def test_it_is_said_which_part_of_a_config_was_judged(config, words, write):
    assert words in advise_config(write(config), length=64).findings


def test_of_a_config_of_one_part_nothing_is_said(write):
    for config in (models.LLAMA3, models.VIT):
        found = advise_config(write(config), length=64).findings
        assert not any(line.startswith("Judged: ") for line in found)
    decoder = advise_config(write(models.WHISPER), length=448, mask="causal")
    assert not any(line.startswith("Judged: ") for line in decoder.findings)


def test_the_length_of_an_encoder_is_that_of_its_source(write):
    config = read_config(write(models.WHISPER))
    assert (config.context, config.context_told) == (1500, True)
    alone = {"d_model": 64, "decoder_attention_heads": 4, "max_target_positions": 448}
    assert read_config(write(alone)).context == 448


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (models.MISTRAL, "look back 4,096 tokens at most. FLOPs and the law are taken at the "),
        (models.MISTRAL, "whole context, 32,768; for a layer with the window ask again with a "),
        (models.MISTRAL, "a length of 4096."),
        (models.GEMMA3, "look back 1,024 tokens at most in 5 of every 6 layers."),
        (models.GPT_OSS, "look back 128 tokens at most in 12 of 24 layers."),
    ],
)
def test_a_window_is_named_beside_the_context_that_was_taken(config, words, write):
    found = advise_config(write(config)).findings
    (line,) = [line for line in found if line.startswith("Window: ")]
    assert words in line


@pytest.mark.parametrize(
    "config",
    [models.QWEN3, models.QWEN2_VL, models.LLAMA3, models.GPT_OSS | {"layer_types": ["full"]}],
)
def test_where_no_window_limits_the_context_nothing_is_said_of_one(config, write):
    found = advise_config(write(config)).findings
    assert not any(line.startswith("Window: ") for line in found)
    within = advise_config(write(models.MISTRAL), length=4096).findings
    assert not any(line.startswith("Window: ") for line in within)
