"""Configs of many families, read as JSON."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advice import models
from headwise.advice.advisor import advise_config
from headwise.advice.config import read_config
from headwise.advice.question import Budget, Constraints
from headwise.advice.tables import cost_table, named_rows
from headwise.errors import BadInputError, UnreadableFileError
from headwise.geometry import HeadGeometry, LatentGeometry

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
        ({"num_attention_heads": 4}, "tells no width"),
        ({"hidden_size": 64, "num_attention_heads": 5}, "has 5 heads in width 64 and no head_dim"),
        ({"hidden_size": 64, "num_attention_heads": "4"}, "num_attention_heads is '4'"),
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


def test_what_is_offered_costs_no_more_than_what_is_there(write):
    path = write(LLAMA | {"hidden_size": 1024, "head_dim": 128, "max_position_embeddings": 4096})
    answer = advise_config(path)
    present = answer.references[0]
    assert (present.role, present.geometry.qk_rank) == ("present", 128)
    for choice in answer.choices:
        assert choice.costs.parameters <= present.costs.parameters
        assert choice.costs.cache_bytes_per_token <= present.costs.cache_bytes_per_token
        assert choice.plateau_share >= present.plateau_share or choice.costs != present.costs
    assert answer.findings[0].startswith("Present: 8 heads (2 key-value heads) of rank 128")


def test_another_length_is_another_question(write):
    path = write(LLAMA | {"max_position_embeddings": 64})
    short, long = advise_config(path), advise_config(path, length=10**5)
    assert (short.evidence.length, long.evidence.length) == (64, 10**5)
    assert short.rank.rank < long.rank.rank


DEEPSEEK = {
    "model_type": "deepseek_v3",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "kv_lora_rank": 128,
    "q_lora_rank": None,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "max_position_embeddings": 1024,
}


def test_the_rank_of_latent_attention_is_one_number_everywhere(write):
    answer = advise_config(write(DEEPSEEK))
    present = answer.references[0]
    assert present.rank == 32
    assert present.plateau_share == answer.curve.share(32)
    stored = answer.as_json()["references"][0]
    assert (stored["rank"], stored["geometry"]["rope_rank"]) == (32, 16)
    assert "8 heads of rank 32 and 16 rotary dimensions" in answer.findings[0]
    table = cost_table(answer)
    row = dict(zip(table.columns, {r[0]: r for r in table.rows}["present"], strict=True))
    assert (row["rank"], row["rotary"]) == (32, 16)


def test_latent_attention_keeps_its_latent_and_gets_better(write):
    answer = advise_config(write(DEEPSEEK))
    present, best = answer.references[0], answer.best
    assert best.meets
    assert not present.meets
    assert (best.geometry.kv_latent, best.geometry.rope_rank) == (128, 16)


def test_a_model_that_nothing_beats_stays_first_and_it_is_said(write):
    """At rank 1 in one head nothing that costs no more has a larger rank."""
    answer = advise_config(write({"hidden_size": 64, "n_head": 1, "head_dim": 1}))
    assert answer.best.role == "present"
    assert not answer.best.meets
    assert "nothing of equal or lower cost comes nearer" in answer.findings[0]
    assert next(name for name, _ in named_rows(answer)) == "1 present"


def test_a_model_at_the_needed_rank_is_not_told_to_halve_it(write):
    fine = {"hidden_size": 768, "n_head": 8, "head_dim": 96, "n_positions": 512}
    answer = advise_config(write(fine))
    assert answer.best.role == "present"
    assert answer.best.meets
    assert "that is what is needed" in answer.findings[0]
    assert answer.findings[-1].startswith("Heads: 8, as many as the model has.")


def test_a_fixed_rank_is_kept_and_said_to_fall_short(write):
    path = write({"n_embd": 768, "n_head": 12, "n_positions": 512})
    answer = advise_config(path, constraints=Constraints(rank=8))
    assert {choice.rank for choice in answer.choices} == {8}
    assert not answer.best.meets
    assert "It does not meet the need: mixing asks for 90% of the plateau, as rank 96 has" in str(
        answer
    )


@pytest.mark.parametrize(
    ("fields", "mask"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, "causal"),
        ({"architectures": ["GPT2LMHeadModel"]}, "causal"),
        ({"is_decoder": True}, "causal"),
        ({"architectures": ["BertForMaskedLM"], "is_decoder": False}, "none"),
        ({"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True}, "none"),
        ({"architectures": "LlamaForCausalLM"}, "none"),
        ({}, "none"),
    ],
)
def test_the_mask_is_read_where_it_is_plain(fields, mask, write):
    answer = advise_config(write(LLAMA | fields))
    assert answer.evidence.mask == answer.as_json()["mask"] == mask
    assert any("Causal mask" in line for line in answer.findings) == (mask == "causal")
    assert advise_config(write(LLAMA | fields), mask="causal").evidence.mask == "causal"


@settings(max_examples=150, deadline=None)
@given(
    width=st.sampled_from([2, 10, 64, 384]),
    heads=st.sampled_from([1, 2, 4, 12]),
    shared=st.booleans(),
    length=st.sampled_from([2, 100, 4096]),
    asked=st.builds(
        Constraints,
        heads=st.sampled_from([None, 1, 3]),
        rank=st.sampled_from([None, 8]),
        multiple_of=st.sampled_from([1, 2, 8]),
        kind=st.sampled_from([None, "mha", "gqa", "mla"]),
    ),
    budget=st.builds(
        Budget,
        parameters=st.sampled_from([None, 5000, 10**7]),
        cache_bytes=st.sampled_from([None, 16, 500]),
    ),
    need=st.sampled_from(["data", "mixing", "retrieval"]),
)
def test_whatever_is_asked_of_a_config_is_kept_to(
    tmp_path_factory, width, heads, shared, length, asked, budget, need
):
    config = {
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": 1 if shared else heads,
        "head_dim": max(1, width // heads),
        "max_position_embeddings": length,
    }
    path = tmp_path_factory.mktemp("asked") / "config.json"
    path.write_text(json.dumps(config))
    try:
        answer = advise_config(path, budget=budget, constraints=asked, need=need)
    except BadInputError:
        return
    present = answer.references[0]
    meeting = [choice.meets for choice in answer.choices]
    assert meeting == sorted(meeting, reverse=True)
    for choice in answer.choices:
        assert budget.allows(choice.geometry)
        assert choice.costs.parameters <= present.costs.parameters
        assert choice.against_largest["parameters"] <= 1
        assert choice.geometry.heads == (asked.heads or choice.geometry.heads)
        assert choice.role == "present" or choice.rank <= width
        assert choice.rank % asked.multiple_of == 0 or choice.role == "present"


def test_what_is_farther_from_the_need_is_not_called_nearer(write):
    config = {"n_embd": 768, "n_head": 12, "n_positions": 1024}
    fixed = advise_config(write(config), constraints=Constraints(rank=32))
    assert "comes no nearer" in fixed.findings[0]
    llama = LLAMA | {"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 1}
    looking = advise_config(write(llama), length=8192, need="retrieval")
    assert looking.best.role == "present"
    assert "nothing of equal or lower cost comes nearer" in looking.findings[0]


def test_another_kind_than_the_models_own_is_kept(write):
    answer = advise_config(write(LLAMA), length=64, constraints=Constraints(kind="mla"))
    assert all(isinstance(choice.geometry, LatentGeometry) for choice in answer.choices)


@pytest.mark.parametrize(
    ("named", "assumed"), [({}, True), ({"max_position_embeddings": 64}, False)]
)
def test_a_length_that_no_config_names_is_said_to_be_assumed(write, named, assumed):
    place = write({"hidden_size": 64, "num_attention_heads": 4, **named})
    words = "2,048 tokens, assumed since the config names no length"
    assert (words in advise_config(place).evidence.words) is assumed
    assert words not in advise_config(place, length=32).evidence.words


def test_limits_of_the_present_model_are_said_to_be_its_own(write):
    present = read_config(write(LLAMA)).geometry
    cheaper = Budget(parameters=10).within(present)
    assert str(cheaper) == "10 parameters and 64 cache bytes per token (the present model's)"
    dearer = Budget(10**9, 32).within(present)
    assert str(dearer) == "10,240 parameters (the present model's) and 32 cache bytes per token"
    assert str(Budget(10, 64)) == "10 parameters and 64 cache bytes per token"
    with pytest.raises(BadInputError) as raised:
        advise_config(write(LLAMA), budget=Budget(10))
    assert "nothing fits 10 parameters and 64 cache bytes per token (the present" in str(raised)


@pytest.mark.parametrize("length", [300, 2048])
@pytest.mark.parametrize("rank", [80, 90, 128, 170, 190, 200])
def test_what_has_nine_tenths_of_the_plateau_meets_the_need_and_looks_like_it(length, rank, write):
    config = {"hidden_size": 2560, "n_head": 8, "head_dim": rank, "n_positions": length}
    answer = advise_config(write(config))
    present = answer.references[0]
    assert present.meets == (present.plateau_share >= 0.9)
    for row in cost_table(answer).rows:
        shown = dict(zip(cost_table(answer).columns, row, strict=True))
        enough = int(shown["of plateau"].rstrip("%")) >= 90
        assert shown["meets need"] == ("yes" if enough else "no")
    assert ("mixing asks for" in answer.findings[0]) is not present.meets


def test_the_limit_that_binds_is_named_where_the_kind_changes(write):
    full = advise_config(write(models.DEEPSEEK_V3), constraints=Constraints(kind="mha"))
    assert not full.best.meets
    words = (
        "since a larger rank or more heads would exceed 1,152 cache bytes per token (the present"
    )
    assert any(words in line for line in full.findings)
    long = models.LLAMA3 | {"max_position_embeddings": 131_072}
    latent = advise_config(write(long), constraints=Constraints(kind="mla"), mask="none")
    assert (latent.best.geometry.heads, latent.best.rank) == (5, 455)
    words = (
        "a larger rank would exceed 4,096 cache bytes per token (the present model's), and more "
    )
    assert any(f"{words}heads 41,943,040 parameters" in line for line in latent.findings)
