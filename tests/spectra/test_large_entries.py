"""What a device sends in one array: read as lists, and counted without making lists of it.

Here it is written by plain loops on the CPU, rows in any order, as programs of a GPU would.
"""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise import native
from headwise.randomness import stream
from headwise.spectra import LogWeights, counting, dominant, near_hardmax, on_device
from headwise.spectra.counting import count_at
from headwise.spectra.dominant import dominant_entries
from headwise.spectra.large_entries import GROUP, Packed, packed_size
from headwise.spectra.near_hardmax import count_by_arrays, count_near_hardmax
from oracles import EPSILON, causal, normal, random_head_logits, svd_rank
from spectra.test_counting import MATRICES
from spectra.test_machine_code import stray_logits, tied_matrix


def groups_hit(values, limit, softmax):
    """Count groups of columns with a large entry in each matrix, by reading every entry."""
    x = values.double().numpy() if softmax else values.double().abs().numpy()
    least = x.max(-1, keepdims=True) - limit if softmax else limit
    spare = -x.shape[-1] % GROUP
    hit = np.pad(x >= least, ((0, 0), (0, 0), (0, spare)))
    return hit.reshape(*x.shape[:2], -1, GROUP).any(-1).sum((1, 2))


def sent(values, limit, softmax, seed=0, spare=3):
    """What a device would send: the entries found by the torch operations, packed by hand."""
    scan = on_device.scan_log_weights if softmax else on_device.scan_matrices
    found = scan(values, limit)
    found, top = found if softmax else (found, values.double().abs().amax(-1).flatten())
    batch, n, m = values.shape
    rows = [np.flatnonzero(found.rows == r) for r in range(batch * n)]
    lists = [0 if softmax and len(r) == 1 else len(r) for r in rows]
    wanted = np.add.reduceat(lists, n * np.arange(batch))
    room = int(wanted.max()) + spare
    numbers = np.full(packed_size((batch, n, m), room), -7, dtype=np.int64)
    parts = np.split(numbers, np.cumsum([batch, batch, batch * n, batch * n, batch * room]))
    parts[0][:], parts[1][:] = groups_hit(values, limit, softmax), wanted
    parts[3][:] = top.numpy().view(np.int64)
    used = np.zeros(batch, dtype=np.int64)
    order = torch.randperm(batch * n, generator=stream(seed, "places")).tolist()
    for r in order:
        entries, matrix = rows[r], r // n
        columns = found.columns[entries] - matrix * m
        place = used[matrix]
        if softmax and len(entries) == 1:
            place = columns[0]
        else:
            at = slice(matrix * room + place, matrix * room + place + len(entries))
            parts[4][at], parts[5][at] = columns, found.values[entries].view(np.int64)
            used[matrix] += len(entries)
        parts[2][r] = (int(place) << 32) + len(entries)
    return Packed(numbers, (batch, n, m), room, softmax), found


def unpacks(values, limit, softmax):
    packed, found = sent(values, limit, softmax)
    ours = packed.unpacked()
    for name in ("rows", "columns", "values", "sparse"):
        assert np.array_equal(getattr(ours, name), getattr(found, name)), name
    assert packed.room_wanted == packed.room - 3
    assert not packed.is_bad
    return len(found.rows)


SHAPES = [(1, 1), (3, 1), (1, 7), (17, 17), (5, 61), (61, 5), (40, 130)]


@pytest.mark.parametrize("shape", SHAPES)
def test_lists_come_back_as_they_were_found(shape):
    logits = stray_logits(4, *shape, seed=shape[1])
    logits[2] *= 1e-6
    assert unpacks(logits, 60.0, softmax=True) >= 2 * shape[0]
    matrix = torch.softmax(logits, -1) * normal(*logits.shape, seed=1).sign()
    assert unpacks(matrix, 1e-14, softmax=False) >= 2 * shape[0]
    assert unpacks(0 * matrix, 1e-14, softmax=False) == 0


def with_packing(patch):
    """Let every scan of log-weights and matrices go through what a device would send."""
    patch.setattr(dominant, "_weights", lambda values, reach: sent(values, reach, True)[0])
    exact = dominant.dominant_entries

    def packed_entries(matrix, epsilon):
        entries = exact(matrix, epsilon)
        n, m = entries.shape
        smallest = dominant.DROPPED_SHARE * epsilon / np.sqrt(n * m)
        return replace(entries, kept=sent(matrix.reshape(-1, n, m), smallest, False)[0])

    patch.setattr(counting, "dominant_entries", packed_entries)


def same_counts(source, epsilon=EPSILON):
    """Counts with and without packing: the same to the bit; how many were compared."""
    plain = count_at(source, epsilon)
    with pytest.MonkeyPatch.context() as patch:
        with_packing(patch)
        packed = count_at(source, epsilon)
        patch.setattr(native, "library", lambda source: None)
        arrays = count_at(source, epsilon)
    for ours in (packed, arrays):
        assert torch.equal(ours.low, plain.low)
        assert torch.equal(ours.high, plain.high)
        assert ours.methods == plain.methods
    if shutil.which("cc") or shutil.which("gcc"):
        assert torch.equal(packed.delta, plain.delta)
    torch.testing.assert_close(arrays.delta, plain.delta, rtol=1e-12, atol=0)
    return plain


@pytest.mark.parametrize("mask", [lambda x: x, causal])
@pytest.mark.parametrize("scale", [1.0, 0.4, 0.1])
def test_counts_of_attention(scale, mask):
    for head_dim in (2, 8, 64):
        logits = mask(random_head_logits(60, head_dim, 6, seed=head_dim, scale=scale, width=96))
        found = same_counts(LogWeights(logits))
        assert found.values.tolist() == svd_rank(torch.softmax(logits, -1)).tolist()


@pytest.mark.parametrize("error", [1e-14, 1e-3, 5.0])
def test_counts_of_log_weights_in_doubt(error):
    logits = random_head_logits(40, 16, 4, seed=4)
    assert len(same_counts(LogWeights(logits, error=error))) == 4
    assert len(same_counts(LogWeights(logits.float()))) == 4


@pytest.mark.parametrize("kind", MATRICES)
def test_counts_of_matrices_of_every_kind(kind):
    for n in (1, 2, 17, 31):
        assert len(same_counts(kind(5, n, n))) == 5


def test_degenerate_batches():
    eye = torch.eye(40).double()
    for matrix in (0 * eye, eye, eye[[0] * 40], eye[:, [0] * 40], 1e-9 * eye, eye[:20]):
        same_counts(matrix[None])
    for logits in (0 * eye, 1e4 * eye, causal(0 * eye), causal(1e3 * eye), -1e4 * eye):
        same_counts(LogWeights(logits[None]))
    mixed = torch.stack((0 * eye, 1e4 * eye, normal(40, 40, seed=0)))
    assert set(same_counts(LogWeights(mixed)).methods) > {"near-hardmax"}


# ε above one thousandth makes every row of one entry too weak to anchor its column alone.
@given(
    st.integers(1, 14), st.integers(1, 14), st.integers(0, 999), st.sampled_from([1e-8, 2e-3, 0.3])
)
@settings(max_examples=80, deadline=None)
def test_any_log_weights(n, m, seed, epsilon):
    logits = stray_logits(2, n, m, seed)
    entries = dominant.dominant_weights(LogWeights(logits), epsilon)
    reach = np.log(np.sqrt(n * m) / (dominant.DROPPED_SHARE * epsilon))
    packed = replace(entries, kept=sent(logits, reach, True, seed)[0])
    at = np.full(2, epsilon)
    for ours, wanted in zip(
        count_near_hardmax(packed, at), count_near_hardmax(entries, at), strict=True
    ):
        assert np.array_equal(ours[entries.sparse], wanted[entries.sparse])


def test_ties_to_anchors_and_a_comparison_that_can_fail(monkeypatch):
    monkeypatch.setattr(near_hardmax, "LARGEST_SHARE", np.inf)
    matrices = torch.stack([tied_matrix(25, seed) for seed in range(30)])
    entries, epsilon = dominant_entries(matrices, EPSILON), np.full(30, EPSILON)
    smallest = dominant.DROPPED_SHARE * EPSILON / 50
    packed, _ = sent(matrices, smallest, False)
    ours = count_near_hardmax(replace(entries, kept=packed), epsilon)
    wanted = count_by_arrays(entries, epsilon)
    light = np.isfinite(wanted[2])
    assert light.sum() >= 10
    assert np.array_equal(np.array(ours[:2])[:, light], np.array(wanted[:2])[:, light])
    packed.numbers[-packed.room * 15 :] = np.array([0.7]).view(np.int64)
    spoilt = count_near_hardmax(replace(entries, kept=packed), epsilon)
    assert not np.array_equal(spoilt[0][light], wanted[0][light])
