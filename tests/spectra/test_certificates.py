"""Certified counts against integer arithmetic, on matrices that were made to break them."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch
from benchmarks.attack import matrices
from benchmarks.attack.certificates import attack, is_wrong, methods, target
from benchmarks.attack.oracle import exact_count, exact_softmax_count

from headwise.spectra import LogWeights, Relative, count, dense, measure, spectrum
from headwise.spectra.dense import Thresholds
from headwise.spectra.inertia import count_by_inertia
from headwise.spectra.ranks import Spectrum, svd_spectrum
from headwise.spectra.sources import DEVICE_FACTOR, decomposition_error
from headwise.threads import one_thread
from oracles import planted

METHODS = ("cheapest", "dense", "svd", "inertia")


def check(matrix, epsilon, method, truth=None):
    """The exact count lies in the interval, and the interval rests on a finite δ."""
    found = count(torch.from_numpy(matrix), epsilon, method=method)
    truth = exact_count(matrix, epsilon) if truth is None else truth
    low, high, delta = int(found.low), int(found.high), float(found.delta)
    assert not is_wrong(low, high, delta, truth, min(matrix.shape)), (low, high, delta, truth)
    return found


@pytest.mark.parametrize("n", [16, 23, 37, 50])
def test_a_singular_value_exactly_at_the_tolerance(n):
    """One-hot rows have σ = 1 exactly, so that the factorisation at ε = 1 has a zero pivot."""
    for seed in range(8):
        family = matrices.saturated if seed % 2 else matrices.hardmax
        matrix = family(np.random.default_rng(seed), n)
        for epsilon in (1.0, math.sqrt(2)):
            truth = exact_count(matrix, epsilon)
            for method in METHODS:
                found = check(matrix, epsilon, method, truth)
                assert float(found.delta) < 0.01 * epsilon


@pytest.mark.parametrize("seed", [8110024584])
def test_a_coupling_that_the_decomposition_neglects_is_part_of_delta(seed):
    """Three σ lie 1e-16 below √2; in a batch, LAPACK moves one of them up by 98 units of u."""
    one = target(seed, largest=50)
    values = one.approximate_values()
    truth = one.truth(math.sqrt(2), values)
    assert truth == 10
    for name in ("svd", "measure", "in a batch"):
        found = methods()[name](one.source("cpu"), math.sqrt(2))
        assert int(found.low) <= truth <= int(found.high), name
        assert float(found.delta) < 1e-10


@pytest.mark.parametrize("epsilon", [1e-22, 1e-25, 1e-30, 1e-39])
def test_kahan_matrices_at_tiny_tolerances(epsilon):
    for angle in (0.3, 0.6, 1.2):
        graded = math.sin(angle) ** np.arange(77)
        triangle = np.eye(77) - math.cos(angle) * np.triu(np.ones((77, 77)), 1)
        for scale in (1.0, 1e-20):
            matrix = scale * graded[:, None] * triangle
            truth = exact_count(matrix, epsilon)
            for method in METHODS:
                found = check(matrix, epsilon, method, truth)
                assert float(found.delta) >= 2.0**-53 * np.linalg.norm(matrix)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 1.0])
@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("method", METHODS)
def test_singular_values_next_to_the_tolerance_are_counted_correctly(epsilon, gap, method):
    values = epsilon * torch.tensor([[1e3, 3.0, 1 + gap, 1 - gap, 0.3, 1e-3]], dtype=torch.float64)
    found = check(planted(values, 20, 31, 0)[0].numpy(), epsilon, method)
    # Planted values are this close to those meant; nothing else may blur them.
    assert bool(found.exact) == (gap * epsilon > float(found.delta))


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("method", METHODS)
def test_numbers_at_both_ends_of_float64(scale, method):
    """A matrix and its tolerance, scaled together, have the same rank."""
    matrix = np.diag([4.0, 2.0, 1.0, 0.5]) * scale
    matrix[0, 3] = scale
    found = check(matrix, 1.5 * scale, method)
    assert bool(found.exact)
    assert float(found.delta) > 0
    # Out of reach of any relation between the two, an interval is all there is.
    check(matrix, 1e-8, method)
    check(matrix, 1e-323, method)


@pytest.mark.parametrize(("n", "m"), [(16, 1024), (40, 40), (60, 17)])
@pytest.mark.parametrize("offset", [-1e-3, -3e-4, -1e-4, -3e-5, 0.0, 1e-4])
def test_weights_just_below_those_kept(n, m, offset):
    """Together, weights too small to keep take up to √m times as much from the largest one."""
    logits = np.full((n, m), -math.log(math.sqrt(n * m) / 1e-4) - 0.011)
    logits[np.arange(n), np.arange(n) % m] = 0
    truth = exact_softmax_count(logits, 1 + offset)
    for method in METHODS:
        found = count(LogWeights(torch.from_numpy(logits)), 1 + offset, method=method)
        assert int(found.low) <= truth <= int(found.high), method


def test_long_columns_whose_sums_round_one_way():
    """Two proportional columns, 8,000 equal rows: rank one, whatever the sums of squares lose."""
    matrix = np.zeros((8000, 64))
    for first in (0.1, 0.3, 0.7, 0.9):
        matrix[:, 0], matrix[:, 1] = first, 0.5 * first
        for epsilon in 10.0 ** np.arange(-13, -9, 0.25):
            found = count(torch.from_numpy(matrix), float(epsilon), method="near-hardmax")
            assert int(found.low) <= 1 <= int(found.high), (first, epsilon)


@pytest.mark.parametrize("n", [16, 64, 500, 1000])
def test_constant_matrices_whose_sums_round_one_way(n):
    """σ₁ = n·c is known exactly; a decomposition loses far more than √n roundings."""
    for entry in (0.1, 0.3, 0.7, 0.9):
        found = spectrum(torch.full((n, n), entry, dtype=torch.float64))
        lost = abs(Fraction(float(found.largest)) - n * Fraction(entry))
        assert lost <= float(found.error)
        assert float(found.values[1]) <= float(found.error)


def test_relative_tolerances_know_that_the_largest_is_rounded_too():
    values = torch.tensor([[1.0, 0.5 * (1 + 2e-15), 0.1]], dtype=torch.float64)
    matrix = planted(values, 9, 9, 3)[0]
    absolute = measure(matrix, 0.5).rank
    relative = measure(matrix, Relative(0.5)).rank
    assert float(relative.delta) >= 1.4 * float(absolute.delta)


def test_inertia_without_a_certificate_names_another_method():
    assert count_by_inertia(torch.full((3, 3), 1e200, dtype=torch.float64), 1.0) is None
    found = count(torch.full((3, 3), 1e200, dtype=torch.float64), 1.0, method="inertia")
    assert found.methods == ("svd",)


@pytest.mark.parametrize("first", [0, 42, 84])
def test_adversarial_families_are_counted_correctly(first):
    checked = Counter()
    with one_thread():
        seeds = range(first, first + 42)
        wrong = [w for seed in seeds for w in attack(target(seed, 20), "cpu", checked)]
    assert not wrong
    assert all(checked[name] > 0 for name in methods())
    assert checked["exact"] > 0.5 * checked["svd"]


def test_this_attack_notices_a_wrong_certificate(monkeypatch):
    """Without the rounding of its factorisation, inertia claims too much."""
    monkeypatch.setattr("headwise.spectra.inertia.roundings", lambda _: 1e-9)
    seeds = range(84)
    assert any(True for seed in seeds for _ in attack(target(seed, 20), "cpu", Counter()))


def test_decompositions_of_a_gpu_are_trusted_less():
    norm = torch.tensor(3.0, dtype=torch.float64)
    ours = decomposition_error(norm, 40, torch.device("cpu"))
    assert float(decomposition_error(norm, 40, torch.device("cuda"))) >= 100 * float(ours)


def test_what_a_rough_decomposition_leaves_open_is_decomposed_again(monkeypatch):
    """As on a GPU: the first singular values are off by more than LAPACK's bound."""
    values = torch.full((1, 20), 0.3, dtype=torch.float64)
    matrix = planted(values, 20, 20, 0)
    epsilon = torch.tensor([0.3 * (1 + 1e-14)], dtype=torch.float64)
    at = Thresholds(epsilon, torch.zeros_like(epsilon))
    calls = []

    def rough(given):
        calls.append(len(given))
        found = svd_spectrum(given)
        if len(calls) > 1:
            return found
        return Spectrum(found.values + 2e-13, DEVICE_FACTOR * found.error, found.methods)

    monkeypatch.setattr(dense, "svd_spectrum", rough)
    monkeypatch.setattr(dense, "is_host", lambda _: len(calls) > 1)
    (found,) = dense.count_by_svd(matrix, at)
    assert len(calls) == 2
    truth = exact_count(matrix[0].numpy(), float(at.epsilon))
    assert found.low <= truth <= found.high
