import numpy as np
import pytest
import torch

from headwise.errors import BadInputError
from headwise.spectra import Absolute, DtypeFloor, LogWeights, Relative, count, measure
from headwise.spectra.ranks import as_tolerance, threshold
from oracles import normal


@pytest.mark.parametrize("value", [0.0, -1e-8, float("nan"), float("inf")])
@pytest.mark.parametrize("rule", [Absolute, Relative])
def test_a_tolerance_must_be_positive(rule, value):
    with pytest.raises(BadInputError, match=r"expected a (positive|relative) .*, got"):
        rule(value)


def test_a_relative_tolerance_is_a_fraction():
    with pytest.raises(BadInputError, match=r"between 0 and 1, got 1\.5"):
        Relative(1.5)


def test_thresholds():
    largest = torch.tensor([4.0, 0.5], dtype=torch.float64)
    shape = torch.Size([2, 3, 7])
    assert threshold(Absolute(1e-3), largest, shape, torch.float64).tolist() == [1e-3, 1e-3]
    assert threshold(Relative(0.5), largest, shape, torch.float64).tolist() == [2.0, 0.25]
    floor = threshold(DtypeFloor(), largest, shape, torch.float32)
    assert floor.tolist() == [4 * 7 * 2.0**-23, 0.5 * 7 * 2.0**-23]


@pytest.mark.parametrize("shape", [(67, 67), (111, 53), (53, 111)])
def test_the_dtype_floor_is_what_numpy_counts_by(shape):
    left, right = normal(shape[0], 3, seed=1), normal(3, shape[1], seed=2)
    matrix = left @ right
    assert int(count(matrix, DtypeFloor())) == np.linalg.matrix_rank(matrix.numpy()) == 3


def test_relative_rank_does_not_feel_scale():
    matrix = torch.diag(torch.tensor([1.0, 1e-3, 1e-6], dtype=torch.float64))
    for scale in (1e-12, 1.0, 1e12):
        assert int(count(scale * matrix, Relative(1e-4))) == 2


def test_a_plain_number_is_an_absolute_tolerance():
    matrix = torch.diag(torch.tensor([1.0, 1e-3, 1e-6], dtype=torch.float64))
    for ask in (lambda t: count(matrix, t), lambda t: measure(matrix, t).rank):
        assert [int(ask(t)) for t in (0.1, 1e-4, 1e-7)] == [1, 2, 3]
    with pytest.raises(BadInputError, match="a positive absolute tolerance, got -1"):
        count(matrix, -1.0)


@pytest.mark.parametrize("text", ["", "small", "relative:", "share:1e-6", "relative:1e-6:2"])
def test_a_text_that_names_no_tolerance_is_refused(text):
    with pytest.raises(
        BadInputError, match="expected `tolerance` 1e-8, relative:1e-6 or dtype, got"
    ):
        as_tolerance(text)


def test_a_number_as_text_is_an_absolute_tolerance():
    assert as_tolerance("1e-6") == Absolute(1e-6)


@pytest.mark.parametrize("rule", [None, [1e-6], True])
def test_an_invalid_tolerance_is_refused(rule):
    with pytest.raises(BadInputError, match="a tolerance cannot be"):
        # Past the type check of the tests, as a user without one would call it.
        getattr(as_tolerance, "__wrapped__", as_tolerance)(rule)


@pytest.mark.parametrize("size", [5, 20, 60])
@pytest.mark.parametrize("method", ["cheapest", "dense", "svd", "inertia"])
def test_the_smallest_tolerance_there_is_counts_log_weights(size, method):
    found = count(LogWeights(torch.zeros(size, size, dtype=torch.float64)), 5e-324, method)
    assert int(found.low) <= 1 <= int(found.high)


@pytest.fixture
def flushing():
    """The processor turns the smallest numbers into zero."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot")
    yield
    torch.set_flush_denormal(False)


#: Every entry is below the smallest normal number; the largest singular value is not.
TINY = [torch.full((size, size), 2e-308, dtype=torch.float64) for size in (5, 20, 60)]
BELOW_LARGEST = 5e-308


@pytest.mark.parametrize("matrix", TINY)
@pytest.mark.parametrize("ask", [count, lambda *asked: measure(*asked).rank])
@pytest.mark.usefixtures("flushing")
def test_a_tolerance_that_flushed_numbers_could_reach_is_refused(matrix, ask):
    with pytest.raises(
        BadInputError, match=r"at least 1e-280 .* torch.set_flush_denormal\(False\)"
    ):
        ask(matrix, BELOW_LARGEST)


@pytest.mark.parametrize("matrix", TINY)
@pytest.mark.usefixtures("flushing")
def test_flushed_numbers_leave_a_relative_count_open(matrix):
    found = count(matrix, Relative(0.5))
    assert int(found.low) <= 1 <= int(found.high)


@pytest.mark.parametrize("size", [5, 20, 60])
@pytest.mark.usefixtures("flushing")
def test_ordinary_matrices_are_counted_while_numbers_are_flushed(size):
    matrix = torch.eye(size, dtype=torch.float64)
    matrix[0, 0] = 1e-270
    assert int(count(matrix, 1e-8)) == size - 1
    assert int(measure(matrix, 1e-8).rank) == size - 1
