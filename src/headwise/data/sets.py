"""The real sets that headwise reads: which are found where, and the command that gets the rest."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwise.data import official
from headwise.data.hugging_face_sets import holds_hugging_face_set, read_hugging_face
from headwise.data.official import ImagePart, ImageSet, TextSet
from headwise.endings import refuse_missing_folder
from headwise.errors import BadInputError, UnreadableFileError

#: The environment variable that names the folder of real data.
VARIABLE = "HEADWISE_DATA"


@dataclass(frozen=True)
class KnownSet:
    """A data set that headwise reads.

    Args:
        name: Its name.
        what: What it holds.
        files: The files that hold it.
        get: The command that gets it.
        cite: Whom to cite.

    Example:
        >>> KNOWN_SETS[0].name
        'cifar10'
    """

    name: str
    what: str
    files: tuple[str, ...]
    get: str
    cite: str

    def place(self, folder: Path | str) -> Path | None:
        """Where it lies in a folder: the official files, or what Hugging Face datasets wrote."""
        paths = [Path(folder) / file for file in self.files]
        if all(path.exists() for path in paths):
            return paths[0]
        other = Path(folder) / self.name
        return other if holds_hugging_face_set(other) else None


KNOWN_SETS = (
    KnownSet(
        "cifar10",
        "50,000 + 10,000 images of 32 × 32, 10 classes",
        ("cifar-10-batches-py",),
        official.CIFAR10_GET,
        "Krizhevsky 2009",
    ),
    KnownSet(
        "cifar100",
        "50,000 + 10,000 images of 32 × 32, 100 classes",
        ("cifar-100-python",),
        official.CIFAR100_GET,
        "Krizhevsky 2009",
    ),
    KnownSet(
        "svhn",
        "73,257 + 26,032 images of 32 × 32, 10 classes",
        ("train_32x32.mat", "test_32x32.mat"),
        official.SVHN_GET,
        "Netzer 2011, non-commercial use",
    ),
    KnownSet(
        "imdb",
        "25,000 + 25,000 film reviews, 2 classes",
        ("aclImdb",),
        official.IMDB_GET,
        "Maas 2011",
    ),
)


def data_folder() -> Path:
    """The folder of real data: HEADWISE_DATA if set, else ``data`` here.

    Returns:
        The folder, which need not exist.

    Example:
        >>> data_folder().name != ""
        True
    """
    return Path(os.environ.get(VARIABLE) or "data")


#: The set that comes with the package, in scikit-learn's copy.
DIGITS = {
    "name": "digits",
    "what": "1,797 images of 8 × 8, 10 classes",
    "path": "digits",  # what other commands take for it
    "get": None,
    "cite": "Alpaydin and Kaynak, 1998, in scikit-learn's copy",
}


@dataclass(frozen=True)
class FoundSets:
    """Which of the known sets a folder holds.

    Attributes:
        folder: Where they were looked for.
        places: Each set, with its path or None.
    """

    folder: Path
    places: dict[KnownSet, Path | None]

    def as_json(self) -> dict[str, Any]:
        """Return the folder and one object for each set, with values that JSON can write."""
        sets = [
            {
                "name": known.name,
                "what": known.what,
                "path": None if path is None else str(path),
                "get": self.command(known),
                "cite": known.cite,
            }
            for known, path in self.places.items()
        ]
        return {"folder": str(self.folder), "sets": [dict(DIGITS), *sets]}

    def command(self, known: KnownSet) -> str:
        """Return what to type in a shell to get a set."""
        place = shlex.quote(str(self.folder))
        return f"mkdir -p {place} && cd {place} && {known.get}"


def find_sets(folder: Path | str | None = None) -> FoundSets:
    """Look for the known sets in a folder.

    Args:
        folder: Where to look. The default, ``data_folder()``, need not exist.

    Returns:
        The folder, and where each set lies in it.

    Raises:
        BadInputError: If it is a file.
        UnreadableFileError: If a folder was given that does not exist.

    Example:
        >>> [known.name for known in find_sets(".").places]
        ['cifar10', 'cifar100', 'svhn', 'imdb']
    """
    place = data_folder() if folder is None else Path(folder)
    if folder is not None:
        refuse_missing_folder(place)
    if place.exists() and not place.is_dir():
        raise BadInputError(
            f"expected a folder of data sets, got the file {place}",
            hint="pass its folder",
        )
    return FoundSets(place, {known: known.place(place) for known in KNOWN_SETS})


def require_sets(names: Iterable[str], folder: Path | str) -> None:
    """Refuse in one line if a folder lacks some of these sets; names of other sets are passed over.

    Args:
        names: Names of sets, such as ``"cifar10"``.
        folder: Where the official files should lie.

    Raises:
        UnreadableFileError: Some are not there; the hint is the command that gets them.

    Example:
        >>> require_sets(["digits"], "nowhere")
        >>> require_sets(["svhn", "imdb"], "nowhere")
        Traceback (most recent call last):
        ...
        headwise.errors.UnreadableFileError: expected svhn, imdb in nowhere, ...
    """
    names = set(names)
    absent = [own for own in KNOWN_SETS if own.name in names and own.place(folder) is None]
    if absent:
        commands = " && ".join(own.get for own in absent)
        raise UnreadableFileError(
            f"expected {', '.join(own.name for own in absent)} in {folder}, found nothing",
            hint=f"get the data with: mkdir -p {folder} && cd {folder} && {commands}; "
            f"or set {VARIABLE} to the folder that holds them",
        )


#: Classes of every set.
CLASSES = {"digits": 10, "cifar10": 10, "cifar100": 100, "svhn": 10, "imdb": 2}

_IMAGE_READERS: dict[str, Callable[[Path], ImageSet]] = {
    "cifar10": official.read_cifar10,
    "cifar100": official.read_cifar100,
    "svhn": official.read_svhn,
}


def open_images(name: str, folder: Path | str, cache: Path | str | None = None) -> ImageSet:
    """Open a set of images; with a cache, from memory-mapped copies after the first time.

    A cached copy belongs to the files it was made of: when one changes its size or its time, a new
    copy is made.

    Args:
        name: ``"cifar10"``, ``"cifar100"`` or ``"svhn"``.
        folder: Where the official files lie.
        cache: A folder for the copies; None reads the official files each time.

    Returns:
        The set; with a cache its images are read from disk as they are used.

    Raises:
        BadInputError: There is no such set of images, or a file holds something else.
        UnreadableFileError: A file is absent or damaged.

    Example:
        >>> open_images("mnist", ".")
        Traceback (most recent call last):
        ...
        headwise.errors.BadInputError: expected one of cifar10, cifar100, svhn, got 'mnist'; ...
    """
    if name not in _IMAGE_READERS:
        raise BadInputError(
            f"expected one of {', '.join(_IMAGE_READERS)}, got {name!r}",
            hint="pass a set that `headwise data` lists",
        )
    folder = Path(folder)
    if cache is None:
        return _read_images(name, folder)
    place = Path(cache) / f"{name}-{_fingerprint(name, folder)}"
    if not (place / "classes.npy").exists():
        _store(_read_images(name, folder), place)
    parts = [
        ImagePart(*(np.load(place / f"{part}_{kind}.npy", mmap_mode="r") for kind in _KINDS))
        for part in ("train", "test")
    ]
    return ImageSet(name, int(np.load(place / "classes.npy")), *parts)


def _read_images(name: str, folder: Path) -> ImageSet:
    """From the official files, or from a folder that Hugging Face datasets wrote."""
    if not _written_by_datasets(name, folder):
        return _IMAGE_READERS[name](folder)
    found = read_hugging_face(folder / name, name=name, classes=CLASSES[name])
    if not isinstance(found, ImageSet) or found.train.images.shape[1:] != (3, 32, 32):
        raise BadInputError(
            f"expected images of 32 × 32 in {folder / name}, got something else",
            hint=f"check that this is {name}",
        )
    return found


def open_texts(name: str, folder: Path | str) -> TextSet:
    """Open a set of texts, from the official files or as Hugging Face ``datasets`` wrote it.

    Args:
        name: ``"imdb"``.
        folder: Where the official files lie, or a folder ``imdb`` written by ``datasets``.

    Returns:
        A ``TextSet`` with the texts and labels of its training and test parts.

    Raises:
        BadInputError: There is no such set of texts, or a file holds something else.
        UnreadableFileError: A file is absent or damaged.

    Example:
        >>> open_texts("mnist", ".")
        Traceback (most recent call last):
        ...
        headwise.errors.BadInputError: expected imdb, got 'mnist'; pass a set that ...
    """
    if name != "imdb":
        raise BadInputError(
            f"expected imdb, got {name!r}", hint="pass a set that `headwise data` lists"
        )
    folder = Path(folder)
    if not _written_by_datasets(name, folder):
        return official.read_imdb(folder)
    found = read_hugging_face(folder / name, name=name, classes=CLASSES[name])
    if not isinstance(found, TextSet):
        raise BadInputError(
            f"expected texts in {folder / name}, got images", hint=f"check that this is {name}"
        )
    return found


def _written_by_datasets(name: str, folder: Path) -> bool:
    known = next(own for own in KNOWN_SETS if own.name == name)
    return known.place(folder) == folder / name


_KINDS = ("images", "labels")


def _fingerprint(name: str, folder: Path) -> str:
    """What changes when a file of the set does: names, sizes and times."""
    known = next(own for own in KNOWN_SETS if own.name == name)
    files = [
        file
        for top in (*known.files, name)
        for file in sorted([folder / top, *(folder / top).glob("*")])
        if file.is_file()
    ]
    told = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def _store(found: ImageSet, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for part in ("train", "test"):
        for kind in _KINDS:
            np.save(place / f"{part}_{kind}.npy", getattr(getattr(found, part), kind))
    # Last, so that a copy that was interrupted is made again.
    np.save(place / "classes.npy", found.classes)
