"""The regression tasks of the advice: what is hidden, what can be known, and what is measured."""

import pytest
import torch
from benchmarks.advice.regression import MaskedPatches, NextState, NextWindow
from benchmarks.advice.tasks import BENCHES

#: A stream of random numbers.
SEED = torch.Generator


def drawn(task, count=5, seed=0):
    return task.batch(task.noise(count, SEED().manual_seed(seed)), None)


@pytest.fixture(scope="module")
def masked():
    return BENCHES["digits-masked"].load(None, "cpu").task


def test_half_of_the_patches_are_hidden_and_zero(masked):
    (patches, hidden), (whole, told) = drawn(masked)
    assert hidden.sum(-1).tolist() == [8] * 5
    assert torch.equal(hidden, told)
    assert not patches[hidden.bool()].any()
    assert torch.equal(patches[~hidden.bool()], whole[~hidden.bool()])


def test_only_hidden_patches_count_in_the_error(masked):
    _, (whole, hidden) = drawn(masked)
    wrong = whole + 10 * (1 - hidden.unsqueeze(-1))
    assert float(masked.loss(wrong, whole, hidden)) == 0.0
    off = whole + hidden.unsqueeze(-1)  # one in each of four numbers
    assert float(masked.loss(off, whole, hidden)) == pytest.approx(4.0)


def test_tests_use_images_that_are_not_trained_on(masked):
    (_, hidden), (whole, _) = masked.examine(7, SEED().manual_seed(0))
    assert torch.equal(whole, masked.held_out[:7])
    assert hidden.sum(-1).tolist() == [8] * 7


def test_the_mean_patch_has_the_trivial_error(masked):
    _, (whole, hidden) = masked.examine(10**6, SEED().manual_seed(0))
    mean = masked.trained.mean(0).expand_as(whole)
    assert float(masked.loss(mean, whole, hidden)) == pytest.approx(masked.trivial(), rel=0.03)


def test_every_step_is_the_same_rotation():
    """Three steps determine it: least squares on them predicts every other state."""
    task = NextState(dimensions=3, states=8)
    (states,), (following,) = drawn(task, seed=3)
    states, following = states.double(), following.double()
    found = torch.linalg.lstsq(states[:, :5], following[:, :5]).solution
    assert torch.allclose(states @ found, following, atol=1e-4)
    assert torch.allclose(found @ found.mT, torch.eye(3, dtype=torch.float64), atol=1e-4)
    assert torch.equal(states[:, 1:], following[:, :-1])


def test_zero_has_the_trivial_error():
    task = NextState(dimensions=3, states=4)
    (states,), (following,) = drawn(task, count=20_000)
    assert float(task.score(0 * states, following)) == pytest.approx(task.trivial(), rel=0.03)


def test_noise_is_added_to_whole_images():
    task = BENCHES["digits-denoised"].load(None, "cpu").task
    (noisy,), (whole,) = drawn(task, count=400)
    assert float((noisy - whole).std()) == pytest.approx(1.0, rel=0.02)
    known = {tuple(image.flatten().tolist()) for image in task.trained}
    assert {tuple(image.flatten().tolist()) for image in whole} <= known


def test_windows_follow_one_another_and_four_numbers_tell_two_sines():
    """A sum of two sines obeys x_{t+4} = a(x_{t+3} + x_{t+1}) + b x_{t+2} - x_t."""
    task = NextWindow(windows=6)
    (windows,), (following,) = drawn(task, count=20, seed=1)
    assert torch.equal(windows[:, 1:], following[:, :-1])
    x = windows.flatten(1).double()
    for line in x:
        known = torch.stack([line[3:-1] + line[1:-3], line[2:-2]], -1)
        told = line[4:] + line[:-4]
        solved = torch.linalg.lstsq(known, told[:, None]).solution
        assert float((known @ solved - told[:, None]).abs().max()) < 1e-3


def test_least_squares_on_one_token_is_the_trivial_error():
    for name in ("digits-denoised", "next-window"):
        task = BENCHES[name].load(None, "cpu").task
        _, (wanted,) = task.examine(500, SEED().manual_seed(5))
        zero = float(wanted.square().sum(-1).mean())
        assert 0 < task.trivial() < zero


def test_a_masked_task_of_other_images_needs_no_digits():
    images = torch.arange(24.0).view(3, 4, 2)
    task = MaskedPatches(images, images)
    assert drawn(task, count=2).inputs[1].sum(-1).tolist() == [2, 2]
