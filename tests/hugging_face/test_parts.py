"""Configs of real models: which part is judged, under which mask, at which length."""

import json

import pytest

from headwise import advise
from headwise.advice.words.finding import sentence
from headwise.errors import BadInputError
from headwise.hugging_face import read_config
from hugging_face import models


def sentences(answer):
    return [sentence(one) for one in answer.findings]


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
    with pytest.raises(BadInputError, match="belong to a recurrence"):
        read_config(write(config))


@pytest.mark.parametrize("config", [models.JAMBA, models.NEMOTRON_H])
def test_a_hybrid_is_read_by_its_heads_of_attention(config, write):
    geometry = read_config(write(config)).geometry
    assert (geometry.heads, geometry.kv_heads, geometry.qk_rank) == (32, 8, 128)


@pytest.mark.parametrize("config", models.DECODERS)
def test_decoders_are_recognised(config, write):
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
def test_a_model_that_is_not_a_decoder_has_no_mask(config, write):
    assert read_config(write(config)).mask == "none"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (models.CLIP, "This judges text_config, not vision_config."),
        (models.GEMMA3, "This judges text_config, not vision_config."),
        (models.GEMMA3_BRIEF, "This judges vision_config, not text_config."),
        ({"vision_config": models.VISION}, "This judges vision_config."),
        (models.QWEN2_VL, "This judges the outer config, not vision_config."),
        (
            models.WHISPER,
            "This judges the encoder. For the decoder pass `mask=causal` and `length=448`.",
        ),
        (models.T5, "This judges the encoder. For the decoder pass `mask=causal`."),
        (
            models.WHISPER | {"decoder_attention_heads": 4},
            "This judges the encoder. The decoder's 4 heads are not judged.",
        ),
    ],
)
def test_the_answer_names_the_part_of_the_config_that_was_judged(config, words, write):
    assert words in sentences(advise(config=write(config), length=64))


def test_of_a_config_of_one_part_nothing_is_said(write):
    for config in (models.LLAMA3, models.VIT):
        found = advise(config=write(config), length=64)
        assert not any("This judges" in line for line in sentences(found))
    decoder = advise(config=write(models.WHISPER), length=448, mask="causal")
    assert not any("This judges" in line for line in sentences(decoder))


def test_the_length_of_an_encoder_is_that_of_its_source(write):
    config = read_config(write(models.WHISPER))
    assert (config.context, config.context_told) == (1500, True)
    alone = {"d_model": 64, "decoder_attention_heads": 4, "max_target_positions": 448}
    assert read_config(write(alone)).context == 448


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            models.MISTRAL,
            "at most 4,096 tokens back. FLOPs and the law use the whole context of 32,768",
        ),
        (models.MISTRAL, "pass `length=4096` for a layer with the window."),
        (models.GEMMA3, "at most 1,024 tokens back in 5 of 6 layers."),
        (models.GPT_OSS, "at most 128 tokens back in 12 of 24 layers."),
    ],
)
def test_a_window_is_named_with_the_context(config, words, write):
    assert words in sentence(advise(config=write(config)).finding("window"))


@pytest.mark.parametrize(
    "config",
    [models.QWEN3, models.QWEN2_VL, models.LLAMA3, models.GPT_OSS | {"layer_types": ["full"]}],
)
def test_where_no_window_limits_the_context_nothing_is_said_of_one(config, write):
    assert advise(config=write(config)).finding("window") is None
    assert advise(config=write(models.MISTRAL), length=4096).finding("window") is None
