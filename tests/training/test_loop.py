"""Curves, protocols, streams, divergence; what the settings refuse."""

import math
import re
import subprocess
import sys

import pytest
import torch

from headwise.data import FarthestNeighbour, Task
from headwise.errors import BadInputError
from headwise.models import NeighbourShape
from headwise.randomness import stream
from headwise.training import (
    CurveRow,
    Ensemble,
    Fixed,
    Fresh,
    Settings,
    curve_steps,
    train,
    train_one,
)
from headwise.training.streams import training_noise
from training.small import PROTOCOLS, TASK, VARIANTS, Poisoned, run, settings


def drawn(protocol, steps, seeds=(0, 1)):
    """The noise of the first steps, (steps, members, …)."""
    told = settings(protocol, seeds=seeds)
    noise = training_noise(TASK, told.members(["x"]), told)
    found = []
    for step in range(steps):
        noise.prepare(step)
        found.append(noise.draw(torch.tensor(step)))
    return torch.stack(found)


def test_fresh_batches_never_come_again():
    sequences = drawn("fresh", 12).flatten(0, 2).flatten(1)
    assert len(sequences.unique(dim=0)) == len(sequences)


def test_a_fixed_set_is_repeated_in_the_same_order():
    noise = drawn("same", 12)
    assert torch.equal(noise[:4], noise[4:8]) and torch.equal(noise[:4], noise[8:])
    assert len(noise[:, 0].flatten(0, 1).flatten(1).unique(dim=0)) == 48


def test_a_shuffled_set_is_the_same_set_in_another_order():
    noise, same = drawn("shuffled", 12), drawn("same", 4)
    assert not torch.equal(noise[:4], noise[4:8])
    for epoch in (noise[:4], noise[4:8], noise[8:]):
        for member in (0, 1):
            found = epoch[:, member].flatten(0, 1).flatten(1)
            wanted = same[:, member].flatten(0, 1).flatten(1)
            assert torch.equal(found.unique(dim=0), wanted.unique(dim=0))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_have_streams_of_their_own(protocol):
    two, other = drawn(protocol, 6), drawn(protocol, 6, seeds=(5, 1))
    assert not torch.equal(two[:, 0], two[:, 1])
    assert torch.equal(two[:, 1], other[:, 1])  # another neighbour changes nothing
    assert not torch.equal(two[:, 0], other[:, 0])


def test_streams_are_named_by_purpose():
    told = settings("same")
    group = Ensemble(VARIANTS, TASK, told)
    test = group.tested.inputs[0]
    train_set = TASK.batch(group.noise.noise, None).inputs[0]
    fresh = TASK.batch(TASK.noise(48, stream(0, "training data")), None).inputs[0]
    clouds = [t.flatten(0, -2) for t in (test[:2], train_set[:2], fresh)]
    together = torch.cat([cloud.unique(dim=0) for cloud in clouds])
    assert len(together.unique(dim=0)) == len(together)


def test_nothing_touches_the_global_generator():
    before = torch.get_rng_state()
    run("shuffled", steps=6)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_learns_the_task():
    """Two points: the farthest is the other one; the error falls far below the start."""
    shape = NeighbourShape(width=4, tokens=2, rank=4, mlp_width=32)
    done = train_one(
        shape.build, FarthestNeighbour(4, 2), Settings(steps=400, batch=64, evaluation=256)
    )
    assert done.rows[0].test_loss > 1
    assert done.last[0].test_loss < 0.1
    model = done.model(0)
    (points,), (labels,) = FarthestNeighbour(4, 2).examine(256, stream(0, "test data"))
    with torch.no_grad():
        error = (model(points) - labels).square().sum(-1).mean()
    assert float(error) == pytest.approx(done.last[0].test_loss, rel=1e-4)


def test_a_fixed_set_is_memorised_and_fresh_data_are_not():
    """On 24 sequences training loss falls below test loss; on fresh data both are alike."""
    gaps = {}
    for name, protocol in (("fixed", Fixed(24)), ("fresh", Fresh())):
        told = Settings(steps=300, batch=24, protocol=protocol, evaluation=512, epoch=20)
        shape = NeighbourShape(width=8, tokens=5, rank=2, copies=4, mlp_width=64)
        row = train_one(shape.build, FarthestNeighbour(8, 5), told).last[0]
        gaps[name] = row.test_loss - row.epoch_loss
    assert gaps["fixed"] > 0.1
    assert abs(gaps["fresh"]) < 0.1


def test_rows_say_what_is_known():
    done = run(steps=10)
    steps = sorted({row.step for row in done.rows})
    # Ten to the power of k/8, rounded, each once.
    assert steps == [1, 2, 3, 4, 6, 7, 10]
    first, last = done.rows[0], done.last[-1]
    assert (first.step, first.epoch_loss, first.best_epoch_loss) == (1, None, None)
    assert (last.member, last.variant, last.seed, last.learning_rate) == (3, "r=4", 1, 0.01)
    assert last.epoch_loss is not None and last.best_epoch_loss <= last.epoch_loss
    assert last.diverged_at is None


def test_epoch_losses_are_means_over_epochs():
    group = Ensemble(VARIANTS, TASK, settings(steps=12))
    losses = []
    for _ in range(10):
        group.advance()
        losses.append(group.state.last_loss.clone())
    means = torch.stack([torch.stack(losses[k : k + 4]).mean(0) for k in (0, 4)])
    torch.testing.assert_close(group.state.epoch_loss, means[1])
    torch.testing.assert_close(group.state.best_epoch_loss, means.amin(0))


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e4])
def test_a_member_that_diverges_is_frozen_and_does_not_change_the_others(value):
    task = Poisoned(1, 7, value)
    assert isinstance(task, Task)
    poisoned, clean = (Ensemble(VARIANTS, t, settings()) for t in (task, TASK))
    for step in range(20):
        if step == 7:
            frozen = poisoned.state.flat[1].clone()
        poisoned.advance()
        clean.advance()
    others = [0, 2, 3]
    assert torch.equal(poisoned.state.flat[others], clean.state.flat[others])
    assert torch.equal(poisoned.state.flat[1], frozen)
    assert not torch.equal(clean.state.flat[1], frozen)
    assert poisoned.state.alive.tolist() == [True, False, True, True]
    row, sound = poisoned.rows()[1], clean.rows()
    assert (row.diverged_at, row.train_loss, row.test_loss) == (7, None, None)
    assert [poisoned.rows()[i] for i in others] == [sound[i] for i in others]


def test_only_the_member_with_a_far_too_high_rate_diverges():
    rates = (0.01, 1e30)
    both = run(learning_rates=rates, seeds=(0,))
    fate = {(row.variant, row.learning_rate): row.diverged_at for row in both.last}
    assert fate["r=4", 0.01] is None and fate["r=4", 1e30] is not None
    tame = run(learning_rates=(0.01, 0.02), seeds=(0,))
    assert [r for r in both.rows if r.learning_rate == 0.01] == [
        r for r in tame.rows if r.learning_rate == 0.01
    ]


def test_a_run_without_survivors_ends_early():
    done = run(learning_rates=(1e30,), steps=4000)
    assert all(row.diverged_at is not None for row in done.last)
    assert done.last[0].step < 4000


def test_variants_of_other_shapes_are_refused():
    other = NeighbourShape(width=8, tokens=5, rank=4, copies=2, mlp_width=16)
    with pytest.raises(BadInputError, match=r"output.weight is .* in one and .* in another"):
        train(VARIANTS | {"odd": other.build}, TASK, settings())


def test_train_one_refuses_several_seeds():
    with pytest.raises(BadInputError, match="expected one seed and one learning rate"):
        train_one(VARIANTS["r=1"], TASK, settings())


@pytest.mark.parametrize(
    ("told", "hint"),
    [
        ({"steps": 0}, "steps=0 does not work; pass at least 1"),
        ({"micro_batches": 5}, "a divisor of batch=12"),
        ({"seeds": ()}, "at least one seed"),
        ({"learning_rates": (0.0,)}, "rates above zero"),
        ({"warm_up": 1.5}, "a share between 0 and 1"),
        ({"warm_up": (0.1, 0.2)}, r"warm_up=\(0.1, 0.2\) does not work; .* learning rate, 1 here"),
        ({"warm_up": ()}, "a tuple with one for each learning rate, 1 here"),
        ({"warm_up": (0.1, 1.1), "learning_rates": (0.1, 0.2)}, "a share between 0 and 1"),
        ({"warm_up": (math.nan,)}, "a share between 0 and 1"),
        ({"device": "nonsense"}, "expected `device` cpu, cuda or cuda:1, got 'nonsense'"),
        ({"precision": "tf32"}, "tf32 needs a GPU"),
        ({"execution": "graph"}, "'eager' on a CPU"),
    ],
)
def test_settings_that_cannot_work_are_refused(told, hint):
    with pytest.raises(BadInputError, match=hint):
        settings(**told)


def test_a_model_of_another_size_than_the_task_is_named():
    wide = NeighbourShape(width=32, tokens=3, rank=8, mlp_width=8).build
    with pytest.raises(
        BadInputError, match=r"variant 'wide' .* shape \(3, 16\): .* sizes of the task"
    ):
        train({"wide": wide}, FarthestNeighbour(16, 3), Settings(steps=1, batch=2))


#: Of the wrong type, which these tests would refuse before headwise does: asked in a plain Python.
WRONG_TYPES = """
from headwise.data import FarthestNeighbour
from headwise.errors import BadInputError
from headwise.models import NeighbourShape
from headwise.training import Settings, train

shape, task = NeighbourShape(width=16, tokens=3, rank=8), FarthestNeighbour(16, 3)
for attempt in (
    lambda: Settings(steps=1, seeds=3),
    lambda: Settings(steps=1, learning_rates=0.01),
    lambda: train({"r=8": shape}, task, Settings(steps=1)),
):
    try:
        attempt()
    except BadInputError as error:
        print(error)
"""


def test_wrong_types_are_refused_with_what_would_work():
    done = subprocess.run(
        [sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True, check=True, timeout=120
    )
    seeds, rates, builder = done.stdout.splitlines()
    assert re.search(r"seeds=3 does not work; pass a tuple .* such as \(0, 1\)", seeds)
    assert re.search(r"learning_rates=0.01 .* such as \(0.01,\)", rates)
    assert re.search(r"variant 'r=8' .* builds nothing; pass .*\.build", builder)


@pytest.mark.parametrize("device", ["cuda", "cuda:99", "meta", "mps", "xla"])
def test_a_device_that_is_not_here_is_refused_in_one_line(device):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("it is here")
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("it is here")
    with pytest.raises(BadInputError, match=f"no device '{device}' on this machine; pass cpu"):
        run(device=device)


def test_a_fixed_set_must_fall_into_batches():
    with pytest.raises(BadInputError, match="a multiple of batch=256"):
        Settings(steps=1, protocol=Fixed(1000))


@pytest.mark.parametrize(("steps", "per_decade"), [(1, 8), (7, 1), (1000, 4), (12345, 10)])
def test_curve_steps_are_few_and_end_at_the_end(steps, per_decade):
    found = curve_steps(steps, per_decade)
    assert found[0] == 1 and found[-1] == steps
    assert list(found) == sorted(set(found))
    assert len(found) <= per_decade * (math.log10(steps) + 1) + 2


def test_rows_are_plain():
    assert CurveRow(0, "", 1, 0.1, 5).test_loss is None
