"""The cache of image sets: memory-mapped, the same content, made again when a file changes."""

import os
import pickle

import numpy as np

from headwise.data.sets import open_images


def write(folder, value):
    inside = folder / "cifar-100-python"
    inside.mkdir(exist_ok=True)
    for part in ("train", "test"):
        content = {"data": np.full((2, 3072), value, np.uint8), "fine_labels": [0, 99]}
        (inside / part).write_bytes(pickle.dumps(content, protocol=2))
        os.utime(inside / part, ns=(value, value))


def test_cached_images_are_mapped_and_equal(tmp_path):
    write(tmp_path, 7)
    plain = open_images("cifar100", tmp_path)
    for _ in range(2):
        cached = open_images("cifar100", tmp_path, tmp_path / "cache")
        assert isinstance(cached.train.images, np.memmap)
        assert np.array_equal(cached.test.images, plain.test.images)
        assert cached.train.labels.tolist() == [0, 99]
        assert cached.classes == 100


def test_a_changed_file_is_read_again(tmp_path):
    for value in (7, 8):
        write(tmp_path, value)
        cached = open_images("cifar100", tmp_path, tmp_path / "cache")
        assert int(cached.train.images.max()) == value


def test_an_interrupted_copy_is_made_again(tmp_path):
    write(tmp_path, 7)
    open_images("cifar100", tmp_path, tmp_path / "cache")
    place = next((tmp_path / "cache").iterdir())
    (place / "classes.npy").unlink()
    (place / "test_images.npy").write_bytes(b"half")
    assert int(open_images("cifar100", tmp_path, tmp_path / "cache").test.images.max()) == 7
