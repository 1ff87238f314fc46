"""Epochs: the same at every restart, whole, augmented as planted; validation apart from train."""

import numpy as np
import pytest
import torch

from headwise.data import (
    EpochTask,
    ImageAugmentation,
    Labelled,
    Mixed,
    Parts,
    Standardised,
    auto_augment,
    cut_validation,
)
from headwise.data.augmentation import _cropped, _mixed
from headwise.data.autoaugment import _operation, _stages
from headwise.errors import BadInputError
from headwise.models.rank_paper import VisionModel, fixed_width
from headwise.training import Ensemble, Settings


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pixels(count=40):
    return torch.randint(256, (count, 3, 32, 32), generator=generator(), dtype=torch.uint8)


def task(count=40):
    part = Labelled((pixels(count),), torch.arange(count) % 10)
    present = Standardised.of(part.inputs[0])
    return EpochTask(Parts(part, part, part), ImageAugmentation("cifar10"), present)


def test_an_epoch_depends_only_on_seed_and_number():
    first, again, other = (task().epoch(seed, 3, 8) for seed in (1, 1, 2))
    assert torch.equal(first.inputs[0], again.inputs[0])
    assert not torch.equal(first.inputs[0], other.inputs[0])
    assert not torch.equal(first.inputs[0], task().epoch(1, 4, 8).inputs[0])


def test_every_sample_is_seen_once_and_the_remainder_is_left_out():
    plain = EpochTask(
        task().parts, lambda x, y, g: Mixed((x,), y, y, torch.ones(len(y))), lambda x: (x,)
    )
    seen = plain.epoch(0, 0, 12).inputs[0]
    assert len(seen) == 36
    assert len({image.numpy().tobytes() for image in seen}) == 36


def test_training_restarts_at_any_step():
    model = VisionModel(width=8, depth=1, mlp_width=8)
    builders = {"one": lambda seed: model.build(fixed_width(8, (2,))[0], seed)}
    settings = Settings(steps=12, batch=8, seeds=(0, 1), learning_rates=(1e-3,), evaluation=8)
    whole, second = (Ensemble(builders, task(), settings) for _ in range(2))
    for step in range(9):
        whole.noise.prepare(step)
        whole.advance()
        if step == 6:
            saved = whole.state.copies()
    second.state.restore(saved)
    for step in (7, 8):
        second.noise.prepare(step)
        second.advance()
    assert torch.equal(whole.state.flat, second.state.flat)


def test_validation_is_apart_and_even():
    labels = np.repeat(np.arange(5), 20)
    train, aside = cut_validation(labels, 0.1)
    assert not set(train) & set(aside)
    assert len(train) + len(aside) == 100
    assert np.bincount(labels[aside]).tolist() == [2] * 5
    with pytest.raises(BadInputError, match="expected a share"):
        cut_validation(labels, 0.001)


def test_cropping_moves_pixels_and_adds_only_black():
    images = pixels(50).clamp(min=1)
    found = _cropped(images, 4, False, generator(1))
    whole = [n for n in range(50) if torch.equal(found[n], images[n])]
    assert len(whole) < 10  # one in 81 is not moved
    for one, before in zip(found, images, strict=True):
        rows = (one[0] > 0).any(1).nonzero().flatten()
        columns = (one[0] > 0).any(0).nonzero().flatten()
        kept = one[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        down = 0 if rows[0] else 32 - len(rows)
        right = 0 if columns[0] else 32 - len(columns)
        expected = before[:, down : down + len(rows), right : right + len(columns)]
        assert torch.equal(kept, expected)


def test_share_of_a_mixed_image_is_what_is_left_of_it():
    count = 300
    images = torch.zeros(count, 3, 32, 32, dtype=torch.uint8)
    images[: count // 2] = 255
    partner = torch.arange(count).roll(count // 2)
    mixed, share = _mixed(images, partner, generator(2))
    own = mixed.float().mean((1, 2, 3)) / 255
    own[count // 2 :] = 1 - own[count // 2 :]
    assert torch.allclose(own, share, atol=1 / 255)
    assert 0.2 < (share == 1).float().mean() < 0.5  # a third is not mixed


def test_each_image_draws_its_own_sub_policy():
    images = pixels(64).float() / 255
    same = images[:1].expand(64, -1, -1, -1).contiguous()
    found = auto_augment(same, "cifar10", generator(3))
    # One sub-policy has two operations, each left out or of either sign: nine outcomes.
    assert len({image.numpy().tobytes() for image in found}) > 9
    assert found.min() >= 0
    assert found.max() <= 1


def test_an_operation_gives_the_same_alone_and_in_a_batch():
    images = pixels(6).float() / 255
    kinds = {kind for name in ("cifar10", "svhn") for s in _stages(name) for kind in s.kinds}
    assert len(kinds) == 14
    for kind in kinds:
        strength = torch.linspace(0.05, 0.25, 6)
        whole = _operation(kind)(images, strength)
        alone = [_operation(kind)(images[i : i + 1], strength[i : i + 1]) for i in range(6)]
        assert torch.allclose(whole, torch.cat(alone), atol=1e-6), kind


def test_operations_by_hand():
    images = pixels(4).float() / 255
    halves = torch.full((4,), 0.5)
    assert torch.equal(
        _operation("solarize")(images, halves), images.where(images < 0.5, 1 - images)
    )
    moved = _operation("translate_x")(images, torch.full((4,), 4 / 32))
    assert torch.allclose(moved[..., :28], images[..., 4:], atol=1e-5)
    assert moved[..., 28:].abs().max() < 1e-5
    dark = _operation("brightness")(images, -halves)
    assert torch.allclose(dark, images / 2, atol=1e-6)
    bits = _operation("posterize")(images, torch.full((4,), 4.0))
    assert torch.allclose(bits, (images * 255).round().div(16).floor() * 16 / 255)


def test_unknown_policy():
    with pytest.raises(BadInputError, match="expected policy 'cifar10' or 'svhn'"):
        auto_augment(pixels(1).float(), "imagenet", generator())
