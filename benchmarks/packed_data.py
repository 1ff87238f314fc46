"""Real sets as small files that travel: made once from the official folders, read anywhere.

    python -m benchmarks.packed_data --from FOLDER --out local/realdata [--sets cifar10,imdb]

Images are packed without loss: colour differences, the median predictor of LOCO-I, LZMA. A set is
a few folders, each small enough to travel alone: NAME-1, NAME-2, ... Reading needs all of them.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np

from headwise.data.classification import without_breaks
from headwise.data.official import (
    ImageSet,
    TextSet,
    read_cifar10,
    read_cifar100,
    read_imdb,
    read_svhn,
)
from headwise.data.text import Vocabulary, encode_all
from headwise.errors import UnreadableFileError

READERS = {"cifar10": read_cifar10, "cifar100": read_cifar100, "svhn": read_svhn, "imdb": read_imdb}

#: Images in a file, and files in a folder: about 34 MB.
PER_FILE, PER_FOLDER = 5_000, 4

#: Words kept of a review.
IMDB_LENGTH = 256

Arrays = dict[str, np.ndarray]


def pack(name: str, source: Path, out: Path) -> list[Path]:
    """Write one set as folders; what is there already is written again."""
    found = READERS[name](source)
    arrays = _images(found) if isinstance(found, ImageSet) else _words(found)
    jobs = list(_files(name, arrays, out))
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(_write, jobs))


def _images(found: ImageSet) -> Arrays:
    parts = {"train": found.train, "test": found.test}
    images = {f"x_{key}": part.images for key, part in parts.items()}
    return images | {f"y_{key}": part.labels.astype(np.uint8) for key, part in parts.items()}


def _words(found: TextSet) -> Arrays:
    texts = {key: without_breaks(found, key) for key in ("train", "test")}
    vocabulary = Vocabulary.of("\n".join(texts["train"]), "word")
    arrays: Arrays = {}
    for key, own in texts.items():
        ids, lengths = encode_all(vocabulary.encode, own, IMDB_LENGTH)
        arrays[f"x_{key}"] = ids.numpy().astype(np.uint16)
        arrays[f"n_{key}"] = lengths.numpy().astype(np.uint16)
        arrays[f"y_{key}"] = getattr(found, key).labels.astype(np.uint8)
    return arrays


def _files(name: str, arrays: Arrays, out: Path) -> Iterable[tuple[Path, np.ndarray]]:
    """Every file and the array it holds; small arrays go with the first folder."""
    number = 0
    for key, array in arrays.items():
        if array.ndim != 4:
            yield out / f"{name}-1" / f"{key}.npy.xz", array
            continue
        for first in range(0, len(array), PER_FILE):
            folder = out / f"{name}-{number // PER_FOLDER + 1}"
            yield folder / f"{key}.{first:05d}.npy.xz", array[first : first + PER_FILE]
            number += 1


def _write(job: tuple[Path, np.ndarray]) -> Path:
    path, array = job
    packed = residuals(array) if array.ndim == 4 else array
    head = f"{packed.dtype.str} {' '.join(map(str, packed.shape))}\n".encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(head + np.ascontiguousarray(packed).tobytes(), preset=6))
    return path


def _read(path: Path) -> np.ndarray:
    try:
        head, body = lzma.decompress(path.read_bytes()).split(b"\n", 1)
        kind, *sizes = head.decode().split()
        array = np.frombuffer(body, dtype=kind).reshape([int(size) for size in sizes])
    except (OSError, lzma.LZMAError, ValueError) as error:
        raise UnreadableFileError(
            f"{path} is damaged or cut short ({type(error).__name__})", hint="pack the set again"
        ) from None
    return images_of(array) if array.ndim == 4 else array


def read(name: str, folder: Path, whole: bool = True) -> Arrays:
    """The arrays of a packed set; with ``whole`` false, as many images as have arrived."""
    files = sorted(folder.glob(f"{name}-[0-9]/*.npy.xz"))
    if not files:
        raise UnreadableFileError(
            f"expected folders {name}-1, {name}-2, ... in {folder}, found none",
            hint=f"python -m benchmarks.packed_data --sets {name} --out {folder} makes them",
        )
    with ThreadPoolExecutor() as pool:
        pieces = list(pool.map(_read, files))
    arrays: dict[str, list[np.ndarray]] = {}
    for file, piece in zip(files, pieces, strict=True):
        arrays.setdefault(file.name.split(".")[0], []).append(piece)
    joined = {key: np.concatenate(own) for key, own in arrays.items()}
    return joined if not whole else _checked(name, folder, joined)


def _checked(name: str, folder: Path, arrays: Arrays) -> Arrays:
    for key in ("train", "test"):
        have, want = len(arrays.get(f"x_{key}", ())), len(arrays.get(f"y_{key}", ()))
        if have != want or not have:
            raise UnreadableFileError(
                f"expected {want} samples in the {key} part of {name}, got {have}",
                hint=f"bring every folder {name}-1, {name}-2, ... to {folder}",
            )
    return arrays


def residuals(images: np.ndarray) -> np.ndarray:
    """What the predictor of each pixel (N, 3, H, W) misses, modulo 256."""
    planes = _colour_differences(images)
    guess = np.zeros_like(planes)
    guess[..., 1:, 1:] = _median(planes[..., 1:, :-1], planes[..., :-1, 1:], planes[..., :-1, :-1])
    guess[..., 0, 1:] = planes[..., 0, :-1]
    guess[..., 1:, 0] = planes[..., :-1, 0]
    return (planes - guess).astype(np.uint8)


def images_of(missed: np.ndarray) -> np.ndarray:
    """The images of these residuals: pixel by pixel, all images at once."""
    # Images last: one pixel of all of them lies in one piece.
    planes = np.ascontiguousarray(missed.transpose(2, 3, 1, 0)).astype(np.int16)
    height, width = planes.shape[:2]
    for row in range(height):
        for column in range(width):
            planes[row, column] += _guess(planes, row, column)
            planes[row, column] &= 255
    red, green, blue = planes.transpose(2, 3, 0, 1)
    return np.stack([red + green, green, blue + green], axis=1).astype(np.uint8)


def _guess(planes: np.ndarray, row: int, column: int) -> np.ndarray | int:
    if row and column:
        left, above = planes[row, column - 1], planes[row - 1, column]
        return _median(left, above, planes[row - 1, column - 1])
    if column:
        return planes[row, column - 1]
    return planes[row - 1, column] if row else 0


def _colour_differences(images: np.ndarray) -> np.ndarray:
    red, green, blue = images.astype(np.int16).swapaxes(0, 1)
    return np.stack([(red - green) & 255, green, (blue - green) & 255], axis=1)


def _median(left: np.ndarray, above: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """The median of left, above and left + above − corner: an edge or a plane."""
    low, high = np.minimum(left, above), np.maximum(left, above)
    return np.clip(left + above - corner, low, high)


def main() -> int:
    """Pack the sets that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, required=True, help="official folders")
    parser.add_argument("--out", type=Path, default=Path("local/realdata"))
    parser.add_argument("--sets", default=",".join(READERS), help="by commas")
    given = parser.parse_args()
    for name in given.sets.split(","):
        for folder in sorted({path.parent for path in pack(name, given.source, given.out)}):
            size = sum(file.stat().st_size for file in folder.iterdir())
            print(f"{folder.name}: {size / 2**20:.1f} MiB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
