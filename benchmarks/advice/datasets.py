"""Real data as compact files: made once from the official folders, read by the sweeps.

    python -m benchmarks.advice.datasets --cifar10 FOLDER --imdb FOLDER --out FOLDER
    python -m benchmarks.advice.datasets --cifar100 FOLDER --svhn FOLDER --out FOLDER
    python -m benchmarks.advice.datasets --packages FILE --libraries FOLDER --out FOLDER

The folders hold ``cifar-10-batches-py/``, ``aclImdb/``, ``cifar-100-python/`` and
``train_32x32.mat`` with ``test_32x32.mat``; that of ``--libraries`` is a ``site-packages`` folder.
The file of ``--packages`` is what these print on Debian:

    apt-get -o Acquire::Languages=en update
    apt-cache pkgnames | sort | xargs apt-cache -o Acquire::Languages=en show

A task without its file says so; all others run.
"""

from __future__ import annotations

import argparse
import io
import lzma
from pathlib import Path

import numpy as np
from benchmarks.advice.text_sets import (
    CODE_LENGTH,
    SECTION_LENGTH,
    Labelled,
    code_libraries,
    numbered,
    package_sections,
    vocabulary_of,
    words_of,
)

from headwise.data.pickles import read_plain_pickle
from headwise.errors import UnreadableFileError

#: How many images and reviews are kept; all are the first of a shuffle with seed 0.
CIFAR10_TRAINED, CIFAR10_HELD_OUT = 12_000, 3_000
IMDB_TRAINED, IMDB_HELD_OUT = 25_000, 8_000

OTHER_IMAGES_TRAINED, OTHER_IMAGES_HELD_OUT = 10_000, 2_000

#: Words of a review that are kept.
IMDB_LENGTH = 128

Arrays = dict[str, np.ndarray]


def read_set(folder: Path, name: str) -> Arrays:
    """The arrays of one compact file; images come back from their row differences."""
    path = folder / f"{name}.npz.xz"
    if not path.exists():
        raise UnreadableFileError(
            f"{path} is not there", hint="python -m benchmarks.advice.datasets makes it"
        )
    with np.load(io.BytesIO(lzma.decompress(path.read_bytes()))) as stored:
        arrays = dict(stored)
    return {key: _from_differences(a) if a.ndim == 4 else a for key, a in arrays.items()}


def write_set(folder: Path, name: str, arrays: Arrays) -> Path:
    """One compact file; neighbouring pixels are alike, so their differences pack well."""
    folder.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    np.savez(packed, **{key: _differences(a) if a.ndim == 4 else a for key, a in arrays.items()})
    path = folder / f"{name}.npz.xz"
    path.write_bytes(lzma.compress(packed.getvalue()))
    return path


def _differences(images: np.ndarray) -> np.ndarray:
    return np.diff(images, axis=-1, prepend=np.zeros_like(images[..., :1]))


def _from_differences(steps: np.ndarray) -> np.ndarray:
    return np.cumsum(steps, axis=-1, dtype=np.uint8)


def cifar10(folder: Path) -> Arrays:
    """A subset of CIFAR-10 from its official batches, uint8 (b, 3, 32, 32)."""
    names = [f"data_batch_{number}" for number in range(1, 6)]
    trained = _cifar_part(folder, names, CIFAR10_TRAINED)
    held_out = _cifar_part(folder, ["test_batch"], CIFAR10_HELD_OUT)
    return _parts(trained, held_out)


def _cifar_part(folder: Path, names: list[str], most: int) -> tuple[np.ndarray, np.ndarray]:
    batches = [read_plain_pickle(folder / "cifar-10-batches-py" / name) for name in names]
    images = np.concatenate([batch["data"] for batch in batches]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([batch["labels"] for batch in batches]).astype(np.uint8)
    return _first_of_shuffle(images, labels, most)


def cifar100(folder: Path) -> Arrays:
    """CIFAR-100 with its 20 coarse classes: 100 classes of 100 images each are too few to learn."""
    trained, held_out = (
        _cifar100_part(folder / "cifar-100-python" / name, most)
        for name, most in (("train", OTHER_IMAGES_TRAINED), ("test", OTHER_IMAGES_HELD_OUT))
    )
    return _parts(trained, held_out)


def _cifar100_part(path: Path, most: int) -> tuple[np.ndarray, np.ndarray]:
    stored = read_plain_pickle(path)
    images = np.asarray(stored["data"], dtype=np.uint8).reshape(-1, 3, 32, 32)
    return _first_of_shuffle(images, np.array(stored["coarse_labels"], dtype=np.uint8), most)


def svhn(folder: Path) -> Arrays:
    """The cropped digits of SVHN; the label 10 stands for the digit 0."""
    trained, held_out = (
        _svhn_part(folder / f"{name}_32x32.mat", most)
        for name, most in (("train", OTHER_IMAGES_TRAINED), ("test", OTHER_IMAGES_HELD_OUT))
    )
    return _parts(trained, held_out)


def _svhn_part(path: Path, most: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import loadmat

    stored = loadmat(path)
    labels = (stored["y"].ravel() % 10).astype(np.uint8)
    return _first_of_shuffle(np.ascontiguousarray(stored["X"].transpose(3, 2, 0, 1)), labels, most)


def imdb(folder: Path) -> Arrays:
    """Word numbers of the first words of reviews; the vocabulary is of the training part alone."""
    trained, held_out = (_reviews(folder / "aclImdb" / part) for part in ("train", "test"))
    return _texts(trained, held_out, IMDB_LENGTH, (IMDB_TRAINED, IMDB_HELD_OUT))


def _reviews(folder: Path) -> list[Labelled]:
    return [
        (words_of(file.read_text(encoding="utf-8").replace("<br />", " ")), label)
        for label, name in enumerate(("neg", "pos"))
        for file in sorted((folder / name).glob("*.txt"))
    ]


def packages(file: Path) -> Arrays:
    """Word numbers of the first words of descriptions of Debian packages, and their sections."""
    return _texts(*package_sections(file), SECTION_LENGTH)


def libraries(folder: Path) -> Arrays:
    """Word numbers of pieces of source code, and the libraries that they come from."""
    return _texts(*code_libraries(folder), CODE_LENGTH)


def _texts(
    trained: list[Labelled],
    held_out: list[Labelled],
    length: int,
    most: tuple[int, int] = (10**9, 10**9),
) -> Arrays:
    numbers = vocabulary_of(trained)
    parts = [
        _first_of_shuffle(*numbered(texts, numbers, length), kept)
        for texts, kept in zip((trained, held_out), most, strict=True)
    ]
    return _parts(parts[0], parts[1])


def _first_of_shuffle(
    samples: np.ndarray, labels: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(0).permutation(len(labels))[:most]
    return samples[order], labels[order]


def _parts(
    trained: tuple[np.ndarray, np.ndarray], held_out: tuple[np.ndarray, np.ndarray]
) -> Arrays:
    names = ("x_train", "y_train", "x_test", "y_test")
    return dict(zip(names, (*trained, *held_out), strict=True))


def main() -> None:
    """Make the compact files that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cifar10", type=Path, help="folder that holds cifar-10-batches-py/")
    parser.add_argument("--imdb", type=Path, help="folder that holds aclImdb/")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cifar100", type=Path, help="folder that holds cifar-100-python/")
    parser.add_argument("--svhn", type=Path, help="folder that holds train_32x32.mat")
    parser.add_argument("--packages", type=Path, help="file of what apt-cache show prints")
    parser.add_argument("--libraries", type=Path, help="a site-packages folder")
    given = parser.parse_args()
    for make in (cifar10, imdb, cifar100, svhn, packages, libraries):
        name, folder = make.__name__, getattr(given, make.__name__)
        if folder is not None:
            path = write_set(given.out, name, make(folder))
            print(f"{path.name}: {path.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
