"""Sets that Hugging Face datasets wrote: the same content as the official files hold."""

import builtins

import numpy as np
import pytest

from headwise.data import open_images, open_texts, read_hugging_face
from headwise.data.sets import KNOWN_SETS
from headwise.errors import BadInputError, MissingExtraError, UnreadableFileError

datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
Image = pytest.importorskip("PIL.Image", reason="the package pillow is not installed")

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)


def image_dict(label=(3, 9, 0, 1), sizes=(32, 32, 32, 32), column="img"):
    images = [Image.fromarray(p).resize((s, s)) for p, s in zip(PIXELS, sizes, strict=True)]
    features = datasets.Features({column: datasets.Image(), "label": datasets.Value("int64")})
    whole = datasets.Dataset.from_dict({column: images, "label": list(label)}, features=features)
    return datasets.DatasetDict({"train": whole, "test": whole.select([1, 0])})


def text_dict():
    content = {"text": ["bad", "good"], "label": [0, 1]}
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    part = datasets.Dataset.from_dict(content, features=features)
    return datasets.DatasetDict({"train": part, "test": part})


def as_parquet(found, folder):
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        found[part].to_parquet(str(folder / f"{part}-00000-of-00001.parquet"))


@pytest.mark.parametrize("layout", ["save_to_disk", "parquet", "parquet of the Hub"])
def test_images_are_read_as_they_were(tmp_path, layout):
    place = tmp_path / "cifar10"
    if layout == "save_to_disk":
        image_dict().save_to_disk(place)
    else:
        as_parquet(image_dict(), place / "plain_text" if "Hub" in layout else place)
    found = open_images("cifar10", tmp_path)
    assert np.array_equal(found.train.images.transpose(0, 2, 3, 1), PIXELS)
    assert found.train.labels.tolist() == [3, 9, 0, 1]
    assert found.test.labels.tolist() == [9, 3]
    assert found.classes == 10
    assert KNOWN_SETS[0].place(tmp_path) == place
    cached = open_images("cifar10", tmp_path, tmp_path / "cache")
    assert np.array_equal(cached.train.images, found.train.images)


def test_texts_are_read_as_they_were(tmp_path):
    text_dict().save_to_disk(tmp_path / "imdb")
    found = open_texts("imdb", tmp_path)
    assert (found.test.texts, found.test.labels.tolist()) == (["bad", "good"], [0, 1])
    assert read_hugging_face(tmp_path / "imdb").classes == 2


def test_labels_out_of_range_are_refused(tmp_path):
    image_dict(label=(3, 10, 0, 1)).save_to_disk(tmp_path / "cifar10")
    with pytest.raises(BadInputError, match=r"expected labels from 0 to 9 .* got 0 to 10"):
        open_images("cifar10", tmp_path)


def test_images_of_two_sizes_are_refused(tmp_path):
    image_dict(sizes=(32, 16, 32, 32)).save_to_disk(tmp_path / "own")
    with pytest.raises(BadInputError, match=r"expected images of one size .* got 2 sizes"):
        read_hugging_face(tmp_path / "own")


def test_images_of_another_size_are_not_cifar(tmp_path):
    image_dict(sizes=(16,) * 4).save_to_disk(tmp_path / "cifar10")
    with pytest.raises(BadInputError, match="expected images of 32 × 32"):
        open_images("cifar10", tmp_path)


def test_texts_are_not_images(tmp_path):
    text_dict().save_to_disk(tmp_path / "svhn")
    with pytest.raises(BadInputError, match="expected images of 32 × 32"):
        open_images("svhn", tmp_path)
    image_dict().save_to_disk(tmp_path / "imdb")
    with pytest.raises(BadInputError, match=r"got images|expected labels from 0 to 1"):
        open_texts("imdb", tmp_path)


def test_an_unknown_column_is_named(tmp_path):
    image_dict(column="picture").save_to_disk(tmp_path / "own")
    with pytest.raises(BadInputError, match=r"expected a column called text .* got picture, label"):
        read_hugging_face(tmp_path / "own")


def test_a_cut_file_is_one_line(tmp_path):
    as_parquet(image_dict(), tmp_path / "cifar10")
    file = next((tmp_path / "cifar10").glob("train*"))
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(UnreadableFileError, match=r"the part train of .* damaged or cut") as caught:
        open_images("cifar10", tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_set_is_named(tmp_path):
    with pytest.raises(UnreadableFileError, match=r"expected dataset_dict.json or train\*.parquet"):
        read_hugging_face(tmp_path)


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    text_dict().save_to_disk(tmp_path / "imdb")
    real = builtins.__import__

    def absent(name, *rest, **more):
        if name == "datasets":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=r"pip install 'datasets>=4'"):
        open_texts("imdb", tmp_path)
