"""Questions that share queries and keys answer as those that compute them."""

import pytest

from headwise.experiments import first_projections
from headwise.experiments.first_projections import shared_beginning
from headwise.experiments.measure_rank import MeasureRank

SHARED = [
    {},
    {"inputs": "uniform(0,1)", "shift": -0.25, "seed": 3},
    {"weights": "xavier", "layers": (1, 2), "norm": "post"},
    {"norm": "pre"},
    {"heads": 2, "head_dim": 3},
]


def spec(head_dim=4, **more):
    return MeasureRank(**({"width": 24, "tokens": 10, "batch": 3, "head_dim": head_dim} | more))


@pytest.mark.parametrize("more", SHARED)
def test_rows_are_those_of_a_layer_that_shares_nothing(monkeypatch, more):
    shared_beginning.cache_clear()
    found = [row for asked in (spec(**more), spec(**more)) for row in asked.ask()]
    monkeypatch.setattr(first_projections, "KEPT_AT_MOST", 0)
    alone = spec(**more).ask()
    for row, expected in zip(found, alone * 2, strict=True):
        assert row.keys() == expected.keys()
        for name, value in expected.items():
            same = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            assert row[name] == same, name


def test_neighbours_in_a_sweep_share_and_others_do_not():
    shared_beginning.cache_clear()
    for head_dim in (2, 4, 8):
        spec(head_dim).ask()
    assert shared_beginning.cache_info().hits == 2
    spec(8, seed=1).ask()
    spec(5, seed=1).ask()  # four heads of five columns are twenty, not twenty-four
    assert shared_beginning.cache_info().hits == 2


def test_what_is_shared_is_left_as_it_was():
    shared_beginning.cache_clear()
    deep = spec(layers=(1, 3))
    first, again = deep.ask(), deep.ask()
    assert shared_beginning.cache_info().hits == 1
    assert first == again
