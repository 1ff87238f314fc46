"""AutoAugment for a whole batch on its device: every image draws its own sub-policy.

The sub-policies are the published ones for CIFAR-10 and SVHN, and the operations are kornia's. Its
own ``AutoAugment`` draws one sub-policy for a whole batch, and its scale of magnitudes turns
brightness 9 into white. Here images are grouped by operation. Magnitudes are read as torchvision
does: ten values evenly spaced from none to the strongest, with a random sign where one exists. The
strongest shift is 10 of 32 pixels, as in the authors' code for CIFAR (torchvision: 14.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from headwise.checks import one_of
from headwise.errors import needs_extra

PolicyName = Literal["cifar10", "svhn"]

#: The strongest of each operation, reached at magnitude 9. Shifts are a share of the side.
STRONGEST = {
    "shear_x": 0.3,
    "shear_y": 0.3,
    "translate_x": 10 / 32,  # 10 pixels, as in the authors' code for CIFAR
    "translate_y": 10 / 32,
    "rotate": math.radians(30),
    "brightness": 0.9,
    "color": 0.9,
    "contrast": 0.9,
    "sharpness": 0.9,
    "posterize": 4.0,
    "solarize": 1.0,
}
MAGNITUDES = 9
GEOMETRIC = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
WITHOUT_SIGN = ("posterize", "solarize")


class _Stage(NamedTuple):
    """What the two operations of every sub-policy are: kind, probability and strength."""

    kinds: tuple[str, ...]
    probabilities: Tensor
    strengths: Tensor


def auto_augment(images: Tensor, policy: str, generator: torch.Generator) -> Tensor:
    """Apply one random sub-policy to each image.

    Args:
        images: (N, 3, S, S), values from 0 to 1, on any device.
        policy: The published policy: ``"cifar10"`` (for CIFAR-100 too) or ``"svhn"``.
        generator: A generator on the CPU; it decides everything.

    Returns:
        Images of the same shape, values from 0 to 1.

    Raises:
        BadInputError: There is no such policy.
        MissingExtraError: kornia is not installed.

    Example:
        >>> images = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        >>> auto_augment(images, "cifar10", torch.Generator().manual_seed(1)).shape
        torch.Size([4, 3, 8, 8])
    """
    stages = _stages(policy)
    count = len(images)
    chosen = torch.randint(len(stages[0].kinds), (count,), generator=generator)
    for stage in stages:
        applied = torch.rand(count, generator=generator) < stage.probabilities[chosen]
        signs = 1.0 - 2.0 * torch.randint(2, (count,), generator=generator)
        images = _staged(images, stage, chosen.masked_fill(~applied, -1), signs)
    return images


def _staged(images: Tensor, stage: _Stage, chosen: Tensor, signs: Tensor) -> Tensor:
    """One operation for every image whose choice is not -1; images of one kind go together."""
    images = images.clone()
    for kind in dict.fromkeys(stage.kinds):
        same = torch.tensor([number for number, own in enumerate(stage.kinds) if own == kind])
        places = torch.isin(chosen, same).nonzero().squeeze(1)
        if len(places) == 0:
            continue
        strength = stage.strengths[chosen[places]]
        if kind not in WITHOUT_SIGN:
            strength = strength * signs[places]
        places, strength = places.to(images.device), strength.to(images)
        images[places] = _operation(kind)(images[places], strength).clamp(0, 1)
    return images


@cache
def _stages(policy: str) -> tuple[_Stage, ...]:
    try:
        from kornia.augmentation.auto.autoaugment.autoaugment import cifar10_policy, svhn_policy
    except ImportError:
        raise needs_extra("kornia", "vision") from None
    tables = {"cifar10": cifar10_policy, "svhn": svhn_policy}
    one_of("policy", policy, tables)
    return tuple(_stage([pair[place] for pair in tables[policy]]) for place in (0, 1))


def _stage(entries: Sequence[tuple[Any, ...]]) -> _Stage:
    kinds, probabilities, magnitudes = zip(*entries, strict=True)
    strengths = [
        STRONGEST.get(kind, 0.0) * (magnitude or 0) / MAGNITUDES
        for kind, magnitude in zip(kinds, magnitudes, strict=True)
    ]
    return _Stage(tuple(kinds), torch.tensor(probabilities), torch.tensor(strengths))


@cache
def _operation(kind: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The images and the strength of each in, changed images out."""
    from kornia import enhance

    if kind in GEOMETRIC:
        return lambda x, s: _moved(x, kind, s)
    return {
        "brightness": lambda x, s: enhance.adjust_brightness_accumulative(x, 1 + s),
        "color": lambda x, s: enhance.adjust_saturation_with_gray_subtraction(x, 1 + s),
        "contrast": lambda x, s: enhance.adjust_contrast_with_mean_subtraction(x, 1 + s),
        "sharpness": lambda x, s: enhance.sharpness(x, 1 + s),
        "posterize": lambda x, s: _posterized(x, 8 - s.round()),
        "solarize": lambda x, s: torch.where(x < 1 - s.view(-1, 1, 1, 1), x, 1 - x),
        "auto_contrast": lambda x, s: enhance.normalize_min_max(x),
        "equalize": lambda x, s: enhance.equalize(x),
        "invert": lambda x, s: enhance.invert(x),
    }[kind]


def _posterized(images: Tensor, bits: Tensor) -> Tensor:
    """Each value with so many bits; kornia takes one image after another."""
    step = (2.0 ** (8 - bits)).view(-1, 1, 1, 1)
    return (images * 255 / step).floor() * step / 255


def _moved(images: Tensor, kind: str, strength: Tensor) -> Tensor:
    """Shear, shift or turn each image about its centre; what comes from outside is black."""
    one, zero = torch.ones_like(strength), torch.zeros_like(strength)
    rows = {
        "shear_x": ((one, strength, zero), (zero, one, zero)),
        "shear_y": ((one, zero, zero), (strength, one, zero)),
        # The grid runs from -1 to 1, so a whole side is 2.
        "translate_x": ((one, zero, 2 * strength), (zero, one, zero)),
        "translate_y": ((one, zero, zero), (zero, one, 2 * strength)),
        "rotate": ((strength.cos(), -strength.sin(), zero), (strength.sin(), strength.cos(), zero)),
    }[kind]
    matrices = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
    grid = affine_grid(matrices, list(images.shape), align_corners=False)
    return grid_sample(images, grid, align_corners=False)
