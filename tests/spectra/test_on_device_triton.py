"""The kernels of the pass against the torch operations they stand in for: the same, to the bit.

They run on a GPU where there is one, and with TRITON_INTERPRET=1 on any machine with Triton.
"""

import math
import os

import numpy as np
import pytest
import torch

from headwise.errors import BadInputError
from headwise.spectra import on_device
from headwise.spectra.dominant import DominantEntries
from headwise.spectra.near_hardmax import count_by_arrays, count_near_hardmax
from oracles import normal
from spectra.test_machine_code import stray_logits

pytest.importorskip("triton")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        not (INTERPRETED or torch.cuda.is_available()),
        reason="needs a CUDA device, or TRITON_INTERPRET=1",
    ),
]
DEVICE = "cpu" if INTERPRETED else "cuda"
REACH, SMALLEST = 60.0, 1e-14


def kernels():
    from headwise.spectra import on_device_triton

    return on_device_triton


def same(ours, theirs):
    for name in ("rows", "columns", "values", "sparse"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert mine.dtype == other.dtype
        assert np.array_equal(mine, other)
    return len(ours.rows)


def same_log_weights(logits, reach=REACH):
    logits = logits.to(DEVICE)
    ours = kernels().scan_log_weights(logits, reach)
    theirs, wanted = on_device.scan_log_weights(logits, reach)
    assert np.array_equal(ours.top, wanted.cpu().numpy())
    return same(ours.unpacked(), theirs)


def same_matrices(matrix, smallest=SMALLEST):
    matrix = matrix.to(DEVICE)
    ours = kernels().scan_matrices(matrix, smallest).unpacked()
    return same(ours, on_device.scan_matrices(matrix, smallest))


def signed(logits):
    return torch.softmax(logits, -1) * normal(*logits.shape, seed=1).sign()


# One column, one row, widths beside the multiples of eight and of what is read at once.
SHAPES = [(1, 1), (3, 1), (1, 7), (4, 8), (5, 61), (3, 128), (2, 129), (2, 520), (2, 2048),
          (2, 2049), (2, 4100), (1, 6200)]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_ties_masks_and_both_signs(shape):
    logits = stray_logits(2, *shape, seed=shape[1])
    assert same_log_weights(logits) >= 2 * shape[0]
    same_matrices(signed(logits))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_narrow_numbers(dtype):
    logits = stray_logits(2, 3, 61, seed=3)
    assert same_log_weights(logits.to(dtype)) >= 6
    assert same_matrices(signed(logits).to(dtype)) >= 6


def test_matrices_that_are_not_sparse_give_nothing():
    soft = 1e-3 * normal(2, 5, 130, seed=0)
    mixed = torch.stack((soft[0], stray_logits(1, 5, 130, seed=1)[0], soft[1]))
    assert same_log_weights(mixed) >= 5
    assert same_log_weights(soft) == 0
    assert same_matrices(torch.stack((soft[0], torch.eye(130).double()[:5]))) == 5
    assert same_matrices(torch.zeros(2, 3, 20).double()) == 0


@pytest.mark.parametrize("spare", [0, 10])
def test_more_entries_than_there_is_room_for(spare, monkeypatch):
    """Every row keeps three: the first room is too small, and a second is asked for."""
    monkeypatch.setattr(kernels(), "SPARE_ROOM", spare)
    logits = torch.full((3, 12, 130), -1e3, dtype=torch.float64)
    logits[:, :, [3, 64, 129]] = 0.0
    logits[1] = stray_logits(1, 12, 130, seed=8)[0]
    assert same_log_weights(logits) >= 2 * 36
    assert same_matrices(torch.softmax(logits, -1)) >= 2 * 36
    assert kernels().scan_log_weights(logits.to(DEVICE), REACH).room >= 36


def test_counts_from_the_kernels_are_those_of_the_cpu():
    logits = stray_logits(3, 8, 61, seed=9)
    logits[1] *= 1e-3
    kept = kernels().scan_log_weights(logits.to(DEVICE), REACH)
    entries = DominantEntries(3, (8, 61), kept, 1e-12, np.zeros(3))
    epsilon = np.full(3, 1e-8)
    ours, theirs = count_near_hardmax(entries, epsilon), count_by_arrays(entries, epsilon)
    assert np.array_equal(ours[:2], theirs[:2])
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-12)


def test_the_reach_is_not_rounded():
    """Differences beside the reach, in the last place of float64."""
    reach = 47.123456789012345
    steps = [reach, math.nextafter(reach, 0), math.nextafter(reach, 99), reach * (1 - 1e-9)]
    logits = torch.tensor([[[0.0, -99.0, *(-s for s in steps)]]], dtype=torch.float64)
    assert same_log_weights(logits, reach) == 4
    assert same_log_weights(logits + 1e9, reach) >= 1
    sizes = torch.tensor([[steps]], dtype=torch.float64)
    assert same_matrices(sizes, reach) == 2


def test_any_layout():
    logits = stray_logits(2, 4, 24, seed=5)
    for view in (logits.mT[:, :3], logits[:, ::2], logits[..., 3:20], logits[:, :, ::2]):
        if bool((view.amax(-1) > -math.inf).all()):
            assert same_log_weights(view) >= view.shape[0] * view.shape[1]
        assert same_matrices(signed(view)) >= 1
    assert same_log_weights(stray_logits(1, 1, 24, seed=6).expand(3, 2, 24)) >= 6


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # ∞ − ∞
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_bad_numbers_are_refused(bad):
    logits = stray_logits(3, 2, 40, seed=7)
    logits[1, 1, 39] = bad
    if bad == -math.inf:
        same_log_weights(logits)
        logits[1, 1] = bad
    for scan in (kernels(), on_device):
        with pytest.raises(BadInputError, match=r"in 1 row|1 row .* mask everything"):
            scan.scan_log_weights(logits.to(DEVICE), REACH)
        matrix = torch.eye(8).double().repeat(2, 1, 1)
        matrix[1, 3, 3] = bad
        with pytest.raises(BadInputError, match="the matrix has NaN or infinity in 1 row"):
            scan.scan_matrices(matrix.to(DEVICE), SMALLEST)
