"""Crossings against the exact inverse of the law, and fits against growth that is known."""

import math

import pytest

from headwise.papers.beyond.growth import FITS, Crossing, crossings, fitted
from headwise.papers.beyond.log_squared import HALF_OCTAVES, head_dims
from headwise.papers.beyond.random_heads import Point
from headwise.theory.law_formula import barrier_ratio, critical_head_dim, law_share
from headwise.theory.scaling import quantile


def points_of_law(tokens: int) -> list[Point]:
    """The law in place of a simulation, where the exhibit would simulate."""
    dims = head_dims(tokens)
    values = [float(law_share(tokens, r)) for r in dims]
    barrier = barrier_ratio(tokens)
    return [Point(tokens, r, v, 0.001, v, v, barrier) for r, v in zip(dims, values, strict=True)]


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("power", [8, 13, 20])
def test_interpolation_finds_what_inversion_finds(power, share):
    found = crossings({2**power: points_of_law(2**power)}, share)[0]
    exact = critical_head_dim(2**power, share)  # the next whole number above
    assert found.head_dim == pytest.approx(found.by_law)
    assert exact - 1 - 0.01 * exact <= found.head_dim <= exact + 0.01 * exact


def test_an_error_of_the_mean_becomes_one_of_the_head_dimension():
    points = points_of_law(1024)
    moved = [Point(**(vars(p) | {"mean": p.mean - p.stderr})) for p in points]
    before, after = (crossings({1024: found}, 0.9)[0] for found in (points, moved))
    assert after.head_dim - before.head_dim == pytest.approx(before.stderr, rel=0.15)


def test_a_share_that_is_not_reached_is_left_out():
    assert crossings({1024: points_of_law(1024)[:4]}, 0.95) == []


def grown(rule) -> list[Crossing]:
    return [Crossing(2**power, rule(2**power), 1.0, 1.0) for power in range(7, 21)]


@pytest.mark.parametrize(
    ("rule", "best"),
    [
        (lambda n: 40 * math.log(n) + 3, "a ln n + b"),
        (lambda n: 5 * math.log(n) ** 2, "a (ln n)²"),
        (lambda n: 5.3 * quantile(n) ** 4 / 4, "a t⁴/4"),
    ],
)
def test_the_form_that_grew_leaves_nothing_and_others_do(rule, best):
    left = {form.name: fitted(form, grown(rule)).rms for form in FITS}
    assert left[best] < 1e-12
    others = {name: rms for name, rms in left.items() if name not in (best, f"{best} + b")}
    assert min(others.values()) > 0.01


def test_head_dimensions_surround_every_share():
    for power in range(7, 21):
        dims = head_dims(2**power)
        assert set(dims) <= set(HALF_OCTAVES)
        for share in (0.5, 0.9, 0.95):
            assert dims[0] < critical_head_dim(2**power, share) < dims[-1]
