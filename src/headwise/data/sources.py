"""Read whatever data a person has: images, ids, vectors or texts, and labels if there are any."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from headwise.arrays import plain, read_array
from headwise.data.batches import joined_batches
from headwise.data.images import PICTURES, digits, evenly, image_files, refuse_channels_last
from headwise.data.named_functions import function_named, own_code, seeded
from headwise.data.text import read_text
from headwise.endings import TEXTS, is_there, refuse_missing_source
from headwise.errors import BadInputError, UnreadableFileError
from headwise.report.results import short_repr

#: The side that pictures are scaled to, unless given.
IMAGE_SIZE = 32

#: Of two kinds of files in a folder, the rarer one is left out up to this share of the other.
RARE = 0.1

#: What a function that takes a seed gets, such as the ``batches`` of a trial.
SOURCE_SEED = 0

SourceKind = Literal["digits", "pictures", "text", "array", "batches", "function"]


@dataclass(frozen=True, eq=False)
class Source:
    """What a source holds: an array or texts.

    Args:
        kind: What the source is.
        name: A short name for answers.
        values: Images (b, channels, height, width), ids, or vectors; None for texts.
        texts: The texts; none for an array.
        labels: Class numbers, numbers to predict, or the subfolder of each file; None where there
            are none.

    Example:
        >>> read_source(["some", "texts"]).texts
        ('some', 'texts')
    """

    kind: SourceKind
    name: str
    values: Tensor | None = None
    texts: tuple[str, ...] = ()
    labels: Tensor | list[str | None] | None = None

    __repr__ = short_repr


def read_source(
    source: Any,
    *,
    most: int = 256,
    size: int | None = None,
    name: str | None = None,
    name_parameter: str = "",
) -> Source:
    """Read whatever data a person has.

    Args:
        source: "digits"; a file of an array, a text or an image; a folder of images or texts, in
            subfolders if there are classes (a few texts among images, or images among texts, are
            left out); PACKAGE:FUNCTION, which gets the seed 0 if it takes one; an array or
            tensor; a DataLoader, a Dataset or other batches; text (a string with line breaks, or
            a list of strings).
        most: The most files of a folder, and samples of batches, that are read. Files are taken
            at equal distances through their sorted names, so that all subfolders are seen.
        size: The side that images are scaled to; 32 by default.
        name: Which array of a file with several.
        name_parameter: What the caller's users pass the name as, for the hint of an error.

    Returns:
        Images, ids, vectors or texts, and labels if the source has any.

    Raises:
        BadInputError: If batches cannot be joined, or there is nothing to read.
        UnreadableFileError: If a file is missing or damaged, or a function fails.

    Example:
        >>> found = read_source("digits")
        >>> found.values.shape, len(found.labels)
        (torch.Size([1797, 1, 8, 8]), 1797)
    """
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source):
        found = _of_place(source, most, size or IMAGE_SIZE, name, name_parameter)
    else:
        found = _of_object(source, most)
    if found.values is not None and found.values.ndim == 4:
        refuse_channels_last(found.values.shape)
    return found


def _of_place(
    place: str | Path, most: int, size: int, name: str | None, name_parameter: str
) -> Source:
    """The digits, a folder, a file, or PACKAGE:FUNCTION."""
    path, called = Path(place), str(place)
    if place == "digits":
        known = digits()
        return Source("digits", called, known.images, labels=known.labels)
    refuse_missing_source(place)
    if not is_there(path):
        function = seeded(function_named(called), called, optional=False)
        with own_code(called):
            found = _of_object(function(SOURCE_SEED), most, called)
        return replace(found, kind="text" if found.texts else "function", name=called)
    ending = path.suffix.lower()
    if path.is_dir():
        return _of_folder(path, most, size)
    if ending in TEXTS:
        return Source("text", called, texts=(read_text(path),))
    if ending in PICTURES:
        return Source("pictures", called, image_files([path], size, size))
    return Source("array", called, read_array(path, name, name_parameter))


def _of_folder(folder: Path, most: int, size: int) -> Source:
    """Pictures or texts; where there are subfolders, they name the classes."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    pictures = [path for path in files if path.suffix.lower() in PICTURES]
    texts = [path for path in files if path.suffix.lower() in TEXTS]
    _refuse_both(folder, len(pictures), len(texts))
    if len(pictures) > len(texts):
        read = evenly(pictures, most)
        images = image_files(read, size, size)
        return Source("pictures", str(folder), images, labels=_classes(folder, read))
    if texts:
        read = evenly(texts, most)
        contents = tuple(map(read_text, read))
        return Source("text", str(folder), texts=contents, labels=_classes(folder, read))
    got = f"{len(files)} other files" if files else "an empty folder"
    raise UnreadableFileError(
        f"expected images or texts in {folder}, got {got}",
        hint=f"files should end in {', '.join((*PICTURES, *TEXTS))}",
    )


def _refuse_both(folder: Path, pictures: int, texts: int) -> None:
    """Refuse a folder of images and texts, unless one kind is rare, such as a README."""
    if min(pictures, texts) > RARE * max(pictures, texts):
        raise UnreadableFileError(
            f"expected images or texts in {folder}, got {pictures} images and {texts} texts",
            hint="pass a folder that holds one kind",
        )


def _classes(folder: Path, files: Sequence[Path]) -> list[str | None] | None:
    """The first subfolder of each file; None if no file is in one."""
    inner = [path.relative_to(folder).parts for path in files]
    names = [parts[0] if len(parts) > 1 else None for parts in inner]
    return names if any(names) else None


def _refuse_other_than_texts(texts: Sequence[Any]) -> None:
    other = next((one for one in texts if not isinstance(one, str)), None)
    if other is not None:
        raise BadInputError(
            f"expected texts after {texts[0][:20]!r}, got {other!r:.40}",
            hint="pass a list of strings alone",
        )


def _of_object(given: Any, most: int, told: str | None = None) -> Source:
    """Text, an array, or batches; ``told`` is what errors call them."""
    texts = (given,) if isinstance(given, str) else given
    if isinstance(texts, list | tuple) and texts and isinstance(texts[0], str):
        _refuse_other_than_texts(texts)
        return Source("text", "text", texts=tuple(texts))
    # A table of a dataset has a shape too, and is read row by row.
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return Source("array", "tokens", plain(given, "the source"))
    # Nested lists of numbers are one array; anything else gives batches.
    if isinstance(given, list | tuple):
        with suppress(TypeError, ValueError, RuntimeError):
            return Source("batches", "tokens", torch.as_tensor(given))
    values, labels = joined_batches(given, told or f"the {type(given).__name__}", most)
    return Source("batches", "tokens", values, labels=labels)
