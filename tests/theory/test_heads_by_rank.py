"""The fast curve of heads against rank, beside the root of the bound for each rank."""

import math

import pytest

from headwise.errors import ParameterError
from headwise.theory.harmonic_bound import Values, log_heads_needed
from headwise.theory.heads_by_rank import log_heads_by_rank


@pytest.mark.parametrize(
    ("width", "error", "ranks"),
    [
        (3, 0.05, [1, 2]),
        (8, 0.1, [1, 3, 7]),
        (64, 0.01, [1, 17, 63]),
        (512, 0.3, [1, 64, 511]),
        (8192, 0.1, [2, 1024]),
    ],
)
@pytest.mark.parametrize("values", Values)
def test_all_ranks_at_once_need_the_heads_that_each_needs_alone(width, error, ranks, values):
    found = log_heads_by_rank(width, ranks, error, values)
    wanted = [log_heads_needed(width, rank, error, values) for rank in ranks]
    assert found == pytest.approx(wanted, rel=1e-5, abs=1e-4)


def test_more_rank_and_more_error_need_fewer_heads():
    logs = log_heads_by_rank(96, range(1, 96), 0.1)
    assert logs == sorted(logs, reverse=True)
    assert all(a >= b for a, b in zip(logs, log_heads_by_rank(96, range(1, 96), 0.2), strict=True))


@pytest.mark.parametrize("error", [0.0, 0.0001, 0.6, math.nan])
def test_an_error_out_of_range_is_refused(error):
    with pytest.raises(ParameterError, match="expected `error`"):
        log_heads_by_rank(8, [2], error)
