"""Every row is named by what is true of it, beside whatever model it stands."""

import json

import pytest

from advice import models
from headwise.advice.advisor import advise_config
from headwise.advice.page import report_page
from headwise.advice.question import Budget, Constraints
from headwise.advice.reasons import ROLE_WORDS
from headwise.advice.shaping import shaped


def is_true(role, choice, answer, allows, multiple):
    geometry, advised = choice.geometry, answer.rank.rank
    half = -(-advised // 2)
    larger = choice.rank + multiple
    constraints = Constraints(kind=answer_kind(answer))
    return {
        "advised": choice.rank == advised,
        "present": choice == answer.references[0],
        "present heads": geometry.heads == answer.references[0].geometry.heads
        and choice.rank == advised,
        "whole values": choice.rank == advised
        and 0 <= geometry.width - geometry.heads * geometry.v_rank < multiple * geometry.heads,
        "half advised": choice.rank == half,
        "under advised": half < choice.rank < advised,
        "limited rank": choice.rank < advised and not allows(geometry.heads, larger, constraints),
        "lookup": choice.rank >= answer.rank.retrieval,
    }[role]


def answer_kind(answer):
    present = answer.references[0].geometry
    return "mha" if present.kv_heads == present.heads else "gqa"


@pytest.mark.parametrize("multiple", [1, 64])
@pytest.mark.parametrize("mask", [None, "none"])
@pytest.mark.parametrize("config", models.ALL, ids=lambda config: config["model_type"])
def test_every_name_of_a_row_is_true(config, mask, multiple, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    answer = advise_config(path, mask=mask, constraints=Constraints(multiple_of=multiple))
    present = answer.references[0].geometry

    def allows(heads, rank, constraints):
        like = present if hasattr(present, "kv_latent") else None
        kind = "mla" if like else constraints.kind
        asked = Constraints(kind=kind, group=present.group, latent=like)
        return Budget().within(present).allows(shaped(present.width, heads, rank, rank, asked))

    for choice in answer.choices:
        assert is_true(choice.role, choice, answer, allows, multiple), choice
        assert choice.role in ROLE_WORDS
    stored = [choice["role"] for choice in answer.as_json()["choices"]]
    assert stored == [choice.role for choice in answer.choices]
    for text in (str(answer), report_page(answer)):
        assert "smaller rank" not in text
        assert "All heads" not in text
