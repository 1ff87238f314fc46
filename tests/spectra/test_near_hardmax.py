import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.spectra import LogWeights, near_hardmax
from headwise.spectra.blocks import find_blocks
from headwise.spectra.blocks import singular_values as block_values
from headwise.spectra.dominant import dominant_entries, dominant_weights
from headwise.spectra.near_hardmax import (
    count_by_arrays,
    count_near_hardmax,
    spectrum_near_hardmax,
)
from oracles import causal, normal, random_head_logits, singular_values, svd_rank

EPSILON = 1e-8


def dense(entries):
    n, m = entries.shape
    whole = np.zeros((entries.batch, n, m))
    matrix = entries.matrix_of_entry
    whole[matrix, entries.rows - matrix * n, entries.columns - matrix * m] = entries.values
    return whole


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 63, 64, 65, 130, 257])
def test_the_pass_keeps_exactly_what_matters(m):
    logits = 90 * normal(3, 5, m, seed=m)
    kept = dense(dominant_weights(LogWeights(logits), EPSILON))
    truth = torch.softmax(logits, -1).numpy()
    assert np.linalg.norm(kept - truth, axis=(1, 2)).max() <= 1e-4 * EPSILON
    assert ((kept > 0) == (truth >= truth.max(-1, keepdims=True) * 1e-12 / np.sqrt(5 * m))).all()


@pytest.mark.parametrize("m", [1, 8, 65, 130])
def test_the_pass_over_matrices_sees_both_signs(m):
    matrix = normal(2, 6, m, seed=m) * (normal(2, 6, m, seed=m + 1).abs() > 2)
    matrix[0, 0, 0] = -3.0
    assert np.array_equal(dense(dominant_entries(matrix, EPSILON)), matrix.numpy())


def test_a_dense_matrix_is_left_alone():
    both = torch.stack((normal(60, 60, seed=0), torch.eye(60).double()))
    entries = dominant_entries(both, EPSILON)
    assert entries.sparse.tolist() == [False, True]
    assert set(entries.matrix_of_entry.tolist()) == {1}


def test_blocks_are_the_components():
    rows, columns = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1, 1, 5, 6, 7])
    blocks = find_blocks(rows, columns, np.arange(1.0, 7.0))
    sizes = sorted(zip(blocks.height.tolist(), blocks.width.tolist(), strict=True))
    assert sizes == [(1, 1), (1, 2), (2, 2)]


@given(st.integers(1, 12), st.integers(1, 12), st.floats(0.02, 0.5), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_block_spectra_are_the_spectrum(n, m, density, seed):
    matrix = normal(n, m, seed=seed)
    keep = torch.rand(n, m, generator=torch.Generator().manual_seed(seed)) < density
    matrix = matrix * keep
    rows, columns = torch.nonzero(matrix, as_tuple=True)
    truth = singular_values(matrix)
    if len(rows) == 0:
        return
    blocks = find_blocks(rows.numpy(), columns.numpy(), matrix[rows, columns].numpy())
    found = np.concatenate([values.ravel() for _, values in block_values(blocks)])
    found = np.sort(found)[::-1][: min(n, m)]
    found = np.pad(found, (0, min(n, m) - len(found)))
    assert np.allclose(found, truth.numpy(), atol=1e-13)


@pytest.mark.parametrize("mask", [lambda x: x, causal])
@pytest.mark.parametrize("head_dim", [2, 8, 64])
def test_the_whole_spectrum(head_dim, mask):
    logits = mask(random_head_logits(120, head_dim, 5, seed=head_dim))
    entries = dominant_weights(LogWeights(logits), 1e-9)
    found = torch.from_numpy(spectrum_near_hardmax(entries))
    truth = singular_values(torch.softmax(logits, -1))
    assert float((found - truth).abs().max()) < 1e-12


def ladder(n, small):
    """Anchors, rows tied to them, and loose entries of a chosen size: the window is met."""
    matrix = torch.zeros(2 * n, 2 * n, dtype=torch.float64)
    for i in range(n):
        matrix[i, i] = 1.0
        matrix[n + i, i] = 1.0
        matrix[n + i, (i + 1) % n] = 1e-5
        matrix[n + i, n + i] = small
    return matrix


@pytest.mark.parametrize("factor", [0.9, 1.0 + 1e-2, 1.3, 1.41, 1.415, 1.42, 2.0])
def test_values_in_the_window_are_settled_exactly(factor):
    """Each loose entry b beside a one-row anchor gives σ = b/√2 up to the weak ties."""
    matrix = ladder(40, factor * EPSILON)
    entries = dominant_entries(matrix, EPSILON)
    low, high, delta = count_near_hardmax(entries, np.array([EPSILON]))
    assert low.tolist() == high.tolist() == [int(svd_rank(matrix))]
    assert float(delta[0]) <= 1e-3 * EPSILON


def test_the_window_matters(monkeypatch):
    """Without the ties to anchored columns a value below ε would be counted."""
    monkeypatch.setattr(near_hardmax, "_slack", lambda rest, *_: np.zeros(rest.shape[0]))
    matrix = ladder(40, 1.2 * EPSILON)
    low, high, _ = count_by_arrays(dominant_entries(matrix, EPSILON), np.array([EPSILON]))
    assert low.tolist() == high.tolist() == [80]
    assert int(svd_rank(matrix)) == 40


def test_large_blocks_are_handed_on():
    chain = torch.eye(64).double() + torch.diag(torch.full((63,), 0.5), 1).double()
    entries = dominant_entries(chain, EPSILON)
    _, _, delta = count_near_hardmax(entries, np.array([EPSILON]))
    assert entries.sparse.all()
    assert np.isinf(delta).all()


def test_weak_columns_are_no_anchors():
    matrix = torch.zeros(40, 40, dtype=torch.float64)
    matrix[0, 0] = matrix[1, 0] = 0.8e-8
    matrix[2, 1] = 0.9e-8
    entries = dominant_entries(matrix, EPSILON)
    low, high, _ = count_near_hardmax(entries, np.array([EPSILON]))
    assert low.tolist() == high.tolist() == [1]


@pytest.mark.parametrize("counter", [count_near_hardmax, count_by_arrays])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_strong_block_behind_a_weak_anchor_is_not_miscounted(side, counter):
    """Solving with M^{1/2} once moved values near ε by a hundred times δ, unnoticed."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        ties = rng.standard_normal(4) * 10.0 ** -(rng.uniform(0, 5, 4) * (rng.random(4) < 0.6))
        across = np.linalg.qr(np.column_stack([ties, rng.standard_normal((4, 3))]))[0]
        # The first value is held down by the anchor; the second is the only one near 1e-8.
        values = np.array([1e4, 1e-8 * (1 + 0.02 * side), 1e4, 1e4])
        matrix = np.eye(40)
        matrix[:5] = matrix[:, :5] = 0
        matrix[0, 0], matrix[1:5, 0] = 10.0**-4.9, ties
        matrix[1:5, 1:5] = (across * values) @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
        entries = dominant_entries(torch.from_numpy(matrix)[None], EPSILON)
        low, high, delta = counter(entries, np.array([EPSILON]))
        assert delta[0] == np.inf or low[0] <= (40 if side > 0 else 39) <= high[0]
