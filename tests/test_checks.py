"""Parameters are checked in one place, with one form of error."""

import math
from fractions import Fraction

import numpy as np
import pytest

from headwise.checks import fraction, one_of, positive, quantity, spelled_number, whole
from headwise.cli import options
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20k", 20_000),
        ("20K", 20_000),
        ("20m", 20_000_000),
        ("1.5M", 1_500_000),
        ("1.1k", 1_100),
        ("7B", 7_000_000_000),
        ("2T", 2 * 10**12),
        ("1e6", 1_000_000),
        ("1,000", 1_000),
        ("12,345,678", 12_345_678),
        ("1_000", 1_000),
        (" 64 ", 64),
        (str(2**63 + 1), 2**63 + 1),
    ],
)
def test_numbers_are_spelled_alike_in_python_and_on_the_command_line(text, value):
    assert spelled_number(text) == quantity("width", text) == options.whole(text) == value
    assert type(quantity("width", text)) is int


@pytest.mark.parametrize(
    "text", ["", "k", "5kk", "M5", "1,5", "1,0000", ",5", "inf", "nan", "1e400", "9" * 400]
)
def test_what_spells_no_number(text):
    assert spelled_number(text) is None
    with pytest.raises(ParameterError, match=f"expected a whole number for width, got {text!r}"):
        quantity("width", text)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0, -1, math.inf])
def test_what_is_not_positive(value):
    with pytest.raises(ParameterError, match="expected a positive temperature, got "):
        positive("temperature", value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 0, 1, -0.5, 2])
def test_what_is_not_a_share(value):
    with pytest.raises(ParameterError, match="expected fraction between 0 and 1, got "):
        fraction("fraction", value)


def test_choices():
    assert one_of("mask", "none", ("none",)) == "none"
    with pytest.raises(ParameterError, match="expected mask 'none', got 3"):
        one_of("mask", 3, ("none",))


def test_a_wrong_parameter_is_bad_input():
    assert issubclass(ParameterError, BadInputError)


@pytest.mark.parametrize(
    "value", [10**400, -(10**5000), Fraction(1, 10**400)], ids=["large", "negative", "small"]
)
def test_numbers_that_no_float_holds_are_not_positive_ones(value):
    with pytest.raises(ParameterError, match="expected a positive tolerance, got ") as raised:
        positive("tolerance", value)
    assert len(str(raised.value)) < 600
