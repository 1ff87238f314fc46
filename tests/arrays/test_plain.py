"""Tensors whose numbers are not all stored are refused in one line, wherever they come from."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

import headwise
from headwise.arrays import plain
from headwise.errors import BadInputError, TooLargeError
from headwise.spectra import LogWeights, count, measure

EYE = torch.eye(4)


def quantised():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(EYE, 0.1, 0, torch.qint8)


def nested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.eye(2), torch.eye(3)])


UNUSUAL = {
    "layout sparse_coo": EYE.to_sparse(),
    "layout mkldnn": EYE.to_mkldnn(),
    "quantised dtype qint8": quantised(),
    "several shapes": nested(),
    "device meta": torch.empty(4, 4, device="meta"),
}
ASKED = (
    count,
    measure,
    headwise.rank,
    LogWeights,
    lambda given: headwise.rank(given, logits=True),
    lambda given: headwise.rank(queries=given, keys=given),
    lambda given: headwise.rank(EYE, logits=True, mask=given),
)


@pytest.mark.parametrize("named", UNUSUAL)
@pytest.mark.parametrize("ask", ASKED)
def test_an_unusual_tensor_is_refused_in_one_line(named, ask):
    with pytest.raises(BadInputError, match=named) as raised:
        ask(UNUSUAL[named])
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("ask", ASKED)
def test_an_expanded_tensor_beyond_memory_is_refused_at_once(ask):
    with pytest.raises(TooLargeError, match="1000000×1000000 tensor in full"):
        ask(torch.ones(1, 1).expand(10**6, 10**6))


def test_a_small_expanded_tensor_is_taken():
    assert plain(torch.ones(1, 1).expand(30, 30), "it").shape == (30, 30)


@pytest.mark.parametrize("array", [np.eye(3)[::-1], np.eye(3).astype(">f8"), [[1, 2], [3, 4]]])
def test_arrays_of_any_order_are_taken(array):
    assert torch.equal(plain(array, "it"), torch.from_numpy(np.array(array, dtype=float)))


@pytest.mark.parametrize(
    "array", ["text", [[1], [2, 3]], np.array([[{}]]), np.array([["a"]]), np.zeros((2, 2), "M8[s]")]
)
def test_what_is_not_numeric_is_refused(array):
    with pytest.raises(BadInputError, match="not a numeric array but"):
        plain(array, "it")


def test_a_masked_array_is_refused():
    with pytest.raises(BadInputError, match="masked array"):
        count(np.ma.masked_array(np.eye(3), mask=np.eye(3)))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int64, torch.complex64])
def test_a_mask_of_another_dtype_is_refused(dtype):
    with pytest.raises(BadInputError, match="expected a boolean or float mask"):
        headwise.rank(EYE, logits=True, mask=torch.zeros(4, 4).to(dtype))


@pytest.mark.parametrize("error", [torch.zeros(7), torch.zeros(4, 4)])
def test_an_error_of_log_weights_is_a_number_or_one_per_row(error):
    with pytest.raises(BadInputError, match="expected the error of the log-weights to be a number"):
        LogWeights(EYE, error)


#: Run by itself: the tests check types, which would refuse these calls before headwise can.
WRONG_TYPES = """
import numpy as np, torch, headwise
from headwise.attention.mask_arguments import as_mask
from headwise.spectra import LogWeights
eye = torch.eye(4)
calls = [lambda given=given: as_mask(given) for given in (None, 5, [[True]], {})]
calls += [
    lambda given=given: LogWeights(eye, given)
    for given in ("0.1", None, 1j, [0.1] * 4, np.zeros(4))
]
calls += [
    lambda given=given: headwise.rank(queries=eye, keys=eye, temperature=given)
    for given in ("2", 10**400, [1.0])
]
for call in calls:
    try:
        call()
    except headwise.HeadwiseError as error:
        print(error)
"""


def test_arguments_of_wrong_types_are_refused_in_one_line_each():
    done = subprocess.run(
        [sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True, check=True
    )
    said = [" ".join(line.split()[:4]) for line in done.stdout.splitlines()]
    assert said == [
        *["expected `mask` to be"] * 4,
        *["expected the error of"] * 5,
        *["expected `temperature` above zero,"] * 3,
    ]
