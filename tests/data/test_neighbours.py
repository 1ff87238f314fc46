"""Neighbour tasks: labels by a plain search, distributions by their moments, baselines."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.data import (
    BiasedNearestNeighbour,
    FarthestNeighbour,
    NearestNeighbour,
    OrthonormalPairs,
    Planted,
    Uniform,
    effective_dimension,
    trivial_error,
)
from headwise.errors import BadInputError
from headwise.randomness import stream


def plain_farthest(points):
    """One point after another, one pair after another."""
    found = []
    for x in points:
        products = [float(x.double() @ other.double()) for other in points]
        found.append(points[products.index(min(products))])
    return torch.stack(found)


@given(st.integers(2, 9), st.integers(2, 7), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_farthest_is_what_a_search_finds(tokens, width, seed):
    batch = FarthestNeighbour(width, tokens).examine(2, stream(seed, "x"))
    for points, labels in zip(batch.inputs[0], batch.targets[0], strict=True):
        assert torch.equal(labels, plain_farthest(points))


def test_two_points_are_each_others_farthest():
    (points,), (labels,) = FarthestNeighbour(5, 2).examine(3, stream(0, "x"))
    assert torch.equal(labels, points.flip(1))


@given(st.integers(2, 9), st.integers(2, 7), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_nearest_is_what_a_search_finds(tokens, width, seed):
    (points, query), (target,) = NearestNeighbour(width, tokens).examine(1, stream(seed, "x"))
    products = [float(x.double() @ query[0].double()) for x in points[0]]
    assert torch.equal(target[0], points[0][products.index(max(products))])


def test_members_are_served_in_one_call():
    task = FarthestNeighbour(6, 4)
    noise = torch.stack([task.noise(3, stream(seed, "x")) for seed in (0, 1)])
    together = task.batch(noise, None)
    for index in (0, 1):
        alone = task.batch(noise[index], None)
        assert torch.equal(together.inputs[0][index], alone.inputs[0])
        assert torch.equal(together.targets[0][index], alone.targets[0])


def test_points_are_uniform_on_the_sphere():
    x = FarthestNeighbour(6, 4).examine(20_000, stream(1, "x")).inputs[0].flatten(0, 1).double()
    torch.testing.assert_close(x.norm(dim=-1), torch.ones(len(x)).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(x.T @ x / len(x), torch.eye(6).double() / 6, atol=0.003, rtol=0)
    assert float(x.mean(0).abs().max()) < 0.01


def test_orthonormal_pairs_and_their_query():
    (pair, query), (target,) = OrthonormalPairs(7).examine(20_000, stream(2, "x"))
    eye = torch.eye(2).expand(len(pair), 2, 2)
    torch.testing.assert_close(pair @ pair.mT, eye, atol=2e-6, rtol=0)
    for cloud in (pair[:, 0], pair[:, 1], query):
        spread = cloud.T @ cloud / len(cloud)
        torch.testing.assert_close(spread, torch.eye(7) / 7, atol=0.006, rtol=0)
    first = ((pair[:, 0] - pair[:, 1]) * query).sum(-1) > 0
    assert torch.equal(target, torch.where(first[:, None], pair[:, 0], pair[:, 1]))


def test_a_bias_moves_the_choice_as_it_must():
    drawn = stream(3, "x")
    none = BiasedNearestNeighbour(8, biases=(0.0, 0.0)).examine(40_000, drawn)
    (pair, query), (target,) = none
    first = (target == pair[:, 0]).all(-1)
    assert abs(float(first.float().mean()) - 0.5) < 0.01
    # x₁·y − x₂·y ~ N(0, 2/√8), so the first wins with a bias of b with chance Φ(b / √(2/√8)).
    shifted = BiasedNearestNeighbour(8, biases=(0.7, 0.0)).examine(40_000, stream(3, "x"))
    wins = float((shifted.targets[0] == shifted.inputs[0][:, 0]).all(-1).float().mean())
    chance = float(torch.special.ndtr(torch.tensor(0.7 / (2 / 8**0.5) ** 0.5)))
    assert abs(wins - chance) < 0.01
    assert query.var().item() == pytest.approx(8**-0.5, rel=0.02)


@pytest.mark.parametrize("dimension", [4.0, 8.0, 16.0])
def test_a_planted_dimension_is_found_again(dimension):
    points = Planted(dimension)
    decay = points.decay(32)
    assert effective_dimension([decay**i for i in range(32)]) == pytest.approx(dimension)
    noise = torch.randn(200_000, 32, generator=stream(0, "x"))
    spread = points.place(noise)
    assert spread.norm(dim=-1).sub(1).abs().max() < 1e-5
    found = effective_dimension(torch.linalg.eigvalsh((spread.T @ spread).double()).tolist())
    # Normalising evens the spread out a little.
    assert dimension < found < 1.35 * dimension


@pytest.mark.parametrize("dimension", [1.0, 0.5, 32.0, 40.0])
def test_an_impossible_dimension_is_refused(dimension):
    with pytest.raises(BadInputError, match="between 1 and 32"):
        Planted(dimension).decay(32)


@pytest.mark.parametrize(
    ("tokens", "sequences", "printed"),
    [(4, 8192, 0.658), (16, 4096, 0.891), (64, 1024, 0.903), (256, 256, 0.877)],
)
def test_the_trivial_baseline_is_as_known(tokens, sequences, printed):
    assert trivial_error(64, tokens, sequences=sequences) == pytest.approx(printed, abs=0.002)


def test_the_trivial_baseline_is_least_squares():
    """A neighbouring pair of coefficients is worse."""
    (x,), (label,) = FarthestNeighbour(5, 3).examine(500, stream(0, "trivial baseline"))
    x, label = x.double(), label.double()
    mean = x.mean(1, keepdim=True)
    best = trivial_error(5, 3, sequences=500)
    errors = [
        float((a * x + b * mean - label).square().sum(-1).mean())
        for a in torch.linspace(-2, 1, 61).tolist()
        for b in torch.linspace(-1, 3, 81).tolist()
    ]
    assert best <= min(errors) < best + 0.002


@pytest.mark.parametrize("task", [FarthestNeighbour, NearestNeighbour])
def test_too_few_points_are_refused(task):
    with pytest.raises(BadInputError, match="expected tokens of at least 2"):
        task(width=4, tokens=1)


@pytest.mark.parametrize("biases", [(), (1.0,), (1.0, 0.0, 0.0), (math.nan, 0.0), (0.0, math.inf)])
def test_biases_that_decide_nothing_are_refused(biases):
    with pytest.raises(BadInputError, match="pass two finite numbers, one for each point"):
        BiasedNearestNeighbour(8, biases)


def test_points_are_part_of_the_task():
    assert FarthestNeighbour().points == Uniform()
    assert FarthestNeighbour(points=Planted(4.0)) != FarthestNeighbour()
