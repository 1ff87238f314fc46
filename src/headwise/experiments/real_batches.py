"""Draw mini-batches of named data sets: images, and texts of equal length."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from headwise.data import (
    Standardised,
    Vocabulary,
    data_folder,
    digits,
    open_images,
    standardised,
)
from headwise.data.classification import LEVELS, without_breaks
from headwise.data.sets import open_texts
from headwise.errors import BadInputError
from headwise.randomness import stream

#: Sets of images. The digits come with the package; the others are read from the data folder.
ImageName = Literal["digits", "cifar10", "cifar100", "svhn"]

#: Sets of texts. The digits are read as words: the 64 grey levels of an image, row by row.
TextName = Literal["digits", "imdb"]


class ImageBatch(NamedTuple):
    """Standardised images in float64, and the size of the training part they are drawn from."""

    images: Tensor
    available: int


class TextBatch(NamedTuple):
    """Word ids, the size of the vocabulary, and that of the training part."""

    ids: Tensor
    words: int
    available: int


def draw_images(name: ImageName, count: int, seed: int) -> ImageBatch:
    """Draw different training images; channels have mean 0 and variance 1 over the whole part."""
    if name == "digits":
        images = standardised(digits().images)
        return ImageBatch(images[_places(len(images), count, seed)], len(images))
    images, scale = _training_images(name, data_folder())
    (found,) = scale(images[_places(len(images), count, seed)])
    return ImageBatch(found.double(), len(images))


def draw_texts(name: TextName, count: int, length: int, seed: int) -> TextBatch:
    """Draw different training texts of at least ``length`` words, half of it from each end."""
    if name == "digits":
        levels = (digits().images * (LEVELS - 1)).round().long().flatten(1)
        _refuse_longer(length, levels.shape[1])
        cut = levels[_places(len(levels), count, seed), :length]
        return TextBatch(cut, LEVELS, len(levels))
    texts, words = _training_texts(data_folder())
    rows: list[Tensor] = []
    for place in _places(len(texts), len(texts), seed).tolist():
        if len(rows) == count:
            break
        ids = words.encode(texts[place])
        if len(ids) >= length:
            rows.append(torch.cat([ids[: length - length // 2], ids[len(ids) - length // 2 :]]))
    if len(rows) < count:
        raise BadInputError(
            f"expected {count} texts of at least {length} words in {name}, got {len(rows)}",
            hint="ask for fewer or shorter texts",
        )
    return TextBatch(torch.stack(rows), words.size, len(texts))


def distinct_share(tokens: Tensor) -> float:
    """Return the mean share of different tokens in a sequence of (b, n) or (b, n, w) tokens."""
    flat = tokens.reshape(*tokens.shape[:2], -1)
    return sum(len(own.unique(dim=0)) for own in flat) / (flat.shape[0] * flat.shape[1])


def _places(available: int, count: int, seed: int) -> Tensor:
    if count > available:
        raise BadInputError(
            f"expected a batch of at most {available}, the size of the training part, got {count}",
            hint="ask for a smaller batch",
        )
    return torch.randperm(available, generator=stream(seed, "samples"))[:count]


def _refuse_longer(length: int, longest: int) -> None:
    if length > longest:
        raise BadInputError(
            f"expected at most {longest} words of a digit, got {length}",
            hint=f"ask for {longest} or fewer",
        )


# Specs of one exhibit use the same set one after another, and reading it takes seconds.
@lru_cache(maxsize=1)
def _training_images(name: str, folder: Path) -> tuple[Tensor, Standardised]:
    images = torch.from_numpy(open_images(name, folder).train.images)
    return images, Standardised.of(images)


@lru_cache(maxsize=1)
def _training_texts(folder: Path) -> tuple[list[str], Vocabulary]:
    texts = without_breaks(open_texts("imdb", folder), "train")
    return texts, Vocabulary.of("\n".join(texts), level="word")
