"""The rank paper's statements where a number, an end point or an equality can be checked."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy
import pytest
import torch

from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.theory import barrier
from headwise.theory.law_formula import barrier_ratio
from headwise.theory.montecarlo import (
    concatenated_rank,
    concatenated_ratio,
    plateau_ratio,
    simulate_ratio,
)
from headwise.theory.simulated_heads import IndependentHead, InputHead, PlateauHead


def test_softmax_row_bound_is_reached_when_all_runners_up_tie():
    scores = torch.zeros(50, dtype=torch.float64)
    scores[7] = 1.0
    distance = 2 * float(1 - torch.softmax(scores / 0.05, -1)[7])
    assert distance == pytest.approx(barrier.softmax_to_hardmax(50, 1.0, 0.05), rel=1e-6)


@pytest.mark.parametrize(("n", "gap"), [(2, 0.5), (20, 0.1), (200, 0.3)])
def test_gap_probability_against_simulation(n, gap):
    scores = torch.randn(20000, n, generator=stream(1, n), dtype=torch.float64)
    top = scores.topk(2).values
    share = float((top[:, 0] - top[:, 1] <= gap).double().mean())
    assert barrier.gap_below(n, gap) == pytest.approx(share, abs=0.014)


def test_softmax_is_hard_at_the_temperature_of_the_smallest_gap():
    n, failures = 30, 0
    heat = barrier.smallest_gap(n, doubt=0.1) / math.log(2 * (n - 1) / 1e-3)
    for seed in range(40):
        scores = torch.randn(n, n, generator=stream(seed, "cold"), dtype=torch.float64)
        worst = 2 * float((1 - torch.softmax(scores / heat, -1).amax(-1)).max())
        failures += worst > 1e-3
    assert failures <= 10


@pytest.mark.parametrize("n", [2, 3, 10, 1000, 10**7])
def test_the_printed_barrier_lies_above_the_exact_one(n):
    exact = n * -math.expm1(n * math.log1p(-1 / n))
    assert exact <= barrier.rank_barrier(n) <= exact + 1
    assert exact == pytest.approx(n * barrier_ratio(n))


def test_the_nearest_orthonormal_matrix_is_nearest():
    matrix = torch.eye(6, 9, dtype=torch.float64) + 0.3 * torch.randn(
        6, 9, generator=stream(2, "near"), dtype=torch.float64
    )
    near = barrier.nearest_orthonormal(matrix)
    torch.testing.assert_close(near @ near.mT, torch.eye(6, dtype=torch.float64))
    for seed in range(20):
        turn = torch.linalg.qr(torch.randn(9, 9, generator=stream(seed, "turn")).double())[0]
        step = torch.linalg.matrix_exp(0.05 * (turn - turn.mT))
        assert (matrix - near @ step).norm() >= (matrix - near).norm()


def test_more_rows_than_dimensions_cannot_be_orthonormal():
    with pytest.raises(BadInputError, match="cannot be orthonormal"):
        barrier.nearest_orthonormal(torch.ones(3, 2))


def test_the_constant_before_log_n_is_of_order_one_over_epsilon_squared():
    assert barrier.log_constant(1e-4) * 1e-8 == pytest.approx(8, rel=1e-3)

    def least(n):
        return (
            bisect_left(
                range(10**5), -0.05, key=lambda d: -barrier.coherence_probability(n, d + 1, 0.1)
            )
            + 1
        )

    growth = least(10**8) - least(10**4)
    assert growth == pytest.approx(barrier.log_constant(0.1) * math.log(10**4), rel=1e-3)


def test_stable_range_is_half_open_below_and_closed_above():
    low = barrier.stable_range(torch.tensor([3.0, 0.75]).double(), 1.0)
    assert low.closed is False
    assert 0.25 not in low
    assert 0.2499 in low
    high = barrier.stable_range(torch.tensor([1.25, 0.25]).double(), 1.0)
    assert high.closed is True
    assert 0.25 in high
    assert 0.2501 not in high


@pytest.mark.parametrize(("values", "epsilon"), [([3.0, 0.75], 1.0), ([1.25, 0.25], 1.0)])
def test_the_ends_of_the_stable_range_are_the_ends(values, epsilon):
    """Move each singular value by δ towards ε: the count changes exactly where it may."""
    spectrum = torch.tensor(values, dtype=torch.float64)
    stable = barrier.stable_range(spectrum, epsilon)
    for delta in (0.5 * stable.limit, stable.limit, 1.5 * stable.limit):
        moved = torch.where(spectrum >= epsilon, spectrum - delta, spectrum + delta)
        kept = int((moved >= epsilon).sum()) == stable.rank
        assert kept == (delta in stable)


def test_a_hardmax_matrix_is_stable_up_to_one():
    choices = torch.tensor([0, 0, 2, 3])
    values = torch.linalg.svdvals(torch.nn.functional.one_hot(choices, 4).double())
    stable = barrier.stable_range(values, 1e-8)
    assert stable.rank == 3
    assert not stable.closed
    assert stable.limit == pytest.approx(1e-8)


def test_bottleneck_is_the_distance_of_the_truncated_svd():
    target = torch.randn(12, 12, generator=stream(3, "target"), dtype=torch.float64)
    left, values, right = torch.linalg.svd(target)
    best = left[:, :7] @ torch.diag(values[:7]) @ right[:7]
    assert barrier.bottleneck(target, 7) == pytest.approx(float((target - best).square().sum()))
    assert barrier.bottleneck(target, 12) == pytest.approx(0)


def test_plateau_of_equal_inputs_is_one_column():
    assert plateau_ratio(torch.ones(20, 4).double(), draws=4).mean == pytest.approx(1 / 20)


def correlated(n, d):
    """Tokens with a common mean, as patches of images have."""
    return torch.randn(n, d, generator=stream(8, "tokens"), dtype=torch.float64) + 1.0


def test_joint_rows_are_those_of_a_head_with_many_dimensions():
    inputs = correlated(24, 6)
    wide = plateau_ratio(inputs, draws=600, rows="joint")
    head = simulate_ratio(InputHead(inputs, head_dim=3000), 200)
    assert abs(wide.mean - head.mean) < 4 * (wide.stderr + head.stderr)


def test_joint_rows_by_brute_force():
    """X·G·Xᵀ drawn in numpy, its arg-max columns counted."""
    inputs = correlated(12, 3)
    generator = numpy.random.default_rng(5)
    x = inputs.numpy()
    drawn = (x @ generator.standard_normal((3, 3)) @ x.T for _ in range(3000))
    counts = numpy.array([len(set(scores.argmax(1).tolist())) for scores in drawn]) / 12
    found = plateau_ratio(inputs, draws=3000, rows="joint")
    assert abs(found.mean - counts.mean()) < 4 * (found.stderr + counts.std() / 3000**0.5)


def test_rows_of_similar_tokens_pick_the_same_keys():
    inputs = correlated(40, 8)
    joint, independent = (plateau_ratio(inputs, rows=rows) for rows in ("joint", "independent"))
    assert joint.mean < 0.7 * independent.mean


def test_rows_of_orthonormal_tokens_are_independent():
    joint = plateau_ratio(torch.eye(30).double(), draws=400, rows="joint")
    assert abs(joint.mean - barrier_ratio(30)) < 4 * joint.stderr


def test_plateau_of_opposite_inputs_is_two_columns():
    inputs = torch.tensor([[1.0], [-1.0]] + [[0.5]] * 10).double()
    found = plateau_ratio(inputs, draws=300)
    assert found.mean * 12 == pytest.approx(2 * (1 - 2.0**-12), abs=4 * found.stderr * 12 + 1e-9)


def test_plateau_has_no_head_dimension_and_keeps_its_device():
    inputs = torch.randn(30, 5, generator=stream(1, "x"))
    assert PlateauHead(inputs).device == inputs.device
    assert plateau_ratio(inputs, draws=8).draws == 8


def test_inputs_that_are_not_finite_are_refused():
    with pytest.raises(BadInputError, match="not finite"):
        plateau_ratio(torch.full((3, 2), float("nan")))


def test_concatenated_rank_of_two_heads_is_the_rank_of_a_graph():
    """Rows join a column of each head; the rank is columns used less connected parts."""
    choices = torch.tensor([[0, 0, 1, 2, 3], [0, 1, 1, 2, 2]])
    assert concatenated_rank(choices) == 4 + 3 - 2


def test_concatenated_rank_against_svd():
    choices = torch.randint(0, 15, (3, 15), generator=stream(4, "choices"))
    side_by_side = torch.nn.functional.one_hot(choices, 15).double().transpose(0, 1).flatten(1)
    assert concatenated_rank(choices) == int(torch.linalg.matrix_rank(side_by_side))


def test_one_head_side_by_side_is_the_head_itself():
    choices = torch.tensor([[4, 4, 1, 0, 1]])
    assert concatenated_rank(choices) == 3


def test_concatenated_heads_pass_the_barrier_of_one():
    found = concatenated_ratio(IndependentHead(60, 64), heads=3, draws=6)
    assert barrier_ratio(60) < found.mean <= 1
