"""Numbers as people write them."""

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from headwise.cli.options import number, number_above, number_in, whole, whole_from


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20k", 20_000),
        ("20K", 20_000),
        ("1.5M", 1_500_000),
        ("7B", 7_000_000_000),
        ("2G", 2_000_000_000),
        ("1e6", 1_000_000),
        ("-3", -3),
        ("1_000", 1_000),
        ("0.1k", 100),
        (12, 12),
    ],
)
def test_numbers_with_suffixes(text, value):
    assert whole(text) == value
    assert isinstance(whole(text), int)


@pytest.mark.parametrize("text", ["1.5", "0.0001k", "inf", "nan", "", "k", "kk", "5kk", "M5"])
def test_what_is_not_a_whole_number_is_refused(text):
    with pytest.raises(typer.BadParameter, match=r"expected a .*number such as 4096.*, got "):
        whole(text)


def test_numbers_need_not_be_whole():
    assert number("0.25") == 0.25
    assert number("2.5k") == 2500.0


@given(st.integers(-(10**15), 10**15))
def test_whole_numbers_are_parsed(value):
    assert whole(str(value)) == value


@pytest.mark.parametrize(
    ("reader", "texts", "words"),
    [
        (number_above(0, 0.5), ("0", "-1", "0.6"), "above 0 and at most 0.5"),
        (number_above(0), ("0", "-1"), "above 0"),
        (number_in(0, 1, open_=True), ("0", "1", "2", "-1"), "above 0 and below 1"),
        (number_in(0), ("-1",), "of at least 0"),
        (whole_from(1, 9), ("0", "10"), "from 1 to 9"),
    ],
)
def test_a_range_is_always_stated_with_the_same_ends(reader, texts, words):
    for text in texts:
        with pytest.raises(typer.BadParameter, match=f"expected a number {words}, got {text}"):
            reader(text)
