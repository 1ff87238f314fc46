"""Gauss–Legendre rules against numpy's, and against what they must integrate exactly."""

import numpy as np
import pytest

from headwise.theory.numerics import unit_rule


@pytest.mark.parametrize("points", [1, 2, 3, 8, 33, 64, 200])
def test_nodes_and_weights_are_numpys(points):
    nodes, weights = unit_rule(points)
    theirs, their_weights = np.polynomial.legendre.leggauss(points)
    np.testing.assert_allclose(nodes, (theirs + 1) / 2, rtol=0, atol=2e-16)
    np.testing.assert_allclose(weights, their_weights / 2, rtol=0, atol=1e-14)


@pytest.mark.parametrize("points", [1, 2, 5, 20])
def test_polynomials_are_exact_up_to_their_degree_and_no_further(points):
    nodes, weights = unit_rule(points)
    errors = [abs((weights * nodes**k).sum() - 1 / (k + 1)) for k in range(2 * points + 1)]
    assert max(errors[: 2 * points]) <= 1e-15
    if points <= 5:
        assert errors[2 * points] > 1e-7
