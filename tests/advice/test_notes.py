"""The lines below the tables say in numbers what the columns are held against."""

from dataclasses import replace

import pytest
import torch

from headwise.advice import Constraints, advise, advise_numbers
from headwise.advice.notes import WHOLE_VALUES, need_note, notes
from headwise.advice.page import report_page
from headwise.advice.result import need_words


def in_a_plane(dimension: int, width: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    plane = torch.linalg.qr(torch.randn(width, dimension, generator=generator)).Q
    return torch.randn(40, 16, dimension, generator=generator) @ plane.mT


@pytest.mark.parametrize(
    ("dimension", "width", "model", "words"),
    [
        (6, 24, 24, "Need: rank 12 (retrieval), 2 times the effective dimension of 6.0."),
        (
            6,
            8,
            24,
            "Need: rank 8 (retrieval), 2 times the effective dimension of 6.0, at most the "
            "numbers of a token.",
        ),
        (
            6,
            8,
            8,
            "Need: rank 8 (retrieval), 2 times the effective dimension of 6.0, at most the width.",
        ),
    ],
)
def test_the_need_of_lookup_is_told_from_the_dimension_of_the_tokens(
    dimension, width, model, words
):
    answer = advise(in_a_plane(dimension, width), width=model, need="retrieval")
    assert need_note(answer) == words


@pytest.mark.parametrize(
    ("length", "width", "need", "words"),
    [
        (
            512,
            768,
            "mixing",
            "Need: 90% of the plateau (mixing), which rank 96 is the first looked ",
        ),
        (4096, 64, "mixing", "Need: above rank 64 (mixing), the largest looked at, where "),
        (64, 48, "retrieval", "Need: rank 48 (retrieval), all dimensions of the width, since "),
    ],
)
def test_the_need_without_data(length, width, need, words):
    assert need_note(advise_numbers(length, width, need=need)).startswith(words)


def test_the_need_is_the_same_whatever_rank_is_fixed_and_every_form_tells_it():
    fixed = advise_numbers(512, 768, constraints=Constraints(rank=8))
    assert need_note(fixed) == need_note(advise_numbers(512, 768))
    assert fixed.as_json()["need"] == need_note(fixed)
    for text in (str(fixed), report_page(fixed), fixed._repr_html_()):
        assert need_note(fixed) in text


def test_whole_values_are_explained_where_they_are_offered():
    few = advise_numbers(16, 64, constraints=Constraints(rank=4))
    assert any(choice.role == "whole values" for choice in few.choices)
    assert WHOLE_VALUES in notes(few)
    full = advise_numbers(512, 768)
    assert not any(choice.role == "whole values" for choice in full.choices)
    assert WHOLE_VALUES not in notes(full)


def test_where_lookup_takes_more_than_mixing_enough_both_are_told():
    answer = advise_numbers(512, 768)
    alone = replace(answer.rank, counts=("mixing", "retrieval"), retrieval=20)
    both = replace(answer, rank=replace(alone, retrieval=answer.rank.mixing))
    assert need_note(both).endswith("reach, and rank 96 (retrieval).")
    assert need_words(both.rank).endswith("as rank 96 has, and retrieval for rank 96")
    assert "retrieval" not in need_words(alone)
