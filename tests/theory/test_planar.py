"""Head dimensions 1 and 2, against brute force, hull counts and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import spatial, stats

from headwise.theory.agreement import _both_below, agreement
from headwise.theory.montecarlo import simulate_ratio
from headwise.theory.planar import (
    HULL_FROM,
    hull_corners,
    line_ratio,
    plane_ratio,
)
from headwise.theory.simulated_heads import IndependentHead


@pytest.mark.parametrize("n", [1, 2, 3, 10, 10**12])
def test_on_a_line_the_two_ends_are_used(n):
    assert line_ratio(n) * n == pytest.approx(2 * (1 - 2.0**-n))


@pytest.mark.parametrize("n", [2, 5, 11])
def test_line_against_simulation(n):
    seen = simulate_ratio(IndependentHead(n, 1), draws=4000, seed=n)
    assert seen.mean == pytest.approx(line_ratio(n), abs=4 * seen.stderr + 1e-12)


@pytest.mark.parametrize(("n", "draws"), [(2, 8000), (3, 8000), (7, 8000), (64, 2000), (300, 400)])
def test_plane_against_simulation(n, draws):
    seen = simulate_ratio(IndependentHead(n, 2), draws=draws, seed=n)
    assert seen.stderr < 0.004
    assert seen.mean == pytest.approx(plane_ratio(n), abs=4 * seen.stderr)


def test_hull_corners_against_real_hulls():
    random = np.random.default_rng(5)
    counts = [len(spatial.ConvexHull(random.normal(size=(50, 2))).vertices) for _ in range(1500)]
    error = np.std(counts) / math.sqrt(len(counts))
    assert hull_corners(50) == pytest.approx(np.mean(counts), abs=4 * error)


def test_small_hulls_are_exact():
    assert hull_corners(2) == pytest.approx(2)
    assert hull_corners(3) == pytest.approx(3)


def test_the_two_forms_meet_where_one_takes_over():
    """At the changeover the corners no query hits are a share of a few ten-thousandths."""
    exact = plane_ratio(HULL_FROM) * HULL_FROM
    corners = hull_corners(HULL_FROM)
    assert exact < corners
    assert exact == pytest.approx(corners, rel=2 * corners / HULL_FROM)


def test_two_normals_below_a_corner_against_scipy():
    for angle in (0.3, 1.5, 2.9):
        law = stats.multivariate_normal(cov=[[1, math.cos(angle)], [math.cos(angle), 1]])
        for corner in ([0.5, -0.2], [1.5, 1.0], [-0.7, -0.1]):
            found = _both_below(np.array(corner[0]), np.array(corner[1]), np.array(angle))
            assert float(found) == pytest.approx(law.cdf(corner), abs=1e-6)


def test_opposite_queries_agree_never_and_equal_ones_always():
    found = agreement(6, np.array([0.0, math.pi - 1e-6]))
    assert found[0] == pytest.approx(1, abs=1e-9)
    assert found[1] == pytest.approx(0, abs=1e-3)


def test_agreement_against_simulation():
    generator = torch.Generator().manual_seed(3)
    keys = torch.randn(20000, 9, 2, generator=generator, dtype=torch.float64)
    turned = torch.tensor([math.cos(0.7), math.sin(0.7)], dtype=torch.float64)
    same = (keys[..., 0].argmax(-1) == (keys @ turned).argmax(-1)).double().mean()
    assert float(same) == pytest.approx(float(agreement(9, np.array([0.7]))[0]), abs=0.015)
