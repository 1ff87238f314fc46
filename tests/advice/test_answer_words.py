"""What an answer says: nothing that contradicts itself, and evidence only where it compares."""

import inspect

import pytest
import torch

import headwise
from headwise import advise
from headwise.advice.judged import judged_tasks
from headwise.advice.render.document import document, table_rows
from headwise.advice.render.page import page
from headwise.advice.rule import support_for

LLAMA = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4}
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_positions": 1024}


def noise(numbers, width=48, count=64, **asked):
    """Advice for independent random vectors."""
    generator = torch.Generator().manual_seed(0)
    return advise(torch.randn(count, 32, numbers, generator=generator), width=width, **asked)


def said(answer):
    return " ".join(str(answer).split())


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ({"config": LLAMA}, "keeps your model's geometry"),
        ({"length": 512, "width": 768}, "keeps the usual geometry"),
        ({"length": 64, "width": 768, "heads": 8}, "keeps rank width / heads"),
    ],
)
def test_without_data_the_answer_says_that_no_tokens_were_measured(asked, kept):
    words = said(advise(**asked))
    assert f"1. Without measured tokens headwise {kept}: a law for random heads is not" in words
    assert "trained" not in words and "yours" not in words.split("1. ")[1]


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ({"length": 512, "width": 768, "heads": 7}, "the nearest that do are 6 and 8"),
        ({"config": GPT2, "heads": 7}, "the nearest that do are 6 and 8"),
        ({"length": 64, "width": 64, "heads": 100}, "the nearest that does is 64"),
    ],
)
def test_heads_that_do_not_divide_the_width_are_never_called_usual(asked, nearest):
    found = advise(**asked)
    words = said(found)
    assert f"They do not divide the width; {nearest}." in words
    assert "cannot build this; headwise's layer can" in words
    assert "usual" not in table_rows(found)[0].name and "usual geometry" not in words
    even = said(advise(**asked | {"heads": 8}))
    assert "do not divide" not in even


@pytest.mark.parametrize("limits", [{"kind": "mla"}, {"kv_bytes": 1000}, {"heads": 7}])
def test_a_model_that_is_excluded_is_advised_as_its_width_and_length_are(limits):
    """Another kind of layer left the usual rank for one by the law, which is no evidence."""
    sizes = {"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8}
    config = LLAMA | sizes | {"max_position_embeddings": 4096}
    found = advise(config=config, **limits)
    costs = {"params": 10_485_760, "kv_bytes": 2048, "kind": "gqa", "mask": "causal"}
    alone = advise(length=4096, width=2048, **costs | limits)
    assert found.best.geometry == alone.best.geometry and found.kept == alone.kept
    if found.kept:
        keeps = "rank width / heads" if "heads" in limits else "the usual geometry"
        assert f"1. Without measured tokens headwise keeps {keeps}: a law" in said(found)
    assert "not within your limits" not in said(found)


def test_what_excludes_the_model_and_the_usual_geometry_is_what_was_set():
    words = said(advise(config=GPT2, kv_bytes=40))
    assert "decides: what you set excludes your model's geometry and the usual one." in words


def test_where_mixing_never_levels_off_nothing_is_called_too_low():
    found = advise(length=512, width=64)
    words = said(found)
    assert "the largest rank of that width, but it is unknown whether that is enough." in words
    assert "too low" not in words and "No rank is enough" not in words
    assert {row[-1] for row in document(found).table.rows} == {"unknown"}
    assert "unknown: it rises up to rank 64" in words


ONE_SENTENCE = {
    "enough": {"source": "digits"},
    "the model as it is": {"config": LLAMA},
    "the law suggests more": {"length": 512, "width": 768},
    "too low": {"length": 512, "width": 768, "heads": 8, "rank": 8},
    "unknown": {"length": 512, "width": 64},
    "unknown below the width": {"length": 512, "width": 64, "rank": 32},
}


@pytest.mark.parametrize("asked", ONE_SENTENCE.values(), ids=ONE_SENTENCE)
def test_the_answer_is_one_sentence(asked):
    words = document(advise(**asked)).headline
    assert words.endswith(".") and ". " not in words
    assert words.count("(") == words.count(")")


def test_the_answer_compares_with_the_model_that_was_given():
    """The usual geometry is the model's own: one comparison says it all."""
    config = {"model_type": "vit", "hidden_size": 768, "num_attention_heads": 12}
    words = document(advise("digits", config=config)).headline
    assert words.endswith("parameters, as many as your model's 12 heads of rank 64.")


@pytest.mark.parametrize("limit", [64, 128, 256, 512, 1024, 2048])
@pytest.mark.parametrize("asked", [{"length": 512, "width": 768}, {"config": GPT2}])
def test_no_two_rows_share_a_name(asked, limit):
    for found in (advise(**asked, kv_bytes=limit), advise(**asked, kv_bytes=limit, any_shape=True)):
        names = [name for row in table_rows(found) for name in row.names]
        assert len(names) == len(set(names)), names


def test_fewer_heads_of_the_usual_rank_are_called_so():
    rows = table_rows(advise(length=512, width=768, kv_bytes=256))
    assert [(row.name, row.choice.rank) for row in rows[:2]] == [
        ("fewer heads", 64),
        ("lower rank", 8),
    ]


SIZED = {"length": 512, "width": 768}


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"params": "1M"}, {"usual, fewer": (5, 64), "half predicted": (6, 48)}),
        ({}, {"half predicted": (16, 48)}),
        ({"kind": "gqa"}, {"usual, grouped": (12, 64)}),
        ({"kind": "mla"}, {"usual, latent": (12, 64)}),
        ({"multiple_of": 7}, {"usual, rounded": (10, 70)}),
        ({"heads": 8, "params": "1M"}, {"width / heads": None}),
        ({"kv_bytes": 300, "heads": 1}, {"lower rank, 1 × 75": (1, 75), "half rank": None}),
        ({"kv_bytes": 100, "need": "mixing"}, {"half rank": None}),
        ({"width": 64, "multiple_of": 7, "need": "mixing"}, {"half rank": None, "retrieval": None}),
    ],
)
def test_rows_are_what_they_are_called(asked, named):
    """Half a rank that the table does not show is half of nothing; rank 63 retrieves no 64."""
    rows = table_rows(advise(**SIZED | asked))
    found = {name: row.choice.geometry for row in rows for name in row.names}
    shown = {name: (found[name].heads, row_rank(rows, name)) for name in named if name in found}
    assert shown == {name: size for name, size in named.items() if size is not None}


def row_rank(rows, name):
    return next(row.choice.rank for row in rows if name in row.names)


def test_a_rank_that_is_rounded_up_says_so():
    words = said(noise(3, width=64, task="classify"))
    assert "(rank 3 does, rounded up to 4 so that heads × rank = width)." in words
    assert "rounded up" not in said(noise(3, width=48, task="classify"))
    assert "in 3 dimensions (2.7 rounded up; heads paper" in page(advise("digits"))
    assert "in 768 dimensions (heads" in page(advise(length=64, width=768))


def test_ids_that_are_stored_as_floats_are_noticed():
    ids = torch.randint(50, (40, 16), generator=torch.Generator().manual_seed(0))
    hint = "if these are token ids, store them as whole numbers."
    assert hint in said(advise(ids.float(), width=16)) and hint not in said(advise(ids, width=16))
    for other in (ids.float() + 0.5, (ids % 2).float(), ids.float()[None].repeat(2, 1, 1)):
        assert hint not in said(advise(other, width=16))


def test_evidence_reaches_no_rank_that_is_far_from_those_it_was_made_with():
    """Tasks that were advised rank 4 to 8 said that 2 heads of rank 24 were better than one."""
    found = noise(24, task="classify")
    assert found.kept and (found.best.geometry.heads, found.best.rank) == (1, 48)
    assert found.rank.rank == 24
    assert "image-classification tasks support only rank 4 to 8, not rank 24." in said(found)
    assert "such advice" not in said(found)
    near = noise(4, task="classify")
    assert not near.kept and near.best.rank <= 16
    assert "such advice (there rank 4 to 8) scored" in said(near)


def test_every_judged_task_is_within_reach_of_the_others():
    """So the advice that is judged is the advice that is given."""
    for task in judged_tasks():
        others = [other for other in judged_tasks() if other.name != task.name]
        support = support_for(task.kind, task.tokens, others)
        if support.smaller and task.by_rank[1] < task.usual[1]:
            assert support.allows(task.by_rank[1], task.usual[1]), task.name


def test_more_rank_than_usual_cites_what_less_rank_cost():
    found = noise(100, width=128, task="retrieve")
    assert found.best.rank > 64
    assert "5 trained retrieval tasks on vectors, half of the rank cost 30.0 points" in said(found)


def test_the_usual_geometry_has_a_reason_where_the_rule_names_it():
    found = noise(24, width=64, task="regress")
    assert found.best.geometry == found.usual.geometry and not found.kept
    words = document(found).reasons[0]
    assert words == (
        "The tokens suggest rank 48. The smallest head dimension that is large enough and divides "
        "width 64 is 64, the usual one."
    )
    assert document(advise(config=LLAMA)).reasons[2] == "4 heads, as in your model."


def test_a_theorem_alone_gives_no_order():
    words = said(advise(config=GPT2, need="retrieval"))
    assert "Start with 1 head of rank 768" in words
    assert "None supports this at width 768: retrieval was trained at widths up to 128." in words
    assert "The rank follows from a theorem on one layer." in words
    measured = said(noise(8, width=64, need="retrieval"))
    assert "Use " in measured and "None supports this" not in measured


def details(answer):
    return {one.label: one for one in document(answer).details}


def test_what_would_serve_better_than_the_kept_model_is_named():
    """The table lists 8 heads of rank 96 at equal cost: something does come nearer."""
    found = advise(config=GPT2)
    assert found.verdict == "kept, met"
    words = details(found)["Model"].words
    assert "8 heads of rank 96 cost the same and would reach it, but without measured" in words
    assert "Nothing" not in words and "No geometry" not in words


@pytest.mark.parametrize("limit", [None, 300_000, 1_000_000])
def test_nothing_nearer_is_said_only_where_the_table_has_nothing(limit):
    found = advise(config=GPT2, params=limit)
    if found.verdict == "nothing nearer":
        own = found.present
        assert not any(choice.serves_better_than(own) for choice in found.choices)


def test_the_rank_that_mixes_enough_is_named_with_its_95_percent_band():
    """Rank 3 is within a tenth of the plateau, and its band is not."""
    found = advise("digits")
    curve = found.evidence.curve
    mean, half = curve.mean[2], curve.half_width[2]
    assert curve.head_dims[2] == 3 and mean > 0.9 * curve.plateau > mean - half
    words = details(found)["Mixing"].words
    assert "Rank 4 is the lowest tried whose 95% band lies within 10% of the plateau" in words
    assert f"(rank 3: {mean:.3f} ± {half:.3f})" in words
    assert "On the curve of N(0, 1) weights, the rank paper's rule" in words
    law = details(advise(length=512, width=768))["Mixing"].words
    assert "Rank 96 is the lowest tried within 10% of the plateau" in law
    assert "band" not in law and "N(0, 1)" not in law


def test_whoever_has_no_images_learns_that_the_evidence_is_images():
    kind = "3 trained image-classification tasks"
    words = said(noise(4, task="classify"))
    assert f"On {kind}, such advice" in words and "Vectors other than images were not" in words
    digits = said(advise("digits"))
    assert f"On {kind}, such advice" in digits and "were not tried" not in digits


@pytest.mark.parametrize(
    "asked",
    [
        {"heads": 1},
        {"heads": 3},
        {"params": 4096},
        {"kv_bytes": 32},
        {"params": "30k", "any_shape": True},
    ],
)
def test_no_gain_is_claimed_at_a_cost_that_was_never_tried(asked):
    """Trained tasks compare geometries with heads × rank = width alone."""
    found = advise("digits", **asked)
    words = said(found)
    share = f"{found.best.against_usual['parameters']:.0%}"
    assert document(found).headline.startswith("Start with") and "above the usual" not in words
    assert f"One with {share} of the usual parameters was not tried there" in words
    fewer = found.best.against_usual["parameters"] < 1
    assert ("Fewer heads of one rank scored 1 to 4 points lower." in words) == fewer
    assert "such advice" in said(advise("digits", heads=16))


@pytest.mark.parametrize("kind", ["gqa", "mla"])
def test_no_gain_is_claimed_for_a_form_of_layer_that_was_never_trained(kind):
    found = advise("digits", kind=kind)
    assert document(found).headline.startswith("Start with")
    assert "Grouped and latent layers were not tried there." in said(found)


def test_vectors_unlike_those_of_the_trained_tasks_are_advised_with_less_confidence():
    """All trained classification tasks on vectors have images; those of regression do not."""
    assert document(noise(4, task="classify")).headline.startswith("Start with 12 heads of rank 4")
    assert document(noise(4, task="regress")).headline.startswith("Use ")


def test_the_length_of_training_stands_beside_each_gain():
    table = details(advise("digits"))["Trained tasks"].table
    steps = {row[0]: row[3] for row in table.rows}
    assert steps == {"cifar10": "2,500", "digits-patches": "1,000", "digits-pixels": "1,200"}


def test_the_cost_of_a_lower_rank_is_a_table():
    found = advise(config=GPT2)
    one = details(found)["Ranks"]
    assert one.table.columns == ("rank", "KV bytes", "task", "steps", "cost")
    assert ("query-key 25%", "62%", "prose, width 256", "4,000", "0.029 ± 0.014 nats") in (
        one.table.rows
    )
    for words in (found.markdown(), page(found)):
        assert words.count("0.029 ± 0.014 nats") == 1 and "w256-n512" not in words


def test_a_mean_that_does_not_matter_is_not_mentioned():
    assert "Mean" not in details(advise("digits"))
    tokens = 3 + torch.randn(64, 32, 24, generator=torch.Generator().manual_seed(0))
    assert "subtract the mean" in details(advise(tokens, width=48))["Mean"].words


@pytest.mark.parametrize("width", [24, 40, 64, 100, 128])
def test_a_multiple_of_8_avoids_the_padding_where_it_is_advised(width):
    found = noise(4, width=width, task="classify")
    speed = details(found).get("Speed")
    assert speed is not None and "Pass `multiple_of=8` to avoid the padding." in speed.words
    better = noise(4, width=width, task="classify", multiple_of=8)
    assert better.best.geometry.qk_rank % 8 == better.best.geometry.v_rank % 8 == 0
    assert "Speed" not in details(better)


def test_a_model_of_a_config_is_not_what_a_trial_trains():
    depth = inspect.signature(headwise.trial).parameters["depth"].default
    note = f"headwise trial trains a small built-in model of {depth} layers, not your model."
    assert note in said(advise(config=GPT2)) and note not in said(advise(length=512, width=768))


def test_without_data_nothing_was_measured():
    found = advise(length=512, width=768)
    assert "This measures" not in page(found) + found.markdown() + str(found)


def test_without_data_only_the_law_calls_a_rank_enough_or_too_low():
    words = dict(document(advise(config=GPT2)).choices)
    assert "By the law its rank is too low" in words["12 heads of rank 64"]
    assert "enough by the law" in words["8 heads of rank 96"]
    measured = " ".join(dict(document(advise("digits")).choices).values())
    assert "enough for these tokens" in measured and "law" not in measured
