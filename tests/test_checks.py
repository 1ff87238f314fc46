"""Parameters are checked in one place, with one form of error."""

import math

import numpy as np
import pytest

from headwise.checks import one_of, positive, share, whole
from headwise.errors import BadInputError, ParameterError

NOT_NUMBERS = ["7", None, True, [3], math.nan]


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.float32(3)])
def test_whole_numbers_of_any_type(value):
    assert whole("heads", value) == 3
    assert type(whole("heads", value)) is int


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 1.5, math.inf, -math.inf])
def test_what_is_not_a_whole_number(value):
    with pytest.raises(ParameterError, match="expected a whole number for heads, got "):
        whole("heads", value)


@pytest.mark.parametrize(("value", "words"), [(1, "at least 2"), (-(10**30), "at least 2")])
def test_whole_numbers_below_the_least(value, words):
    with pytest.raises(ParameterError, match=words):
        whole("heads", value, 2)


def test_whole_numbers_outside_a_range():
    assert whole("width", 10, 2, 10) == 10
    with pytest.raises(ParameterError, match="expected width from 2 to 10, got 11"):
        whole("width", 11, 2, 10)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0, -1, math.inf])
def test_what_is_not_positive(value):
    with pytest.raises(ParameterError, match="expected a positive temperature, got "):
        positive("temperature", value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0, 1, -0.5, 2])
def test_what_is_not_a_share(value):
    with pytest.raises(ParameterError, match="expected fraction between 0 and 1, got "):
        share("fraction", value)


def test_choices():
    assert one_of("mask", "none", ("none",)) == "none"
    with pytest.raises(ParameterError, match="expected mask 'none', got 3"):
        one_of("mask", 3, ("none",))


def test_a_wrong_parameter_is_bad_input():
    assert issubclass(ParameterError, BadInputError)
