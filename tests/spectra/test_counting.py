"""Every method against the float64 singular value decomposition, on matrices of every kind."""

import math

import pytest
import torch

from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.spectra import LogWeights, count, dominant
from headwise.spectra.counting import count_at
from oracles import (
    EPSILON,
    causal,
    normal,
    orthonormal,
    planted,
    random_head_logits,
    singular_values,
    svd_rank,
)


def check_against_svd(source, matrix, method="cheapest"):
    """The rules of a certificate; returns how many counts were compared."""
    found = count_at(source, EPSILON, method)
    values = singular_values(matrix).reshape(len(found), -1)
    truth = (values >= EPSILON).sum(-1)
    low, high, delta = (x.flatten() for x in (found.low, found.high, found.delta))
    # The oracle rounds too: within its own error of ε it may be wrong.
    unsure = ((values - EPSILON).abs() <= 1e-14).any(-1)
    inside = (low <= truth) & (truth <= high) | unsure
    assert bool(inside.all()), (low[~inside], high[~inside], truth[~inside])
    clear = ((values - EPSILON).abs() > 10 * delta.unsqueeze(-1)).all(-1)
    assert bool((low == high)[clear].all()), "an interval although no σ lies within 10δ of ε"
    assert float(delta.max()) <= 1e-3 * EPSILON
    return len(found)


def near_epsilon(batch, n, seed):
    """Planted spectra: half of the values within a factor 3 of ε, none within 1e-3 of it."""
    generator = stream(seed, "planted")
    exponent = torch.rand(batch, n, generator=generator, dtype=torch.float64)
    wide = 10 ** (-10 * exponent)
    side = torch.where(exponent < 0.5, 1.0, -1.0)
    close = EPSILON * 3 ** (side * (0.002 + exponent))
    values = torch.where(torch.arange(n) % 2 == 0, wide, close).sort(descending=True).values
    return planted(values, n, n, seed)


def one_hot(batch, n, seed):
    columns = torch.randint(0, n, (batch, n), generator=stream(seed, "columns"))
    return torch.nn.functional.one_hot(columns, n).double()


def near_one_hot(batch, n, seed):
    """One-hot rows with a few entries of every size from 1e-14 to 1 beside."""
    generator = stream(seed, "strays")
    stray = 10 ** (-14 * torch.rand(batch, n, n, generator=generator, dtype=torch.float64))
    there = torch.rand(batch, n, n, generator=generator) < 1.5 / n
    return one_hot(batch, n, seed) + stray * there


def repeated_columns(batch, n, seed):
    matrix = torch.softmax(normal(batch, n, n, seed=seed), -1)
    return matrix[:, :, torch.randint(0, n, (n,), generator=stream(seed, "which"))]


def rank_deficient(batch, n, seed):
    rank = 1 + seed % n
    return orthonormal(batch, n, rank, seed) @ normal(batch, rank, n, seed=seed)


MATRICES = [near_epsilon, one_hot, near_one_hot, repeated_columns, rank_deficient]
SIZES = [17, 31, 53]


@pytest.mark.parametrize("kind", MATRICES)
def test_matrices_of_every_kind(kind):
    compared = 0
    for seed in range(12):
        for n in SIZES:
            matrix = kind(40, n, seed)
            compared += check_against_svd(matrix, matrix)
    assert compared == 12 * 3 * 40


@pytest.mark.parametrize("mask", [lambda x: x, causal])
@pytest.mark.parametrize("scale", [1.0, 0.5, 0.2, 0.05])
def test_attention_of_every_softness(scale, mask):
    compared = 0
    for seed, head_dim in enumerate([1, 2, 3, 5, 8, 16, 64]):
        for n in SIZES:
            logits = mask(random_head_logits(n, head_dim, 24, seed=seed, scale=scale, width=64))
            compared += check_against_svd(LogWeights(logits), torch.softmax(logits, -1))
    assert compared == 7 * 3 * 24


@pytest.mark.parametrize("shape", [(40, 23), (23, 40), (61, 3), (1, 50), (50, 1)])
def test_rectangles(shape):
    matrix = 10 * normal(8, *shape, seed=3)
    assert check_against_svd(matrix, matrix) == 8
    logits = 30 * matrix
    check_against_svd(LogWeights(logits), torch.softmax(logits, -1))


@pytest.mark.parametrize("n", [150, 401, 520])
def test_larger_ones(n):
    for scale in (1.0, 0.4, 0.1, 0.03):
        for head_dim in (3, 8, 64):
            logits = random_head_logits(n, head_dim, 1, seed=n, scale=scale)
            for masked in (logits, causal(logits)):
                check_against_svd(LogWeights(masked), torch.softmax(masked, -1))


@pytest.mark.parametrize("method", ["dense", "svd", "inertia"])
def test_a_method_can_be_named(method):
    for kind in (near_epsilon, near_one_hot, rank_deficient):
        matrix = kind(2, 61, 5)
        found = count_at(matrix, EPSILON, method)
        assert found.low.tolist() == found.high.tolist() == svd_rank(matrix).tolist()


def test_what_was_taken_is_said():
    hot = LogWeights(random_head_logits(80, 16, 1, seed=0))
    soft = LogWeights(random_head_logits(80, 16, 1, seed=0, scale=0.02))
    assert count(hot).methods == ("near-hardmax",)
    assert count(soft).methods == ("qr",)
    both = LogWeights(torch.cat((hot.values, soft.values)))
    assert count(both).methods == ("near-hardmax", "qr")
    assert count(both).values.tolist() == [int(count(hot)), int(count(soft))]


def test_a_method_that_cannot_answer_is_refused():
    with pytest.raises(BadInputError, match="3 of 3 matrices are not nearly one-hot"):
        count_at(normal(3, 40, 40, seed=0), EPSILON, "near-hardmax")
    with pytest.raises(BadInputError, match=r"expected method 'cheapest', .*, got 'qr'"):
        count_at(torch.eye(3).double(), EPSILON, "qr")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("head_dim", [4, 64])
def test_a_rounded_matrix_gives_an_interval_that_contains_the_true_rank(dtype, head_dim):
    logits = random_head_logits(128, head_dim, 6, seed=1)
    truth = svd_rank(torch.softmax(logits, -1))
    rounded = torch.softmax(logits, -1).to(dtype)
    found = count(rounded)
    assert bool(((found.low <= truth) & (truth <= found.high)).all())
    visible = (singular_values(rounded) > 2 * found.delta.unsqueeze(-1)).sum(-1)
    assert bool((found.low >= visible).all())
    assert bool((found.low > 0).all()), "an interval from zero says nothing"


def test_bfloat16_attention_does_not_look_full():
    """A rank-15 matrix in bfloat16 has 509 of 512 singular values above ε by plain SVD."""
    weights = torch.softmax(normal(512, 15, seed=0), -1) @ torch.softmax(
        normal(15, 512, seed=1), -1
    )
    rounded = weights.bfloat16()
    assert int(svd_rank(weights)) == 15
    assert int(svd_rank(rounded)) > 500
    found = count(rounded).item()
    assert found.low <= 15 <= found.high
    assert not found.exact


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounded_logits_widen_the_interval(dtype):
    logits = random_head_logits(64, 8, 8, seed=2)
    found = count(LogWeights(logits.to(dtype)))
    truth = svd_rank(torch.softmax(logits, -1))
    assert bool(((found.low <= truth) & (truth <= found.high)).all())
    assert bool((found.delta > 1e-8).all())


def test_an_error_of_the_logits_is_heard():
    logits = random_head_logits(64, 8, 4, seed=2)
    sharp, vague = count(LogWeights(logits)), count(LogWeights(logits, error=1e-3))
    assert bool(sharp.exact.all())
    moved = logits + 1e-3 * (2 * torch.rand(logits.shape, generator=stream(0, "move")) - 1)
    truth = svd_rank(torch.softmax(moved.double(), -1))
    assert bool(((vague.low <= truth) & (truth <= vague.high)).all())
    assert bool((vague.delta > sharp.delta).all())


def test_this_oracle_notices_dropped_entries(monkeypatch):
    """The comparison above must fail when entries that matter are dropped."""
    monkeypatch.setattr(dominant, "DROPPED_SHARE", 1e6)
    matrix = near_one_hot(60, 53, 1)
    with pytest.raises(AssertionError):
        check_against_svd(matrix, matrix)


def test_degenerate_logits():
    n = 40
    cases = {
        "equal keys": (torch.zeros(n, n), 1),
        "one-hot": (1e4 * torch.eye(n), n),
        "one winner": (1e4 * torch.eye(n)[:1].expand(n, n), 1),
        "two-way ties": (1e4 * torch.eye(n)[:2].sum(0).expand(n, n), 1),
        "huge": (1e300 * torch.eye(n).double(), n),
        "causal, equal": (causal(torch.zeros(n, n)), n),
    }
    for name, (logits, expected) in cases.items():
        assert int(count(LogWeights(logits.double()))) == expected, name


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e9])
def test_a_common_offset_of_the_logits_changes_nothing(offset):
    """Softmax knows only differences; 1e9 plus multiples of 1/8 is exact in float64."""
    logits = (random_head_logits(60, 8, 4, seed=5) * 8).round() / 8
    found = count(LogWeights(logits + offset))
    assert found.values.tolist() == svd_rank(torch.softmax(logits, -1)).tolist()


def test_one_token():
    assert int(count(LogWeights(torch.tensor([[math.pi]], dtype=torch.float64)))) == 1
    assert int(count(torch.tensor([[1e-9]], dtype=torch.float64))) == 0
