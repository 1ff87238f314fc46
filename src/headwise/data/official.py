"""Read the official files of CIFAR-10, CIFAR-100, SVHN and IMDB, and check what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwise.data.pickles import read_plain_pickle
from headwise.errors import BadInputError, UnreadableFileError

#: Side and channels of every image here.
SIDE, CHANNELS = 32, 3


@dataclass(frozen=True, eq=False)
class ImagePart:
    """Images (N, 3, 32, 32) of bytes and their classes."""

    images: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, eq=False)
class TextPart:
    """Texts and their classes."""

    texts: list[str]
    labels: np.ndarray


@dataclass(frozen=True, eq=False)
class ImageSet:
    """A set of images with its official parts.

    Args:
        name: The name of the set.
        classes: The number of classes.
        train: The official training part.
        test: The official test part.

    Example:
        >>> empty = ImagePart(np.zeros((0, 3, 32, 32), np.uint8), np.zeros(0, np.int64))
        >>> ImageSet("cifar10", 10, empty, empty).classes
        10
    """

    name: str
    classes: int
    train: ImagePart
    test: ImagePart


@dataclass(frozen=True, eq=False)
class TextSet:
    """A set of texts with its official parts.

    Args:
        name: The name of the set.
        classes: The number of classes.
        train: The official training part.
        test: The official test part.

    Example:
        >>> part = TextPart(["good film"], np.array([1]))
        >>> len(TextSet("imdb", 2, part, part).train.texts)
        1
    """

    name: str
    classes: int
    train: TextPart
    test: TextPart


def read_cifar10(folder: Path | str) -> ImageSet:
    """Read CIFAR-10 from the folder that holds ``cifar-10-batches-py``.

    Args:
        folder: Where the archive was unpacked.

    Returns:
        50,000 training and 10,000 test images, or as many as the files hold.

    Raises:
        UnreadableFileError: A file is absent or damaged.
        BadInputError: A file holds other shapes, other labels, or code.

    Example:
        >>> read_cifar10("nowhere")
        Traceback (most recent call last):
        ...
        headwise.errors.UnreadableFileError: expected cifar-10-batches-py in nowhere, ...
    """
    inside = _inside(folder, "cifar-10-batches-py", CIFAR10_GET)
    names = [f"data_batch_{number}" for number in range(1, 6)]
    parts = [_cifar_part(inside / name, "labels", 10) for name in names]
    return ImageSet("cifar10", 10, _joined(parts), _cifar_part(inside / "test_batch", "labels", 10))


def read_cifar100(folder: Path | str) -> ImageSet:
    """Read CIFAR-100 with its fine labels from the folder that holds ``cifar-100-python``.

    Args:
        folder: Where the archive was unpacked.

    Returns:
        The training and test images of 100 classes.

    Raises:
        UnreadableFileError: A file is absent or damaged.
        BadInputError: A file holds other shapes, other labels, or code.

    Example:
        >>> read_cifar100("nowhere")
        Traceback (most recent call last):
        ...
        headwise.errors.UnreadableFileError: expected cifar-100-python in nowhere, ...
    """
    inside = _inside(folder, "cifar-100-python", CIFAR100_GET)
    train, test = (_cifar_part(inside / part, "fine_labels", 100) for part in ("train", "test"))
    return ImageSet("cifar100", 100, train, test)


def read_svhn(folder: Path | str) -> ImageSet:
    """Read the cropped digits of SVHN from ``train_32x32.mat`` and ``test_32x32.mat``.

    The official files write the digit 0 as class 10; here it is class 0.

    Args:
        folder: The folder that holds both files.

    Returns:
        The training and test images of 10 classes.

    Raises:
        UnreadableFileError: A file is absent or damaged.
        BadInputError: A file holds other shapes or labels.

    Example:
        >>> read_svhn("nowhere")
        Traceback (most recent call last):
        ...
        headwise.errors.UnreadableFileError: expected train_32x32.mat in nowhere, ...
    """
    parts = [_inside(folder, f"{part}_32x32.mat", SVHN_GET) for part in ("train", "test")]
    return ImageSet("svhn", 10, *map(_svhn_part, parts))


def read_imdb(folder: Path | str) -> TextSet:
    """Read the labelled reviews of IMDB from the folder that holds ``aclImdb``.

    Args:
        folder: Where the archive was unpacked.

    Returns:
        25,000 training and 25,000 test reviews, or as many as there are; class 1 is positive.

    Raises:
        UnreadableFileError: A folder is absent or empty, or a review is not UTF-8.

    Example:
        >>> read_imdb("nowhere")
        Traceback (most recent call last):
        ...
        headwise.errors.UnreadableFileError: expected aclImdb in nowhere, ...
    """
    inside = _inside(folder, "aclImdb", IMDB_GET)
    return TextSet("imdb", 2, *(_imdb_part(inside / part) for part in ("train", "test")))


def _fetch(url: str, unpack: bool = True) -> str:
    name = url.rsplit("/", 1)[-1]
    return f"curl -LO {url}" + (f" && tar xzf {name}" if unpack else "")


_KRIZHEVSKY = "https://www.cs.toronto.edu/~kriz"
_NETZER = "http://ufldl.stanford.edu/housenumbers"
CIFAR10_GET = _fetch(f"{_KRIZHEVSKY}/cifar-10-python.tar.gz")
CIFAR100_GET = _fetch(f"{_KRIZHEVSKY}/cifar-100-python.tar.gz")
SVHN_GET = " && ".join(_fetch(f"{_NETZER}/{p}_32x32.mat", unpack=False) for p in ("train", "test"))
IMDB_GET = _fetch("https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz")


def _inside(folder: Path | str, name: str, get: str) -> Path:
    path = Path(folder) / name
    if not path.exists():
        raise UnreadableFileError(
            f"expected {name} in {folder}, found nothing of that name",
            hint=f"get it with: mkdir -p {folder} && cd {folder} && {get}",
        )
    return path


def _cifar_part(path: Path, label_key: str, classes: int) -> ImagePart:
    content = read_plain_pickle(path)
    for key in ("data", label_key):
        if key not in content:
            raise BadInputError(
                f"expected the key {key!r} in {path}, got {sorted(content)}",
                hint="download it again",
            )
    data = np.asarray(content["data"])
    if data.ndim != 2 or data.shape[1] != CHANNELS * SIDE**2 or data.dtype != np.uint8:
        raise BadInputError(
            f"expected rows of {CHANNELS * SIDE**2} bytes in {path}, "
            f"got {data.dtype} of shape {data.shape}",
            hint="download it again",
        )
    images = data.reshape(-1, CHANNELS, SIDE, SIDE)
    return ImagePart(images, checked_labels(content[label_key], len(images), classes, path))


def _svhn_part(path: Path) -> ImagePart:
    from scipy.io import loadmat

    try:
        content = loadmat(path)
        pixels, labels = content["X"], content["y"].reshape(-1)
    except Exception as error:  # scipy raises as many kinds as there are damaged files
        raise UnreadableFileError(
            f"{path} is damaged or cut short ({type(error).__name__})", hint="download it again"
        ) from None
    if pixels.ndim != 4 or pixels.shape[:3] != (SIDE, SIDE, CHANNELS) or pixels.dtype != np.uint8:
        raise BadInputError(
            f"expected X of bytes with shape (32, 32, 3, N) in {path}, "
            f"got {pixels.dtype} of shape {pixels.shape}",
            hint="download it again",
        )
    images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    found = checked_labels(labels.astype(np.int64) - 1, len(images), 10, path, first=1)
    return ImagePart(images, (found + 1) % 10)


def checked_labels(
    labels: object, count: int, classes: int, path: Path, first: int = 0
) -> np.ndarray:
    """Labels as whole numbers below the number of classes; ``first`` is what the file calls 0."""
    found = np.asarray(labels)
    if found.shape != (count,) or found.dtype.kind not in "iu":
        raise BadInputError(
            f"expected {count} whole numbers as labels in {path}, "
            f"got {found.dtype} of shape {found.shape}",
            hint="download it again",
        )
    if count and not (found.min() >= 0 and found.max() < classes):
        raise BadInputError(
            f"expected labels from {first} to {classes - 1 + first} in {path}, "
            f"got {found.min() + first} to {found.max() + first}",
            hint="check that this is the right set, or download it again",
        )
    return found.astype(np.int64)


def _joined(parts: list[ImagePart]) -> ImagePart:
    return ImagePart(
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def _imdb_part(folder: Path) -> TextPart:
    files = [
        (f, label) for label, kind in enumerate(("neg", "pos")) for f in _reviews(folder, kind)
    ]
    try:
        texts = [file.read_text(encoding="utf-8") for file, _ in files]
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFileError(
            f"a review in {folder} cannot be read ({type(error).__name__})",
            hint="unpack the archive again",
        ) from None
    return TextPart(texts, np.array([label for _, label in files], dtype=np.int64))


def _reviews(folder: Path, kind: str) -> list[Path]:
    files = sorted((folder / kind).glob("*.txt"))
    if not files:
        raise UnreadableFileError(
            f"expected reviews in {folder / kind}, found none",
            hint="unpack the archive again, or get it with: " + IMDB_GET,
        )
    return files
