"""Where accuracy stops improving: planted curves are found, and too little data decides nothing."""

import math
import re

import numpy as np
import pytest

from headwise.errors import BadInputError
from headwise.papers.saturation import Stop, best_head_dim, pooled_spread, stops_improving
from predictors import compare_predictors, doublings, judged

GRID = (2, 4, 8, 16, 32)


def planted(means, spread, seeds, draw=0):
    generator = np.random.default_rng(draw)
    return {
        dim: tuple(generator.normal(mean, spread, seeds))
        for dim, mean in zip(GRID, means, strict=True)
    }


@pytest.mark.parametrize(
    ("means", "stop"),
    [
        ((0.6, 0.7, 0.8, 0.8, 0.8), 8),
        ((0.6, 0.8, 0.8, 0.8, 0.8), 4),
        ((0.6, 0.65, 0.7, 0.75, 0.8), 32),
    ],
)
def test_a_planted_stop_lies_in_the_interval(means, stop):
    found = [stops_improving(planted(means, 0.004, 3, draw)) for draw in range(20)]
    assert all(one.decided for one in found)
    inside = [one.low <= stop <= one.high for one in found]
    assert sum(inside) >= 18


def test_with_two_seeds_the_interval_holds_the_true_stop():
    """A curve like CIFAR-10 with 4 heads: the last gain is below two deviations, but barely."""
    means = (0.815, 0.8304, 0.8458, 0.8564, 0.8596)
    found = [stops_improving(planted(means, 0.0023, 2, draw)) for draw in range(30)]
    assert all(one.decided for one in found)
    assert sum(one.low <= 16 <= one.high for one in found) >= 27


def test_a_fixed_margin_does_not_depend_on_the_spread():
    means = (0.60, 0.70, 0.795, 0.80, 0.80)
    for spread in (0.0005, 0.002):
        seeds = planted(means, spread, 3)
        assert stops_improving(seeds, deviations=0.0, points=0.01).head_dim == 8
    assert stops_improving(planted(means, 0.0005, 3)).head_dim == 16


def test_clear_curves_have_short_intervals():
    found = stops_improving(planted((0.5, 0.6, 0.8, 0.8, 0.8), 0.001, 4))
    assert (found.head_dim, found.low, found.high) == (8, 8, 8)


def test_a_curve_that_noise_hides_is_undecided():
    rising = (0.70, 0.74, 0.78, 0.80, 0.82)
    hidden = [stops_improving(planted(rising, 0.4, 2, draw)) for draw in range(20)]
    assert sum(one.decided for one in hidden) <= 3
    assert any("differ no more than seeds do" in str(one) for one in hidden)


def test_a_flat_curve_is_undecided():
    found = [stops_improving(planted((0.8,) * 5, 0.004, 3, draw)) for draw in range(20)]
    assert sum(one.decided for one in found) <= 3
    assert not stops_improving(dict.fromkeys(GRID, (0.8, 0.8))).decided


def test_an_interval_of_the_whole_grid_is_undecided():
    seeds = {2: (0.72, 0.74), 4: (0.78, 0.69), 8: (0.85, 0.82), 16: (0.81, 0.87), 32: (0.94, 0.93)}
    assert str(stops_improving(seeds)) == "undecided: the interval is the whole grid, 2 to 32"


@pytest.mark.parametrize(
    ("accuracies", "words"),
    [
        ({2: (0.7,), 4: (0.8, 0.8), 8: (0.9, 0.9)}, "at least 2 seeds .* got 1"),
        ({2: (0.7, 0.7), 4: (0.8, 0.8)}, "at least 3 head dimensions, got 2"),
    ],
)
def test_too_little_data_is_undecided(accuracies, words):
    for question in (stops_improving, best_head_dim):
        found = question(accuracies)
        assert not found.decided
        assert re.search(words, found.reason)
        assert judged(8, found) == "undecided"
        assert doublings(8, found) is None


def test_nothing_is_refused():
    with pytest.raises(BadInputError, match="expected accuracies, got none"):
        stops_improving({})


def test_seeds_that_agree_exactly_have_no_spread():
    found = stops_improving({2: (0.7, 0.7), 4: (0.8, 0.8), 8: (0.8, 0.8), 16: (0.8, 0.8)})
    assert (found.head_dim, found.low, found.high) == (4, 4, 4)


def test_the_best_of_one_width():
    found = best_head_dim(planted((0.85, 0.86, 0.90, 0.87, 0.80), 0.002, 3))
    assert str(found) == "8 (8 to 8)"


def test_pooled_spread_is_that_of_one_seed():
    assert pooled_spread({2: (0.0, 2.0), 4: (5.0, 7.0)}).deviation == pytest.approx(math.sqrt(2))
    assert pooled_spread({2: (0.0,)}).freedom == 0


def test_a_rule_is_judged_by_the_interval():
    stop = Stop(8, 4, 16, GRID)
    assert [judged(dim, stop) for dim in (2, 4, 16, 32)] == [
        "differs",
        "agrees",
        "agrees",
        "differs",
    ]
    assert judged(None, stop) == "undecided"
    assert judged(math.inf, stop) == "differs"
    assert judged(math.inf, Stop(32, 16, 32, GRID)) == "open"
    assert doublings(32, stop) == 2.0
    assert doublings(math.inf, stop) is None


def test_the_right_predictor_is_found():
    rank = dict(zip(GRID, (0.1, 0.5, 0.9, 0.95, 1.0), strict=True))
    means = [0.5 + 0.3 * rank[dim] for dim in GRID]
    predictors = {
        "rank": rank,
        "d_h": {dim: math.log2(dim) for dim in GRID},
        "constant": dict.fromkeys(GRID, 1.0),
    }
    found = compare_predictors(planted(means, 0.002, 3), predictors)
    assert found["rank"].best > 0.95
    assert found["rank"].error < 0.01 < found["d_h"].error < found["constant"].error
    other = compare_predictors(
        planted([0.5 + 0.1 * math.log2(d) for d in GRID], 0.002, 3), predictors
    )
    assert other["d_h"].best > 0.95


def test_a_line_left_out_is_what_numpy_fits():
    x = {2: 0.1, 4: 0.4, 8: 0.5, 16: 0.9}
    y = {2: (0.6, 0.6), 4: (0.9, 0.9), 8: (0.7, 0.7), 16: (1.2, 1.2)}
    errors = []
    for out in x:
        rest = [dim for dim in x if dim != out]
        line = np.polyfit([x[d] for d in rest], [y[d][0] for d in rest], 1)
        errors.append(np.polyval(line, x[out]) - y[out][0])
    found = compare_predictors(y, {"x": x})
    assert found["x"].error == pytest.approx(float(np.sqrt(np.mean(np.square(errors)))))


def test_few_points_compare_nothing():
    seeds = {2: (0.1, 0.2), 4: (0.2, 0.3), 8: (0.3, 0.4)}
    assert compare_predictors(seeds, {"d_h": {dim: float(dim) for dim in seeds}}) == {}
