"""Images as tokens: the embedded digits, a folder of pictures, and how they are cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headwise.checks import dividing_patch
from headwise.errors import BadInputError, UnreadableFileError, needs_extra
from headwise.report.results import short_repr
from headwise.shapes import Float, Int

#: The 1,797 test images of "Optical Recognition of Handwritten Digits" (E. Alpaydin and
#: C. Kaynak, 1998, UCI Machine Learning Repository, CC BY 4.0): 8 × 8, counts from 0 to 16.
#: They are a file of the package: 45 kB, instead of a whole library as a dependency.
DIGITS = Path(__file__).with_name("digits.npz")

#: Endings of picture files.
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")

#: A larger picture would take more than a gigabyte while it is read.
MOST_PIXELS = 2**26

#: How many channels pictures have: grey, colour, colour with transparency.
CHANNELS = (1, 3, 4)


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images and their classes.

    Args:
        images: (b, channels, side, side), numbers from 0 to 1.
        labels: The class of each image.

    Example:
        >>> found = digits()
        >>> found.images.shape, int(found.labels.max())
        (torch.Size([1797, 1, 8, 8]), 9)
    """

    images: Float[Tensor, "b c s t"]
    labels: Int[Tensor, " b"]

    __repr__ = short_repr


def digits() -> LabelledImages:
    """Return 1,797 images of handwritten digits, 8 × 8, by many writers, in a fixed order.

    Returns:
        The images and their classes.

    Example:
        >>> len(digits().labels)
        1797
    """
    with np.load(DIGITS) as stored:
        images, labels = stored["images"] / 16.0, stored["labels"].astype(np.int64)
    return LabelledImages(torch.as_tensor(images).unsqueeze(1), torch.as_tensor(labels))


def standardised(images: Float[Tensor, "b c s t"]) -> Float[Tensor, "b c s t"]:
    """Scale each channel to mean 0 and variance 1 over all images, as training pipelines do.

    Args:
        images: (b, channels, height, width).

    Returns:
        Images of the same shape.

    Example:
        >>> float(standardised(digits().images).mean().abs() < 1e-9)
        1.0
    """
    mean = images.mean((0, 2, 3), keepdim=True)
    spread = images.std((0, 2, 3), keepdim=True, correction=0)
    return (images - mean) / torch.where(spread > 0, spread, 1.0)


def patches(images: Float[Tensor, "b c s t"], side: int) -> Float[Tensor, "b n w"]:
    """Cut each image into square patches, row by row; one patch is one token.

    Args:
        images: (b, channels, height, width).
        side: The side of a patch; it divides height and width.

    Returns:
        The patches, (b, patches, channels · side²).

    Raises:
        BadInputError: If the patches do not tile the images.

    Example:
        >>> patches(digits().images, 2).shape
        torch.Size([1797, 16, 4])
    """
    dividing_patch(side, *images.shape[-2:])
    # The same numbers as unfold, in one copy: that starts its threads again for every image.
    return torch.nn.functional.pixel_unshuffle(images, side).flatten(2).mT.contiguous()


def refuse_channels_last(shape: Sequence[int]) -> None:
    """Raise if the last axis of images, instead of the second, looks like channels.

    Square maps of many channels, such as 4 × 4, are accepted.

    Raises:
        BadInputError: If channels come last.
    """
    _, second, third, last = shape
    if last in CHANNELS and second not in CHANNELS and third != last:
        raise BadInputError(
            f"images of shape {tuple(shape)} seem to have their channels last",
            hint="pass (batch, channels, height, width), for example array.transpose(0, 3, 1, 2)",
        )


def evenly(files: Sequence[Path], most: int) -> list[Path]:
    """Take up to ``most`` files at equal distances, so that all subfolders are seen."""
    count = min(most, len(files))
    return [files[number * len(files) // count] for number in range(count)]


def image_files(files: Sequence[Path], height: int, width: int) -> Float[Tensor, "b c s t"]:
    """Read pictures, each scaled to a height and a width; needs pillow."""
    try:
        from PIL import Image
    except ImportError:
        raise needs_extra("pillow", "vision") from None
    found = []
    for file in files:
        # pillow raises OSError, SyntaxError or ValueError on damaged files, by format, and
        # MemoryError where a damaged length claims gigabytes.
        try:
            with Image.open(file) as image:
                # Before decoding: a file of a few bytes may claim any size.
                if math.prod(image.size) > MOST_PIXELS:
                    raise ValueError("too many pixels")
                small = image.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
                pixels = np.asarray(small, dtype=np.float64)
        except (OSError, SyntaxError, ValueError, MemoryError, Image.DecompressionBombError):
            raise UnreadableFileError(
                f"{file} is not a picture of at most {MOST_PIXELS:,} pixels that can be read",
                hint="remove it, or scale it down and save it again",
            ) from None
        found.append(torch.from_numpy(pixels / 255).permute(2, 0, 1))
    return torch.stack(found)
