"""Numbers as people write them."""

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from headwise.cli.options import number, whole


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
