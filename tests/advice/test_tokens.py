"""Statistics of tokens against planted ones, and what tokens are refused."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from headwise.advice.tokens.statistics import effective_dimension, token_statistics
from headwise.advice.tokens.token_set import TokenSet, as_seen, token_set, with_vocabulary
from headwise.errors import BadInputError


def planted(eigenvalues, rows=20_000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scales = torch.tensor(eigenvalues).double().sqrt()
    return torch.randn(rows, len(scales), generator=generator, dtype=torch.float64) * scales


def test_wide_rows_have_the_effective_dimension_of_their_covariance():
    """Computed from the products of rows, which are fewer than the columns."""
    rows = torch.randn(20, 90, generator=torch.Generator().manual_seed(0)).double()
    shares = torch.linalg.svdvals(rows - rows.mean(0)).square()
    shares /= shares.sum()
    assert effective_dimension(rows) == pytest.approx(float(shares.xlogy(shares).sum().neg().exp()))


@pytest.mark.parametrize("dimension", [4, 8, 16])
def test_a_planted_effective_dimension_is_found(dimension):
    rows = planted([1.0] * dimension + [0.0] * (32 - dimension))
    assert effective_dimension(rows) == pytest.approx(dimension, rel=0.01)
    assert effective_dimension(1e150 * rows + 3e150) == pytest.approx(dimension, rel=0.01)


def test_unequal_eigenvalues_weigh_by_entropy():
    shares = [0.7, 0.2, 0.1]
    wanted = math.exp(-sum(share * math.log(share) for share in shares))
    assert effective_dimension(planted(shares)) == pytest.approx(wanted, rel=0.02)


@settings(max_examples=25, deadline=None)
@given(rank=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_effective_dimension_is_at_most_the_rank(rank, seed):
    generator = torch.Generator().manual_seed(seed)
    left = torch.randn(40, rank, generator=generator, dtype=torch.float64)
    right = torch.randn(rank, 9, generator=generator, dtype=torch.float64)
    assert 1 - 1e-9 <= effective_dimension(left @ right) <= rank + 1e-6


def test_orthonormal_and_uncentred_tokens_are_told_apart():
    eye = TokenSet(torch.eye(16).double().expand(3, -1, -1), 16, "given")
    found = token_statistics(eye, 0)
    assert found.cosine_spread == found.orthonormality == pytest.approx(0, abs=1e-12)
    assert found.effective_dimension == pytest.approx(15)
    shifted = TokenSet(torch.eye(16).double().expand(3, -1, -1) + 5, 16, "given")
    assert token_statistics(shifted, 0).mean_share > 0.9 > found.mean_share


class Largest(TorchDispatchMode):
    """Note the bytes of the largest tensor that is made inside."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and not func.is_view:
            self.bytes = max(self.bytes, made.nbytes)
        return made


def test_many_vectors_are_checked_and_used_without_a_copy_of_them_all():
    """A file of 1 GB took 3.4 GB: every number in float64, and once more without its sign."""
    values = torch.randn(900, 128, 128, generator=torch.Generator().manual_seed(0))
    with Largest() as seen:
        found = token_set(values, 32)
        some = found.chosen(torch.arange(3))
    assert found.values.data_ptr() == values.data_ptr()
    assert some.values.dtype == torch.float64
    assert seen.bytes < values.nbytes / 3


def test_vectors_keep_the_dimension_they_came_with():
    values = planted([1.0, 1.0, 1.0], rows=600).reshape(20, 30, 3)
    found = token_statistics(TokenSet(values, 64, "linear"), 0)
    assert found.effective_dimension == pytest.approx(3, rel=0.05)


def test_tokens_are_normalised():
    seen = as_seen(7 + 3 * torch.randn(2, 5, 8, dtype=torch.float64), seed=0)
    torch.testing.assert_close(
        seen.var(-1, correction=0), torch.ones(2, 5).double(), rtol=1e-3, atol=0
    )


BAD = {
    "all 10 tokens are equal": torch.ones(2, 5, 4),
    "at least two tokens per sequence, got one": torch.randn(3, 1, 4),
    "not finite": torch.full((2, 5, 4), math.nan),
    "got (5, 1, 1, 1)": torch.zeros(5, 1, 1, 1),
    "got (1, 1, 0)": torch.zeros(1, 0),
    "ids of 0 or more, got -1": torch.tensor([[0, -1, 2]]),
    "all 6 token ids are equal": torch.full((2, 3), 3),
    "tokens of every sequence are equal": torch.tensor([[3, 3], [4, 4]]),
    "tokens of every sequence are equal to": torch.randn(3, 1, 4).expand(-1, 5, -1),
    "token values reach 1e+200": torch.tensor([[[1e200], [0.0]]], dtype=torch.float64),
    "dtype torch.bool": torch.ones(2, 5, dtype=torch.bool),
    "(uint8) of shape (5, 3, 4, 4); pass images and vectors as floats": torch.zeros(
        5, 3, 4, 4, dtype=torch.uint8
    ),
    "got whole numbers (int64) of shape (5, 3, 4)": torch.zeros(5, 3, 4).long(),
    "got width 1, which a layer norm makes zero": torch.randn(3, 5, 1),
}


@pytest.mark.parametrize("words", BAD)
def test_useless_tokens_get_one_clear_line(words):
    with pytest.raises(BadInputError) as raised:
        token_set(BAD[words], None)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_ids_outside_the_vocabulary_are_refused():
    with pytest.raises(BadInputError, match="id 7 is outside a vocabulary of 5; pass ids from 0"):
        with_vocabulary(token_set(torch.tensor([[1, 7, 2]]), 8), 5)


def test_the_embedding_fits_the_tokens():
    vectors = torch.randn(2, 5, 4)
    assert token_set(vectors, None).embedding == "given"
    assert token_set(vectors, 16).embedding == "linear"
    assert token_set(vectors, 16).embedded(0).shape == (2, 5, 16)
    ids = token_set(torch.tensor([[1, 0, 3]]), 16)
    assert (ids.embedding, ids.vocabulary, ids.learned) == ("table", 4, True)
    torch.testing.assert_close(ids.embedded(0)[0, 1], ids.embedded(0)[0, 1])
    assert not torch.equal(ids.embedded(0), ids.embedded(1))


def test_a_large_vocabulary_takes_no_memory():
    """A table of all ids was drawn, which took gigabytes or was refused."""
    ids = token_set(torch.tensor([[5, 0, 5, 2**40]]), 16)
    found = with_vocabulary(ids, 2**50).embedded(0)[0]
    assert found.shape == (4, 16)
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[1])


def test_different_tokens_are_counted_one_by_one():
    values = torch.randn(3, 5, 7, generator=torch.Generator().manual_seed(0)).double()
    values[:, 2:] = values[0, 0]
    found = token_statistics(token_set(values, None), 0)
    rows = {tuple(row) for row in values.flatten(0, 1).tolist()}
    assert (found.distinct, found.repeated) == (len(rows), 10 / 15)
    ids = token_statistics(token_set(torch.tensor([[4, 1, 4, 4], [1, 4, 9, 2]]), 8), 0)
    assert (ids.distinct, ids.repeated) == (4, 0.5)


@pytest.mark.parametrize("constant", [1e6, 1e30])
def test_a_large_constant_number_hides_no_token(constant):
    values = planted([1.0] * 8, rows=600).reshape(20, 30, 8)
    values[..., 3] = constant
    found = token_statistics(token_set(values, None), 0)
    assert (found.distinct, found.repeated) == (600, 1 / 600)
    assert found.effective_dimension == pytest.approx(7, rel=0.03)


@pytest.mark.parametrize("scale", [1e-13, 1e-200, 1e90])
def test_cosines_are_the_same_at_every_scale(scale):
    values = planted([1.0] * 8, rows=600).reshape(20, 30, 8)
    wanted = token_statistics(token_set(values, None), 0)
    found = token_statistics(token_set(values * scale, None), 0)
    assert found.cosine_spread == pytest.approx(wanted.cosine_spread)
    assert found.orthonormality == pytest.approx(wanted.orthonormality)


def with_far_tokens(count, value):
    """1,200 tokens that fill four of eight dimensions, and among them some that are far."""
    rows = planted([1.0] * 4 + [0.0] * 4, rows=1200)
    rows[:count] = value
    return token_set(rows.reshape(40, 30, 8), None)


@pytest.mark.parametrize(("count", "value"), [(1, 300.0), (1, 1e100), (12, 50.0)])
def test_tokens_far_from_all_others_are_counted_and_left_out(count, value):
    found = token_statistics(with_far_tokens(count, value), 0)
    assert found.outliers == count
    assert 0.25 < found.outlier_share <= 1
    assert found.dimension_with_outliers < 3
    assert found.effective_dimension == pytest.approx(4, rel=0.01)
    assert found.mean_share == pytest.approx(0, abs=0.01)


def test_far_tokens_with_little_of_the_variance_count():
    """Two far ones, a thirtieth of the variance: the statistics are those of all tokens."""
    tokens = with_far_tokens(2, 5.0)
    found = token_statistics(tokens, 0)
    assert (found.outliers, found.dimension_with_outliers) == (2, None)
    assert 0 < found.outlier_share < 0.25
    assert found.effective_dimension == effective_dimension(tokens.values.flatten(0, 1).double())


def test_the_share_of_outliers_is_what_is_missing_without_them():
    tokens = with_far_tokens(3, 40.0)
    rows = tokens.values.flatten(0, 1)
    whole, rest = (float(some.var(0).sum()) * (len(some) - 1) for some in (rows, rows[3:]))
    assert token_statistics(tokens, 0).outlier_share == pytest.approx(1 - rest / whole)


def usual_tokens():
    white = torch.randn(40, 30, 8, generator=torch.Generator().manual_seed(0))
    blank = torch.where(torch.arange(30)[:, None] < 25, 0.0, white)
    return {"white": white, "mostly blank": blank, "ids": white.abs().mul(9).long()[..., 0]}


@pytest.mark.parametrize("name", usual_tokens())
def test_usual_tokens_are_not_outliers(name):
    assert token_statistics(token_set(usual_tokens()[name], None), 0).outliers == 0


@pytest.mark.parametrize("vectors", [True, False])
def test_what_returns_is_counted_and_held_against_chance(vectors):
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, (100, 4), generator=generator).repeat(1, 16)
    table = torch.randn(1000, 8, generator=generator)
    found = token_statistics(token_set(table[ids] if vectors else ids, None), 0)
    assert found.returning == pytest.approx(1 - 4 / 64, abs=0.002)
    drawn = ids.flatten()[torch.randint(ids.numel(), (400, 64), generator=generator)]
    by_chance = 1 - sum(len(set(row)) for row in drawn.tolist()) / drawn.numel()
    assert found.returning_by_chance == pytest.approx(by_chance, abs=0.01)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e90])
def test_the_spread_of_tokens_is_that_about_their_mean(scale):
    values = scale * (3 * planted([1.0] * 8, rows=6000) + 7).reshape(200, 30, 8)
    assert token_statistics(token_set(values, None), 0).spread == pytest.approx(3 * scale, rel=0.02)
