"""The stated rounding bounds against arithmetic done with far more digits."""

import math

import mpmath
import numpy as np
import pytest
import torch

from headwise.spectra import LogWeights, count
from headwise.spectra.dense import doubt, flat_batch, scaling
from headwise.spectra.ranks import svd_spectrum
from headwise.spectra.sources import NEGLECTED, factorisation_error, roundings, storage_error
from oracles import normal, random_head_logits, singular_values


def test_svd_error_holds_against_fifty_digits():
    matrix = normal(12, 12, seed=0) @ torch.diag(10.0 ** -torch.arange(12.0)).double()
    with mpmath.workdps(50):
        exact = mpmath.svd_r(mpmath.matrix(matrix.tolist()), compute_uv=False)
        truth = torch.tensor([float(x) for x in exact], dtype=torch.float64)
    found = svd_spectrum(matrix)
    worst = float((found.values - truth.sort(descending=True).values).abs().max())
    assert worst <= float(found.error)
    assert float(found.error) < 1e-13


@pytest.mark.parametrize("n", [64, 300])
def test_qr_error_holds_in_extended_precision(n):
    """‖A − QR‖ with the product taken in 80-bit arithmetic."""
    matrix = normal(n, n, seed=n)
    q, r = torch.linalg.qr(matrix)
    wide = [x.numpy().astype(np.longdouble) for x in (matrix, q, r)]
    residual = float(np.linalg.norm((wide[0] - wide[1] @ wide[2]).astype(float)))
    bound = float(factorisation_error(torch.linalg.matrix_norm(matrix), n))
    assert residual <= bound
    assert bound < 1e-9


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_storage_error_bounds_what_rounding_did(dtype):
    matrix = torch.softmax(random_head_logits(50, 4, 3, seed=0, scale=0.2), -1)
    rounded = matrix.to(dtype)
    moved = torch.linalg.matrix_norm(matrix - rounded.double())
    bound = storage_error(rounded)
    assert bool((moved <= bound).all())
    assert bool((bound < 30 * moved).all())


@pytest.mark.parametrize("eta", [1e-9, 1e-3, 0.5, 50.0])
@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0])
def test_moving_logits_moves_weights_by_less_than_stated(eta, scale):
    logits = random_head_logits(40, 4, 2, seed=1, scale=scale)
    bound = doubt(LogWeights(logits, error=eta))
    sign = torch.sign(normal(*logits.shape, seed=9))
    moved = torch.softmax(logits + eta * sign, -1)
    assert bool((torch.linalg.matrix_norm(moved - torch.softmax(logits, -1)) <= bound).all())


@pytest.mark.parametrize("columns", [64, 1024, 16384])
def test_rows_of_equal_weights_round_the_same_way_each_time(columns):
    """Their sum was off by 4 times what was stated for 4,096 columns, by 18 times for 65,536."""
    near = math.log(0.9 / columns) - 0.01 * np.random.default_rng(0).random(20_000)
    # Behind a one, each of these weights is rounded by nearly half a unit.
    logit = float(near[np.abs(np.exp(near) * 2.0**52 % 1 - 0.49).argmin()])
    row = torch.full((1, 1, columns), logit, dtype=torch.float64)
    row[..., 0] = 0
    first, *_, last = torch.softmax(row, -1).flatten().tolist()
    with mpmath.workdps(50):
        weight = mpmath.exp(logit)
        total = 1 + (columns - 1) * weight
        off = mpmath.hypot(first - 1 / total, (last - weight / total) * math.sqrt(columns - 1))
    for stated in (LogWeights(row), LogWeights(row, error=1e-300)):
        assert off <= float(doubt(stated)) + scaling(stated)


def test_nearly_one_hot_rows_hardly_feel_their_logits():
    logits = LogWeights(1e3 * torch.eye(8, dtype=torch.float64), error=1e-3)
    assert float(doubt(flat_batch(logits))) < 1e-13


def test_a_large_error_of_the_logits_is_felt_by_rows_one_hot_to_rounding():
    """One minus the largest weight is e^-50, which rounds away; an error of 40 undoes it."""
    logits = torch.zeros(20, 20, dtype=torch.float64)
    logits[:, 3] = 50.0
    found = count(LogWeights(logits, error=40.0)).item()
    assert found.low <= 1
    assert found.high == 20
    assert count(LogWeights(logits, error=1e-3)).item().exact
    far = count(LogWeights(100 * logits, error=40.0)).item()
    assert (far.low, far.high) == (1, 1)


def test_weyl_for_the_bound_itself():
    matrix = normal(30, 30, seed=0)
    nudge = 1e-6 * normal(30, 30, seed=1)
    moved = (singular_values(matrix + nudge) - singular_values(matrix)).abs().max()
    assert float(moved) <= float(torch.linalg.matrix_norm(nudge))


@pytest.mark.parametrize("n", [2, 3, 11, 18, 23, 51])
def test_the_margin_for_neglected_couplings_is_four(n):
    """1 + c·N has the values 1 + c·cos(πk/(n + 1)); LAPACK neglects c below 200 u."""
    u = 2.0**-53
    wanted = torch.cos(math.pi * torch.arange(1, n + 1, dtype=torch.float64) / (n + 1))
    for coupling in (90.0, 150.0, 190.0, 198.0):
        near = torch.eye(n, dtype=torch.float64)
        near.diagonal(1).fill_(coupling * u)
        off = (torch.linalg.svdvals(near) - 1) / u - coupling * wanted
        assert float(off.abs().max()) <= NEGLECTED / 4 + roundings(n)
