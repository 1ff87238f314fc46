"""Read sets of images or texts that Hugging Face ``datasets`` wrote: Arrow folders and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headwise.data.official import ImagePart, ImageSet, TextPart, TextSet, checked_labels
from headwise.errors import BadInputError, UnreadableFileError, needs_extra

#: The file that ``DatasetDict.save_to_disk`` leaves in its folder.
SAVED = "dataset_dict.json"

#: Columns that hold what a set is about, and its classes, by the names that sets on the Hub use.
IMAGES = ("img", "image")
TEXTS = ("text", "sentence", "review")
LABELS = ("label", "fine_label", "labels")

PARTS = ("train", "test")


def holds_hugging_face_set(folder: Path | str) -> bool:
    """Whether a folder was written by ``save_to_disk``, or has Parquet files of both parts.

    Args:
        folder: The folder.

    Returns:
        Whether ``read_hugging_face`` can try it.

    Example:
        >>> holds_hugging_face_set("nowhere")
        False
    """
    folder = Path(folder)
    return (folder / SAVED).is_file() or all(_parquet_files(folder, part) for part in PARTS)


def read_hugging_face(
    folder: Path | str, *, name: str = "", classes: int | None = None
) -> ImageSet | TextSet:
    """Read a set of images or texts that Hugging Face ``datasets`` wrote.

    Args:
        folder: A folder written by ``DatasetDict.save_to_disk``, or one with Parquet files whose
            names begin with ``train`` and ``test``, as downloaded from the Hub.
        name: What to call the set; empty takes the folder's name.
        classes: How many classes there must be; None takes what the set says.

    Returns:
        Images as bytes (N, 3, S, S), or texts, with their classes.

    Raises:
        UnreadableFileError: The folder or a file in it is absent or damaged.
        BadInputError: There is no column of images or texts, images differ in size, or labels are
            out of range.
        MissingExtraError: The package datasets is not installed.

    Example:
        >>> read_hugging_face("nowhere")
        Traceback (most recent call last):
        ...
        headwise.errors.UnreadableFileError: expected dataset_dict.json or train*.parquet ...
    """
    folder = Path(folder)
    name = name or folder.name
    if not holds_hugging_face_set(folder):
        raise UnreadableFileError(
            f"expected {SAVED} or train*.parquet and test*.parquet in {folder}, found neither",
            hint="write it with datasets.DatasetDict.save_to_disk, or download its Parquet files",
        )
    parts = [_part(folder, part) for part in PARTS]
    labels_of = _column(parts[0], LABELS, folder)
    classes = classes or _classes(parts[0], labels_of)
    found = set(parts[0].column_names)
    if found & set(IMAGES):
        column = _column(parts[0], IMAGES, folder)
        images = [
            ImagePart(_pixels(part, column, folder), _labels(part, labels_of, classes, folder))
            for part in parts
        ]
        return ImageSet(name, classes, *images)
    column = _column(parts[0], TEXTS, folder)
    texts = [
        TextPart([str(text) for text in part[column]], _labels(part, labels_of, classes, folder))
        for part in parts
    ]
    return TextSet(name, classes, *texts)


def _parquet_files(folder: Path, part: str) -> list[Path]:
    # The Hub keeps them in a subfolder, such as data or plain_text.
    return sorted([*folder.glob(f"{part}*.parquet"), *folder.glob(f"*/{part}*.parquet")])


def _part(folder: Path, part: str) -> Any:
    """One part as a ``datasets.Dataset``; nothing is downloaded, cached or executed."""
    try:
        import datasets
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise needs_extra("datasets", "datasets") from None
    try:
        if (folder / SAVED).is_file():
            return datasets.load_from_disk(str(folder))[part]
        tables = [parquet.read_table(file) for file in _parquet_files(folder, part)]
        return datasets.Dataset(pyarrow.concat_tables(tables))
    except Exception as error:  # arrow raises as many kinds as there are damaged files
        raise UnreadableFileError(
            f"the part {part} of {folder} is damaged or cut short ({type(error).__name__})",
            hint="write or download it again",
        ) from None


def _column(part: Any, names: Sequence[str], folder: Path) -> str:
    found = next((name for name in names if name in part.column_names), None)
    if found is None:
        raise BadInputError(
            f"expected a column called {' or '.join(names)} in {folder}, "
            f"got {', '.join(part.column_names)}",
            hint="rename the column with datasets.Dataset.rename_column",
        )
    return found


def _classes(part: Any, column: str) -> int:
    known = getattr(part.features[column], "num_classes", None)
    return known or int(max(part[column])) + 1


def _labels(part: Any, column: str, classes: int, folder: Path) -> np.ndarray:
    return checked_labels(list(part[column]), len(part), classes, folder)


def _pixels(part: Any, column: str, folder: Path) -> np.ndarray:
    try:
        found = [np.asarray(image.convert("RGB"), dtype=np.uint8) for image in part[column]]
    except Exception as error:  # pillow raises by format
        raise UnreadableFileError(
            f"an image in {folder} cannot be read ({type(error).__name__})",
            hint="write or download it again",
        ) from None
    sizes = {image.shape for image in found}
    if len(sizes) > 1:
        raise BadInputError(
            f"expected images of one size in {folder}, got {len(sizes)} sizes",
            hint="resize them to one size first",
        )
    return np.ascontiguousarray(np.stack(found).transpose(0, 3, 1, 2))
