"""The machine code against the arrays it stands in for, and both against the decomposition."""

import math
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise import native
from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.spectra import LogWeights, count, dominant, machine_code, near_hardmax, on_device
from headwise.spectra.counting import count_at
from headwise.spectra.dominant import dominant_entries, dominant_weights
from headwise.spectra.near_hardmax import count_by_arrays, count_near_hardmax
from oracles import EPSILON, causal, normal, random_head_logits, svd_rank
from spectra.test_counting import MATRICES, check_against_svd, near_one_hot, one_hot
from spectra.test_near_hardmax import ladder


@pytest.fixture(autouse=True)
def _compiler():
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("needs a C compiler")
    for name in ("dominant.c", "near_hardmax.c"):
        assert native.library(machine_code.FOLDER / name) is not None


def by_arrays(function, *arguments):
    """The same call on a machine without compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda source: None)
        return function(*arguments)


def same_entries(ours, theirs):
    assert ours.sparse.tolist() == theirs.sparse.tolist()
    assert np.array_equal(ours.rows, theirs.rows)
    assert np.array_equal(ours.columns, theirs.columns)
    # Two exponentials of one number may differ in their last place.
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-15, atol=0)


def same_counts(source, epsilon=EPSILON):
    """Intervals, δ and methods with and without machine code; how many were compared."""
    ours, theirs = count_at(source, epsilon), by_arrays(count_at, source, epsilon)
    assert ours.low.tolist() == theirs.low.tolist()
    assert ours.high.tolist() == theirs.high.tolist()
    assert ours.methods == theirs.methods
    torch.testing.assert_close(ours.delta, theirs.delta, rtol=1e-12, atol=0)
    return len(ours)


def stray_logits(batch, n, m, seed):
    """Rows with one to four large log-weights, ties among them, and -inf here and there."""
    generator = stream(seed, "stray")
    logits = 300 * torch.randn(batch, n, m, generator=generator, dtype=torch.float64)
    ties = torch.rand(batch, n, m, generator=generator) < 1.5 / m
    logits = torch.where(ties, logits.amax(-1, keepdim=True), logits)
    masked = torch.rand(batch, n, m, generator=generator) < 0.2
    masked[..., 0] = False
    return logits.masked_fill(masked, -math.inf)


SHAPES = [(1, 1), (17, 17), (3, 61), (61, 3), (40, 23), (23, 40), (64, 64), (65, 130), (5, 200)]


@pytest.mark.parametrize("shape", SHAPES)
def test_both_scans_find_the_same(shape):
    for seed in range(5):
        logits = LogWeights(stray_logits(6, *shape, seed))
        same_entries(
            dominant_weights(logits, EPSILON), by_arrays(dominant_weights, logits, EPSILON)
        )
        matrix = torch.softmax(logits.values, -1) * normal(6, *shape, seed=seed).sign()
        same_entries(
            dominant_entries(matrix, EPSILON), by_arrays(dominant_entries, matrix, EPSILON)
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_the_scan_for_devices_finds_the_same(shape, monkeypatch):
    """The operations a GPU is given, here on the CPU's tensors."""
    for seed in range(5):
        logits = LogWeights(stray_logits(6, *shape, seed))
        matrix = torch.softmax(logits.values, -1) * normal(6, *shape, seed=seed).sign()
        wanted = by_arrays(lambda a, b: (dominant_weights(a, 1e-8), dominant_entries(b, 1e-8)),
                           logits, matrix)  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(dominant, "_scan_log_weights", on_device.scan_log_weights)
            patch.setattr(dominant, "_scan_matrices", on_device.scan_matrices)
            patch.setattr(machine_code, "_scan", lambda *_: None)
            same_entries(dominant_weights(logits, 1e-8), wanted[0])
            same_entries(dominant_entries(matrix, 1e-8), wanted[1])
            same_entries(by_arrays(dominant_weights, logits, 1e-8), wanted[0])


@pytest.mark.parametrize("scan", ["machine code", "arrays", "device"])
def test_bad_numbers_are_refused_by_every_scan(scan, monkeypatch):
    if scan == "device":
        monkeypatch.setattr(dominant, "_scan_log_weights", on_device.scan_log_weights)
        monkeypatch.setattr(dominant, "_scan_matrices", on_device.scan_matrices)
    if scan != "machine code":
        monkeypatch.setattr(machine_code, "_scan", lambda *_: None)
    for bad, said in ((math.nan, "NaN or infinity in 1 row"), (math.inf, "NaN or infinity")):
        logits = random_head_logits(40, 8, 3, seed=0)
        logits[1, 7, 39] = bad
        with pytest.raises(BadInputError, match=f"the log-weights has {said}"):
            count(LogWeights(logits))
        matrix = torch.eye(40).double().repeat(2, 1, 1)
        matrix[1, 3, 3] = bad
        with pytest.raises(BadInputError, match=f"the matrix has {said}"):
            count(matrix)
    logits[1, 7] = -math.inf
    with pytest.raises(BadInputError, match="1 row of the log-weights mask everything"):
        count(LogWeights(logits))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads):
    """Few large matrices are cut into parts, many small ones are shared out."""
    before = torch.get_num_threads()
    for batch, n in ((1, 700), (3, 301), (40, 90)):
        logits = LogWeights(random_head_logits(n, 32, batch, seed=n))
        wanted = by_arrays(count_at, logits, EPSILON)
        torch.set_num_threads(threads)
        try:
            found = count_at(logits, EPSILON)
        finally:
            torch.set_num_threads(before)
        assert found.low.tolist() == wanted.low.tolist()
        assert found.methods == wanted.methods == ("near-hardmax",) * batch


def test_counts_of_matrices_of_every_kind():
    compared = 0
    for kind in MATRICES:
        for n in (1, 2, 17, 31, 53):
            for seed in range(6):
                compared += same_counts(kind(20, n, seed))
    assert compared == len(MATRICES) * 5 * 6 * 20


@pytest.mark.parametrize("mask", [lambda x: x, causal])
@pytest.mark.parametrize("scale", [1.0, 0.6, 0.3])
def test_counts_of_attention(scale, mask):
    compared = 0
    for seed, head_dim in enumerate([1, 2, 3, 5, 8, 16, 64]):
        for n in (17, 31, 53, 120):
            logits = mask(random_head_logits(n, head_dim, 16, seed=seed, scale=scale, width=96))
            compared += same_counts(LogWeights(logits))
    assert compared == 7 * 4 * 16


def test_counts_of_stray_entries_and_rectangles():
    for n, m in SHAPES:
        for seed in range(20):
            logits = stray_logits(8, n, m, seed)
            same_counts(LogWeights(logits))
            if min(n, m) > 1:
                check_against_svd(LogWeights(logits), torch.softmax(logits, -1))


def test_degenerate_matrices():
    n = 40
    eye = torch.eye(n).double()
    for matrix in (0 * eye, eye, eye[[0] * n], eye[:, [0] * n], 1e-9 * eye, EPSILON * eye, eye[:1]):
        same_counts(matrix[None])
    for logits in (0 * eye, 1e4 * eye, 1e300 * eye, causal(0 * eye), causal(1e3 * eye), -1e4 * eye):
        same_counts(LogWeights(logits[None]))
    repeated = near_one_hot(30, n, 3)[:, :, torch.arange(n) // 2]
    assert same_counts(repeated) == 30


@pytest.mark.parametrize("error", [1e-14, 1e-9, 1e-3, 5.0])
def test_counts_of_log_weights_in_doubt(error):
    logits = random_head_logits(60, 16, 10, seed=4)
    assert same_counts(LogWeights(logits, error=error)) == 10
    assert same_counts(LogWeights(logits.float())) == 10


def tied_matrix(n, seed):
    """Anchors of every strength, rows tied to several of them, loose entries around ε."""
    generator = stream(seed, "tied")

    def between(low, high, *shape):
        return 10 ** (low + (high - low) * torch.rand(*shape, generator=generator).double())

    matrix = torch.zeros(2 * n, 2 * n, dtype=torch.float64)
    matrix[torch.arange(n), torch.arange(n)] = between(-6, 0, n)
    ties = torch.rand(n, n, generator=generator) < 2 / n
    matrix[n:, :n] = between(-9, 0, n, n) * ties
    loose = torch.rand(n, n, generator=generator) < 1.2 / n
    matrix[n:, n:] = between(-9.5, -6.5, n, n) * loose
    return matrix


@pytest.mark.parametrize("n", [10, 25, 60])
def test_ties_to_anchors(n, monkeypatch):
    """Many values lie in the window, and components are settled with their ties."""
    monkeypatch.setattr(near_hardmax, "LARGEST_SHARE", math.inf)
    matrices = torch.stack([tied_matrix(n, seed) for seed in range(60)])
    entries = dominant_entries(matrices, EPSILON)
    epsilon = np.full(60, EPSILON)
    ours, theirs = count_near_hardmax(entries, epsilon), count_by_arrays(entries, epsilon)
    for mine, other in zip(ours[:2], theirs[:2], strict=True):
        light = np.isfinite(ours[2])
        assert np.array_equal(mine[light], other[light])
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-12)
    assert np.isfinite(ours[2]).sum() >= 30
    truth = svd_rank(matrices).numpy()
    light &= ((torch.linalg.svdvals(matrices) - EPSILON).abs().amin(-1) > 1e-14).numpy()
    assert ((ours[0] <= truth) & (truth <= ours[1]))[light].all()


def test_these_comparisons_can_fail(monkeypatch):
    """A wrong constant given to the machine code alone is seen."""
    matrices = torch.stack([tied_matrix(25, seed) for seed in range(60)])
    entries, epsilon = dominant_entries(matrices, EPSILON), np.full(60, EPSILON)
    right = count_by_arrays(entries, epsilon)[0]
    constants = near_hardmax._constants
    monkeypatch.setattr(near_hardmax, "_constants", lambda shape: constants(shape) * [1e-3] + [0])
    assert count_near_hardmax(entries, epsilon)[0].tolist() != right.tolist()


@pytest.mark.parametrize("factor", [0.9, 1.01, 1.2, 1.3, 1.41, 1.415, 1.42, 2.0])
def test_values_in_the_window(factor):
    matrix = ladder(40, factor * EPSILON)
    low, high, _ = count_near_hardmax(dominant_entries(matrix, EPSILON), np.array([EPSILON]))
    assert low.tolist() == high.tolist() == [int(svd_rank(matrix))]


def test_large_blocks_are_counted_by_the_arrays(monkeypatch):
    """A block of 70 columns among 300: too large for the machine code, not for the method."""
    matrix = torch.eye(300).double().repeat(2, 1, 1)
    matrix[0, :70, :70] = normal(70, 70, seed=0) * 10 ** torch.linspace(0, -12, 70).double()
    asked = []

    def listening(entries, *thresholds):
        asked.append(set(entries.matrix_of_entry.tolist()))
        return count_by_arrays(entries, *thresholds)

    monkeypatch.setattr(near_hardmax, "count_by_arrays", listening)
    assert check_against_svd(matrix, matrix, "near-hardmax") == 2
    assert asked == [{0}]


@given(
    st.integers(1, 14), st.integers(1, 14), st.floats(0.02, 0.6), st.integers(0, 999),
    st.sampled_from([1e-8, 1e-3, 0.3]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_any_sparse_matrix(n, m, density, seed, epsilon):
    generator = stream(seed, "any")
    matrix = torch.randn(n, m, generator=generator, dtype=torch.float64)
    matrix = matrix * 10 ** (-10 * torch.rand(n, m, generator=generator, dtype=torch.float64))
    matrix = matrix * (torch.rand(n, m, generator=generator) < density)
    entries = dominant_entries(matrix, epsilon)
    ours = count_near_hardmax(entries, np.array([epsilon]))
    theirs = count_by_arrays(entries, np.array([epsilon]))
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-12)
    if np.isfinite(ours[2][0]):
        assert [x.tolist() for x in ours[:2]] == [x.tolist() for x in theirs[:2]]


def test_one_hot_rows_need_no_blocks():
    hot = one_hot(5, 80, 2)
    found = count(hot)
    assert found.methods == ("near-hardmax",) * 5
    assert found.values.tolist() == svd_rank(hot).tolist()
