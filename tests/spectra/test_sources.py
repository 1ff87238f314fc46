import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headwise.errors import BadInputError
from headwise.spectra import LogWeights, count, measure, spectrum

ASK = [count, measure, spectrum]
BAD = [
    (torch.zeros(3), r"shape \(3,\); pass at least two dimensions"),
    (torch.zeros(0, 3), r"empty, shape \(0, 3\)"),
    (torch.zeros(2, 0, 3, 3), "empty"),
    (torch.full((3, 3), 2**53 + 1), "whole numbers above"),
    (torch.ones(3, 3, dtype=torch.complex128), "dtype complex128; pass float64"),
    (torch.full((3, 3), math.nan), "NaN or infinity in 3 rows"),
    (torch.eye(20).double().index_fill(0, torch.tensor([4]), math.inf), "infinity in 1 row;"),
    (np.array([["a", "b"]]), "not a numeric array"),
    (np.ones((2, 2), dtype=np.complex128), "complex128"),
]


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize(("matrix", "message"), BAD)
def test_bad_matrices_get_one_line(ask, matrix, message):
    with pytest.raises(BadInputError, match=message) as caught:
        ask(matrix)
    assert "\n" not in str(caught.value)


BAD_LOGITS = [
    (torch.full((3, 3), math.nan), "NaN or infinity in 3 rows"),
    (torch.full((20, 20), math.inf), "NaN or infinity in 20 rows"),
    (torch.zeros(20, 20).index_fill(0, torch.tensor([4]), -math.inf), "1 row of the log-weights"),
    (torch.full((2, 3, 3), -math.inf), "6 rows of the log-weights mask everything; drop"),
]


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize(("logits", "message"), BAD_LOGITS)
def test_bad_logits_get_one_line(ask, logits, message):
    with pytest.raises(BadInputError, match=message):
        ask(LogWeights(logits))


@pytest.mark.parametrize("error", [-1.0, math.nan])
def test_the_error_of_logits_is_a_bound(error):
    with pytest.raises(BadInputError, match="must not be negative or NaN"):
        LogWeights(torch.zeros(2, 2), error=error)


@given(
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]),
    st.sampled_from(["zero", "rank one", "one-hot", "equal logits"]),
)
def test_any_shape_and_dtype_gives_one_answer_per_matrix(batch, n, m, dtype, kind):
    ones = torch.ones(*batch, n, m, dtype=dtype)
    expected = {"zero": 0, "rank one": 1, "one-hot": 1, "equal logits": 1}[kind]
    hot = torch.zeros_like(ones)
    hot[..., 0] = 1
    source = {
        "zero": torch.zeros_like(ones),
        "rank one": ones,
        "one-hot": hot,
        "equal logits": LogWeights(ones),
    }[kind]
    found = count(source)
    assert found.low.shape == torch.Size(batch)
    assert bool(((found.low <= expected) & (expected <= found.high)).all())
    assert bool((found.low >= min(expected, 1 if kind != "zero" else 0)).all())
    report = measure(source)
    assert report.stable_rank.shape == torch.Size(batch)
    assert torch.allclose(report.stable_rank, torch.tensor(float(expected)).double())
    assert torch.allclose(report.effective_rank, torch.tensor(float(expected)).double())
    if dtype == torch.float64:
        assert bool((found.values == expected).all())


def test_numpy_and_gradients_are_welcome():
    matrix = torch.eye(3, dtype=torch.float64, requires_grad=True)
    assert int(count(matrix)) == int(count(np.eye(3))) == 3


def test_not_contiguous_input():
    matrix = torch.randn(40, 40, dtype=torch.float64)
    assert int(count(matrix.mT)) == int(count(matrix[::2, ::2])) * 2 == 40


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.uint8])
def test_whole_numbers_are_counted_as_float64(dtype):
    whole = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 2]]).to(dtype)
    found = count(whole, 1e-9)
    assert int(found) == int(count(whole.double(), 1e-9))


def test_numbers_stored_with_the_other_sign_are_read_as_they_stand():
    """The imaginary part of a conjugate is a real tensor whose memory holds the negatives."""
    logits = 100 * torch.eye(20, dtype=torch.float64)
    logits[1:, 0] = -100  # with the other sign, nearly all rows would pick this column
    view = torch.complex(torch.zeros_like(logits), -logits).conj().imag
    assert view.is_neg()
    for ask in (count, lambda given: measure(given).rank):
        assert ask(LogWeights(view)).values == ask(LogWeights(logits)).values == 20


def test_float16_logits_stand_for_all_that_underflow_to_them():
    """Half precision has no numbers between 0 and 6e-8, which tell rows apart at 1e-9."""
    logits = 2e-8 * torch.eye(2, dtype=torch.float64)
    assert int(count(LogWeights(logits), 1e-9)) == 2
    rounded = LogWeights(logits.half())
    for found in (count(rounded, 1e-9), measure(rounded, 1e-9).rank):
        assert found.low.item() <= 2 <= found.high.item()
