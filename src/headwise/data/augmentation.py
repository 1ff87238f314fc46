"""What one epoch of training sees: images cropped, mirrored, augmented and mixed; texts thinned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from headwise.data.autoaugment import PolicyName, auto_augment

#: Images in one go: enough to fill a GPU, and 0.5 GB at most on the way.
CHUNK = 10_000


class Mixed(NamedTuple):
    """Augmented samples with the two classes that each was mixed from.

    Attributes:
        inputs: The model's inputs.
        first: The first class of each sample.
        second: The second class of each sample.
        share: The share of the first class.
    """

    inputs: tuple[Tensor, ...]
    first: Tensor
    second: Tensor
    share: Tensor


@dataclass(frozen=True)
class ImageAugmentation:
    """Random crops, mirroring, AutoAugment (if a policy is given), CutMix and MixUp.

    Every image draws one of CutMix, MixUp and no mixing, each with probability 1/3, with a partner
    from the same epoch and a share drawn uniformly (Beta(1, 1)), as both papers do on CIFAR.

    Args:
        policy: The AutoAugment policy, "cifar10" or "svhn"; None for no AutoAugment.
        margin: The largest shift of a crop, in pixels.
        mirrored: Whether half of the images are mirrored.

    Example:
        >>> kind = ImageAugmentation("cifar10")
        >>> images = torch.zeros(6, 3, 8, 8, dtype=torch.uint8)
        >>> kind(images, torch.arange(6), torch.Generator().manual_seed(0)).inputs[0].shape
        torch.Size([6, 3, 8, 8])
    """

    policy: PolicyName | None
    margin: int = 4
    mirrored: bool = True

    def __call__(self, images: Tensor, labels: Tensor, generator: torch.Generator) -> Mixed:
        """Change every image once.

        Args:
            images: (N, channels, S, S) of bytes, on any device.
            labels: (N) classes.
            generator: A generator on the CPU; it decides everything.

        Returns:
            Images of bytes, their two classes, and the share of the first.
        """
        parts = [self._changed(part, generator) for part in images.split(CHUNK)]
        changed = torch.cat(parts)
        partner = torch.randperm(len(images), generator=generator).to(images.device)
        mixed, share = _mixed(changed, partner, generator)
        return Mixed((mixed,), labels, labels[partner], share)

    def _changed(self, images: Tensor, generator: torch.Generator) -> Tensor:
        cropped = _cropped(images, self.margin, self.mirrored, generator)
        if self.policy is None:
            return cropped
        changed = auto_augment(cropped.float() / 255, self.policy, generator)
        return (changed * 255).round().to(torch.uint8)


def _cropped(images: Tensor, margin: int, mirrored: bool, generator: torch.Generator) -> Tensor:
    """Each image shifted by up to ``margin`` pixels, black outside, and mirrored half the time."""
    count, channels, side, _ = images.shape
    padded = pad(images, (margin,) * 4)
    down, right = torch.randint(2 * margin + 1, (2, count, 1), generator=generator)
    line = torch.arange(side)
    turned = torch.randint(2, (count, 1), generator=generator).bool() & mirrored
    columns = right + torch.where(turned, side - 1 - line, line)
    rows, columns = ((t).to(images.device) for t in (down + line, columns))
    which = torch.arange(count, device=images.device).view(-1, 1, 1, 1)
    planes = torch.arange(channels, device=images.device).view(-1, 1, 1)
    return padded[which, planes, rows[:, None, :, None], columns[:, None, None, :]]


def _mixed(images: Tensor, partner: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """CutMix, MixUp or nothing, per image; the share of the image itself."""
    count, _, side, _ = images.shape
    kind = torch.randint(3, (count,), generator=generator)
    share = torch.rand(count, generator=generator)
    cut, blend = kind == 0, kind == 1
    boxes = _boxes(share, side, generator) & cut.view(-1, 1, 1)
    outside = 1 - boxes.float().mean((1, 2))
    weight = torch.where(blend, share, 1.0).view(-1, 1, 1) * ~boxes
    own = torch.where(cut, outside, torch.where(blend, share, 1.0))
    weight = weight.unsqueeze(1).to(images.device)
    mixed = torch.lerp(images[partner].float(), images.float(), weight)
    return mixed.round().to(torch.uint8), own.to(images.device)


def _boxes(share: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """A box in each image with about 1 − share of its area, cut where it leaves the image."""
    half = (1 - share).sqrt() * side / 2
    centres = side * torch.rand(2, len(share), generator=generator)
    line = torch.arange(side) + 0.5
    inside = [(line - centre.unsqueeze(1)).abs() < half.unsqueeze(1) for centre in centres]
    return inside[0].unsqueeze(2) & inside[1].unsqueeze(1)


@dataclass(frozen=True)
class WordDropout:
    """Replace each word by the unknown word, id 0, with this probability.

    Args:
        probability: The probability for each word.

    Example:
        >>> words = torch.ones(2, 5, dtype=torch.int64)
        >>> generator = torch.Generator().manual_seed(0)
        >>> mixed = WordDropout(1.0)(words, torch.tensor([5, 2]), torch.zeros(2), generator)
        >>> int(mixed.inputs[0].sum())
        0
    """

    probability: float = 0.1

    def __call__(
        self, ids: Tensor, lengths: Tensor, labels: Tensor, generator: torch.Generator
    ) -> Mixed:
        """Thin every text once.

        Args:
            ids: (N, n) word ids, on any device.
            lengths: (N) real words of each.
            labels: (N) classes.
            generator: A generator on the CPU; it decides everything.

        Returns:
            The ids and lengths, with each label twice and a share of 1.
        """
        # One seed from the CPU, then the device draws: N × n numbers are slow to send.
        own = torch.Generator(ids.device)
        own.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        dropped = torch.rand(ids.shape, generator=own, device=ids.device) < self.probability
        kept = ids.masked_fill(dropped, 0)
        return Mixed((kept, lengths), labels, labels, torch.ones(len(ids), device=ids.device))
