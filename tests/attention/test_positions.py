"""Position rules: what they do to tokens, queries and keys, and what they refuse."""

import pytest
import torch

from attention.copies import close, tokens
from headwise.attention import LearnedAdditive, LearnedConcatenated, NoPosition, Rotary
from headwise.errors import BadInputError


def turned_by_complex_numbers(x, base):
    """Adjacent pairs as complex numbers times e^{i·position·frequency}."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    rank = x.shape[-1]
    powers = torch.arange(0, rank, 2, dtype=torch.float64) / rank
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * base**-powers
    return torch.view_as_real(pairs * torch.exp(1j * angle)).flatten(-2)


def test_adjacent_rotary_is_multiplication_of_complex_numbers():
    q, k = tokens(2, 3, 7, 6), tokens(2, 3, 5, 6, seed=2)
    found = Rotary(6, base=100.0, pairs="adjacent").turn(q, k)
    close(found[0], turned_by_complex_numbers(q, 100.0))
    close(found[1], turned_by_complex_numbers(k, 100.0))


def test_halves_is_adjacent_with_the_dimensions_in_another_order():
    q = tokens(2, 3, 7, 6)
    order = torch.tensor([0, 2, 4, 1, 3, 5])
    adjacent, _ = Rotary(6, pairs="adjacent").turn(q, q)
    halves, _ = Rotary(6).turn(q[..., order], q[..., order])
    close(halves, adjacent[..., order])


def test_only_the_last_dimensions_turn():
    q = tokens(2, 3, 7, 6)
    found, _ = Rotary(2).turn(q, q)
    assert torch.equal(found[..., :4], q[..., :4])
    assert not torch.allclose(found[..., 4:], q[..., 4:])


def test_turning_keeps_lengths_and_leaves_the_first_token():
    q = tokens(2, 3, 7, 6)
    found, _ = Rotary(6).turn(q, q)
    close(found.norm(dim=-1), q.norm(dim=-1))
    assert torch.equal(found[:, :, 0], q[:, :, 0])


def test_learned_rules_use_one_row_per_position():
    x = torch.zeros(3, 4, 6)
    added = LearnedAdditive(5, 6)
    assert torch.equal(added.embed(x)[1], added.table[:4])
    joined = LearnedConcatenated(5, 2)
    assert torch.equal(joined.embed(x)[2, :, 6:], joined.table[:4])
    assert joined.added_width == 2


def test_only_rotary_is_left_to_the_layers():
    rotary = Rotary(4)
    assert rotary.within_layers() is rotary
    for rule in (NoPosition(), LearnedAdditive(5, 6), LearnedConcatenated(5, 2)):
        assert isinstance(rule.within_layers(), NoPosition)


REFUSALS = {
    "odd rotary": (
        lambda: Rotary(3),
        "expected an even rank .* got 3; pass an even rank, for example 2",
    ),
    "zero rotary": (lambda: Rotary(0), "for rotary positions, got 0; pass an even rank"),
    "heads too thin": (
        lambda: Rotary(8).turn(torch.zeros(1, 1, 2, 5), torch.zeros(1, 1, 2, 5)),
        r"heads of rank 5 have no 8 dimensions to turn; pass Rotary\(4\)",
    ),
    "too long": (
        lambda: LearnedConcatenated(5, 2).embed(torch.zeros(1, 6, 3)),
        "a sequence of 6 tokens is longer than the position table of 5; .* or use Rotary",
    ),
    "another width": (
        lambda: LearnedAdditive(5, 8).embed(torch.zeros(1, 2, 3)),
        "expected tokens of width 8, got 3; make LearnedAdditive",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_refused_with_the_remedy(name):
    call, message = REFUSALS[name]
    with pytest.raises(BadInputError, match=message):
        call()
