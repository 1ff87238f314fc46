"""Named sets as classification tasks: which samples, how they are augmented, how they are shown.

The validation part is cut from the training part; the test part is only reported. The embedded
digits stand in where nothing else is there: as images, or as words, one for each grey level.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from headwise.data.augmentation import ImageAugmentation, WordDropout
from headwise.data.epochs import (
    EpochTask,
    Labelled,
    Parts,
    Standardised,
    as_words,
    cut_validation,
)
from headwise.data.images import digits
from headwise.data.official import TextSet
from headwise.data.sets import CLASSES, KNOWN_SETS, open_images, open_texts
from headwise.data.text import Vocabulary, encode_all
from headwise.errors import BadInputError

#: Training samples of every set as published.
PUBLISHED = {"cifar10": 50_000, "cifar100": 50_000, "svhn": 73_257, "imdb": 25_000}

#: The last of the digits are their test part.
DIGITS_TESTED = 357

#: Grey levels of the digits: 0 to 16.
LEVELS = 17

#: A cut set has this many test samples for each training sample.
TEST_SHARE = 1 / 5


class Source(NamedTuple):
    """The official training and test parts of a set, or the first samples of every class."""

    train: Labelled
    test: Labelled

    def parts(self, device: str = "cpu") -> Parts:
        """Cut a validation part from the training part, and move all three to a device."""
        kept, aside = (torch.from_numpy(p) for p in cut_validation(self.train.labels.numpy()))
        three = (self.train.at(kept), self.train.at(aside), self.test)
        return Parts(*(part.to(device) for part in three))


def image_task(
    name: str, source: Source, device: str = "cpu", label_smoothing: float = 0.1
) -> EpochTask:
    """Make the task of a set of images: augmented to train, standardised to show.

    AutoAugment has a policy for digits in the street and one for objects. The embedded digits are
    grey, so AutoAugment's colours mean nothing there: they are shifted by a pixel and mixed.

    Args:
        name: ``"digits"``, ``"cifar10"``, ``"cifar100"`` or ``"svhn"``.
        source: Its samples.
        device: Where they are augmented and trained on.
        label_smoothing: The share of a label that goes to all classes alike.

    Returns:
        A task of epochs, with parts to train on, to validate and to test.

    Example:
        >>> task = image_task("digits", digits_as_images())
        >>> [len(part.labels) for part in task.parts]
        [1298, 142, 357]
    """
    kinds = {
        "digits": ImageAugmentation(None, margin=1, mirrored=False),
        "svhn": ImageAugmentation("svhn", mirrored=False),
    }
    parts = source.parts(device)
    return EpochTask(
        parts,
        augment=kinds.get(name, ImageAugmentation("cifar10")),
        present=Standardised.of(parts.train.inputs[0]),
        label_smoothing=label_smoothing,
    )


def text_task(source: Source, device: str = "cpu", label_smoothing: float = 0.1) -> EpochTask:
    """Make the task of a set of texts: words are dropped to train, and shown as they are.

    Args:
        source: Word ids with lengths, and labels.
        device: Where they are trained on.
        label_smoothing: The share of a label that goes to all classes alike.

    Returns:
        A task of epochs, with parts to train on, to validate and to test.

    Example:
        >>> text_task(digits_as_words()).parts.test.inputs[0].shape
        torch.Size([357, 64])
    """
    return EpochTask(
        source.parts(device),
        augment=WordDropout(),
        present=as_words,
        label_smoothing=label_smoothing,
    )


def digits_as_images() -> Source:
    """The embedded digits as bytes of one channel."""
    found = digits()
    return _cut_digits((found.images * 255).round().to(torch.uint8), found.labels)


def digits_as_words() -> Source:
    """The embedded digits as 64 words each, row by row: their grey levels."""
    found = digits()
    return _cut_digits((found.images * (LEVELS - 1)).round().long().flatten(1), found.labels)


def _cut_digits(inputs: Tensor, labels: Tensor) -> Source:
    lengths = [torch.full((len(labels),), inputs.shape[1])] * (inputs.ndim == 2)
    whole = Labelled((inputs, *lengths), labels)
    cut = len(labels) - DIGITS_TESTED
    places = torch.arange(len(labels))
    return Source(whole.at(places[:cut]), whole.at(places[cut:]))


def image_source(name: str, folder: Path | str, per_class: int | None = None) -> Source:
    """Read the samples of a set of images.

    Args:
        name: ``"digits"``, ``"cifar10"``, ``"cifar100"`` or ``"svhn"``.
        folder: Where the official files lie; the digits need none.
        per_class: Take the first so many training images of each class, and a fifth as many test
            images; None takes the whole published set.

    Returns:
        Training and test samples: images (count, channels, side, side) with their labels.

    Raises:
        BadInputError: The files hold less than was asked for.
        UnreadableFileError: A file is absent or damaged.

    Example:
        >>> len(image_source("digits", "").train.labels)
        1440
    """
    if name == "digits":
        return digits_as_images()
    return _image_source(name, Path(folder), per_class)


# Specs of one exhibit ask for the same set one after another; reading it takes seconds.
@lru_cache(maxsize=1)
def _image_source(name: str, folder: Path, per_class: int | None) -> Source:
    found = open_images(name, folder)
    parts = [
        Labelled((torch.from_numpy(part.images),), torch.from_numpy(part.labels))
        for part in (found.train, found.test)
    ]
    return _first(name, Source(*parts), per_class)


def text_source(
    name: str, folder: Path | str, length: int = 256, per_class: int | None = None
) -> tuple[Source, int]:
    """Read the samples of a set of texts as word ids.

    The vocabulary is made of the training part. Line breaks in HTML are spaces.

    Args:
        name: ``"digits"`` or ``"imdb"``.
        folder: Where the official files lie; the digits need none.
        length: How many words to keep of each text, half of them from each end.
        per_class: Take the first so many training texts of each class, and a fifth as many test
            texts; None takes the whole published set.

    Returns:
        The samples, and the size of the vocabulary.

    Raises:
        BadInputError: The files hold less than was asked for, or another length was asked of the
            digits.
        UnreadableFileError: A file is absent or damaged.

    Example:
        >>> text_source("digits", "", length=64)[1]
        17
    """
    if name != "digits":
        return _text_source(name, Path(folder), length, per_class)
    source = digits_as_words()
    if length != source.train.inputs[0].shape[1]:
        raise BadInputError(
            f"expected 64 words of a digit, got length={length}", hint="pass length=64"
        )
    return source, LEVELS


@lru_cache(maxsize=1)
def _text_source(name: str, folder: Path, length: int, per_class: int | None) -> tuple[Source, int]:
    found = open_texts(name, folder)
    words = Vocabulary.of("\n".join(without_breaks(found, "train")), "word")
    parts = []
    for part in ("train", "test"):
        ids, lengths = encode_all(words.encode, without_breaks(found, part), length)
        labels = torch.from_numpy(getattr(found, part).labels)
        parts.append(Labelled((ids.int(), lengths.int()), labels))
    return _first(name, Source(*parts), per_class), words.size


def without_breaks(found: TextSet, part: str) -> list[str]:
    """The texts of a part; line breaks in HTML are spaces."""
    return [text.replace("<br />", " ") for text in getattr(found, part).texts]


def _first(name: str, source: Source, per_class: int | None) -> Source:
    if per_class is None:
        have, want = len(source.train.labels), PUBLISHED[name]
        if have != want:
            get = next(own.get for own in KNOWN_SETS if own.name == name)
            raise BadInputError(
                f"expected {want:,} training samples of {name}, got {have:,}",
                hint=f"get the whole set with: {get}; or ask for per_class={have // CLASSES[name]}",
            )
        return source
    counts = (per_class, max(1, round(per_class * TEST_SHARE)))
    return Source(
        *(
            part.at(torch.from_numpy(first_of_each(part.labels.numpy(), count, name)))
            for part, count in zip(source, counts, strict=True)
        )
    )


def first_of_each(labels: np.ndarray, count: int, name: str = "the set") -> np.ndarray:
    """The places of the first ``count`` samples of each class, in ascending order."""
    places = [np.flatnonzero(labels == own)[:count] for own in np.unique(labels)]
    fewest = min(map(len, places), default=0)
    if fewest < count:
        raise BadInputError(
            f"expected {count} samples of every class of {name}, got {fewest} of one",
            hint=f"ask for {fewest} or fewer, or get the whole set",
        )
    return np.sort(np.concatenate(places))
