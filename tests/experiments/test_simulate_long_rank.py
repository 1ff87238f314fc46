"""Long heads: against a plain arg-max of the same draws, and their error bars against luck."""

import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headwise.experiments.simulate_long_rank import SimulateLongRank, tensorfloat32
from headwise.randomness import stream
from headwise.theory.fluctuation import corrected_law

LENGTH, HEAD_DIM = 1024, 5


def test_the_rank_is_that_of_a_plain_arg_max():
    generator = stream(7, "long hardmax")
    queries = torch.randn(LENGTH, HEAD_DIM, generator=generator, dtype=torch.float64)
    keys = torch.randn(LENGTH, HEAD_DIM, generator=generator, dtype=torch.float64)
    plain = len(set((queries @ keys.mT).argmax(1).tolist()))
    spec = SimulateLongRank(tokens=LENGTH, head_dim=HEAD_DIM, dtype="float64", seed=7)
    assert spec.ask()["mean"] == pytest.approx(plain / LENGTH, rel=1e-12)


def test_many_heads_lie_as_far_apart_as_their_error_bars_say():
    rows = [SimulateLongRank(tokens=LENGTH, head_dim=32, seed=s).ask() for s in range(40)]
    spread = statistics.stdev(row["mean"] for row in rows)
    stated = statistics.mean(row["stderr"] for row in rows)
    # The stated error may be too large, as keys compete, but hardly too small.
    assert 0.75 * spread < stated < 1.6 * spread
    mean = statistics.mean(row["mean"] for row in rows)
    assert abs(mean - corrected_law(LENGTH, 32)) < 0.006 + 4 * stated / 40**0.5


def test_draws_are_averaged():
    one = SimulateLongRank(tokens=LENGTH, head_dim=HEAD_DIM).ask()
    four = SimulateLongRank(tokens=LENGTH, head_dim=HEAD_DIM, draws=4).ask()
    assert four["stderr"] < one["stderr"]


def test_rounding_to_tensorfloat32_hardly_moves_the_rank():
    size = {"tokens": LENGTH, "head_dim": 64, "draws": 10}
    exact = SimulateLongRank(**size, dtype="float32").ask()
    rounded = SimulateLongRank(**size, dtype="tensorfloat32").ask()
    assert exact != rounded
    assert rounded["mean"] == pytest.approx(exact["mean"], abs=1e-3)


@given(
    st.floats(
        width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**90), max_value=2.0**90
    )
)
def test_tensorfloat32_keeps_eleven_bits(value):
    rounded = tensorfloat32(torch.tensor([value], dtype=torch.float32))
    assert rounded.view(torch.int32).item() & 0x1FFF == 0
    assert torch.equal(tensorfloat32(rounded), rounded)
    if abs(value) > 1e-30:
        assert abs(rounded.item() - value) <= 2**-11 * abs(value)


def test_the_precision_of_others_is_left_as_it_was():
    before = torch.backends.cuda.matmul.fp32_precision
    SimulateLongRank(tokens=LENGTH, head_dim=2, dtype="tensorfloat32").ask()
    assert torch.backends.cuda.matmul.fp32_precision == before


@pytest.mark.parametrize("tokens", [64, 1023, 1025])
def test_lengths_without_equal_groups_are_refused(tokens):
    with pytest.raises(ValidationError, match="tokens"):
        SimulateLongRank(tokens=tokens, head_dim=2)
