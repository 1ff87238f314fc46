"""Budgets are met, counted as the model is; what cannot be met or is not meant is refused."""

import pytest

import headwise
from headwise.errors import BadInputError
from headwise.reduction import rank_table, reduction_rows
from headwise.reduction.report import reduction_page

TEXT = " ".join(f"word{number * number % 53}" for number in range(900))
SMALL = {"step": 2, "length": 24, "context": 0}
FORMS = [
    ("llama", None),
    ("llama", "pairs"),
    ("mistral", "latent"),
    ("qwen2", "latent"),
    ("qwen2", "pairs"),
    ("bert", None),
]


def counted(model, *, names=("query", "key", "value", "output")):
    """Count the parameters of the attention, map by map."""
    if model.config.model_type == "bert":
        blocks = [each.attention for each in model.encoder.layer]
        maps = {block: {**block.self._modules, "output": block.output.dense} for block in blocks}
        modules = [own[name] for own in maps.values() for name in names]
    else:
        own = {"query": ["q_proj"], "key": ["k_proj", "k_restore", "k_compress"]}
        own |= {"value": ["v_proj"], "output": ["o_proj"]}
        every = [part for name in names for part in own[name]]
        blocks = [each.self_attn for each in model.model.layers]
        modules = [
            block._modules[name] for block in blocks for name in every if hasattr(block, name)
        ]
    return sum(each.numel() for module in modules for each in module.parameters())


@pytest.mark.parametrize("asked", ["85%", "70%", "60%"])
@pytest.mark.parametrize(("family", "keys"), FORMS)
def test_attention_has_no_more_parameters_than_the_budget(tiny, tokenizer, family, keys, asked):
    model = tiny(family)
    found = headwise.reduce(model, TEXT, tokenizer=tokenizer, params=asked, keys=keys, **SMALL)
    before, after = counted(model), counted(found.model)
    assert after <= float(asked[:-1]) / 100 * before
    assert found.attention_parameters == (before, after)


@pytest.mark.parametrize("only", ["keys", "values"])
@pytest.mark.parametrize(("family", "keys"), FORMS)
def test_a_budget_of_keys_or_values_counts_these_alone(tiny, tokenizer, family, keys, only):
    model = tiny(family)
    found = headwise.reduce(
        model, TEXT, tokenizer=tokenizer, params="80%", keys=keys, only=only, **SMALL
    )
    names = (("query", "key"), ("value", "output"))[only == "values"]
    before, after = (counted(each, names=names) for each in (model, found.model))
    assert after <= 0.8 * before
    others = (("query", "key"), ("value", "output"))[only == "keys"]
    assert counted(found.model, names=others) == counted(model, names=others)


def test_parameters_that_no_rank_meets_are_refused_with_a_way_out(tiny, tokenizer):
    asked = {"tokenizer": tokenizer, "params": "40%", **SMALL}
    with pytest.raises(BadInputError) as refused:
        headwise.reduce(tiny("llama"), TEXT, **asked)
    assert str(refused.value) == (
        "expected `params` of at least 3,008 (49%), got 2,457 of 6,144; pass 3008 or more, a "
        "smaller `step`, or `keys='pairs'`, which cuts queries too"
    )
    headwise.reduce(tiny("llama"), TEXT, keys="pairs", **asked)


def test_keys_that_are_not_cut_gain_no_maps(tiny, tokenizer):
    """At full rank a latent would need more parameters than the keys themselves."""
    for keys in ("latent", "rotated"):
        model = tiny("llama")
        asked = {"tokenizer": tokenizer, "kv_bytes": "100%", "keys": keys, **SMALL}
        found = headwise.reduce(model, TEXT, **asked)
        assert found.parameters[1] == found.parameters[0]
        assert found.kv_bytes[1] == found.kv_bytes[0]


def test_the_tables_say_of_what_ranks_are_and_show_attention_parameters(tiny, tokenizer):
    for keys, heads in (("latent", "all heads (of 16)"), ("pairs", "each head (of 8)")):
        asked = {"tokenizer": tokenizer, "params": "75%", "keys": keys, **SMALL}
        found = headwise.reduce(tiny("llama"), TEXT, **asked)
        columns = (f"key rank, {heads}", "value rank, each head (of 8)")
        assert rank_table(found).columns[2:] == columns
        before, after = found.attention_parameters
        assert ("attention parameters", f"{before:,}", f"{after:,}") in reduction_rows(found)
        page = reduction_page(found)
        assert "share of the original's rank" in page and f"keys, {heads.split(' (')[0]}" in page
