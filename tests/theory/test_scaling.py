"""The (log n)² scaling, its constants, and the rank paper's own rule on its own table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from headwise.errors import BadInputError
from headwise.theory.law_formula import column_share
from headwise.theory.scaling import (
    gain_head_dim,
    saturation_constant,
    saturation_row,
    scaling,
)

# Rank paper, Table 1: mean rank ratios at head dimensions 2, 4, 8, 16, 32, 48, 64, 80, 96.
DIMS = [2, 4, 8, 16, 32, 48, 64, 80, 96]
TABLE1 = {
    25: [0.250, 0.422, 0.530, 0.606, 0.612, 0.618, 0.621, 0.623, 0.625],
    50: [0.158, 0.324, 0.459, 0.536, 0.593, 0.601, 0.612, 0.615, 0.622],
    100: [0.096, 0.240, 0.391, 0.498, 0.571, 0.594, 0.606, 0.609, 0.611],
    200: [0.055, 0.172, 0.323, 0.443, 0.525, 0.554, 0.579, 0.592, 0.597],
}


@pytest.mark.parametrize(
    ("threshold", "choices"), [(0.013, [16, 32, 48, 64]), (0.010, [16, 32, 64, 80])]
)
def test_the_papers_rule_on_the_papers_table(threshold, choices):
    assert [saturation_row(DIMS, TABLE1[n], threshold) for n in TABLE1] == choices


def test_a_table_that_never_saturates_has_no_critical_row():
    assert saturation_row([1, 2, 3], [0.1, 0.2, 0.3], 0.01) is None


@pytest.mark.parametrize(("dims", "ratios"), [([1], [0.1]), ([1, 2], [0.1]), ([2, 1], [0.1, 0.2])])
def test_input_that_is_not_a_table_is_refused(dims, ratios):
    with pytest.raises(BadInputError):
        saturation_row(dims, ratios)


@pytest.mark.parametrize(("share", "printed"), [(0.5, 0.66), (0.9, 5.3), (0.95, 11.2)])
def test_constants_against_measured_ones(share, printed):
    assert saturation_constant(share) == pytest.approx(printed, rel=0.02)


def test_constant_solves_the_log_normal_equation():
    spread = math.sqrt(2 / saturation_constant(0.9))

    def used(z):
        return stats.norm.pdf(z) * -math.expm1(-math.exp(spread * z - spread**2 / 2))

    reached = integrate.quad(used, -10, 10)[0] / (1 - math.exp(-1))
    assert reached == pytest.approx(0.9, abs=1e-9)


@pytest.mark.parametrize("n", [2**7, 2**13, 2**20, 10**12])
def test_leading_form_is_near_the_inverse_of_the_law(n):
    found = scaling(n)
    for share in (0.5, 0.9, 0.95):
        assert found.leading[share] == pytest.approx(found.by_law[share], rel=0.08)


def test_head_dim_grows_like_the_square_of_log_n_not_like_log_n():
    """A tenfold log n must raise the critical head dimension far more than tenfold."""
    short, long = scaling(16), scaling(10**12)
    growth = long.by_law[0.9] / short.by_law[0.9]
    logs = math.log(10**12) / math.log(16)
    assert growth > logs**1.9


def test_the_quantile_survives_where_one_minus_one_over_n_rounds():
    assert scaling(10**12).quantile == pytest.approx(stats.norm.isf(1e-12), rel=1e-12)
    assert scaling(2).quantile == 0


@pytest.mark.parametrize(("n", "step", "gain"), [(32, 16, 0.01), (1000, 7, 0.02), (4096, 32, 0.01)])
def test_the_rule_on_the_law_is_where_the_last_step_gains(n, step, gain):
    """Against every head dimension in turn."""
    share = column_share(n, np.arange(2, 700 + step))
    last = max(d for d in range(2, 700) if share[d - 2 + step] - share[d - 2] > gain)
    assert gain_head_dim(n, gain, step) == last + 1


def test_a_gain_that_no_step_has_is_refused():
    with pytest.raises(BadInputError, match=r"no step of 16 gains 0\.5 at length 1024"):
        gain_head_dim(1024, 0.5)
