"""What an answer says: nothing that contradicts itself, and evidence only where it compares."""

import pytest
import torch

from headwise import advise
from headwise.advice.judged import judged_tasks
from headwise.advice.render.document import document, table_rows
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
    assert f"1. Without measured tokens headwise {kept}: a law for random heads is no" in words
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
    "the law asks for more": {"length": 512, "width": 768},
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


def test_evidence_reaches_no_rank_that_is_far_from_those_it_was_made_with():
    """Tasks that were advised rank 4 to 8 said that 2 heads of rank 24 were better than one."""
    found = noise(24, task="classify")
    assert found.kept and (found.best.geometry.heads, found.best.rank) == (1, 48)
    assert found.rank.rank == 24
    assert "classify tasks on vectors speak for rank 4 to 8, not for rank 24." in said(found)
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
    assert "5 trained retrieve tasks on vectors, half of the rank cost 30.0 points" in said(found)


def test_the_usual_geometry_has_a_reason_where_the_rule_names_it():
    found = noise(24, width=64, task="regress")
    assert found.best.geometry == found.usual.geometry and not found.kept
    words = document(found).reasons[0]
    assert words == (
        "The tokens ask for rank 48. The smallest head dimension that is large enough and divides "
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
