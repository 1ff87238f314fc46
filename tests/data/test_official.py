"""The official formats: planted tiny sets read back; damaged and hostile ones refused in a line."""

import os
import pickle

import numpy as np
import pytest
from scipy.io import savemat

from headwise.data import read_cifar10, read_cifar100, read_imdb, read_svhn
from headwise.data.pickles import read_plain_pickle
from headwise.errors import BadInputError, HeadwiseError, UnreadableFileError


def rows(count, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)


def write_cifar10(folder, key=str, labels=(3, 9)):
    inside = folder / "cifar-10-batches-py"
    inside.mkdir()
    for seed, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        content = {key("data"): rows(len(labels), seed), key("labels"): list(labels)}
        (inside / name).write_bytes(pickle.dumps(content, protocol=2))
    return inside


@pytest.mark.parametrize("key", [str, str.encode], ids=["text keys", "bytes keys"])
def test_cifar10_reads_both_key_spellings(tmp_path, key):
    write_cifar10(tmp_path, key)
    found = read_cifar10(tmp_path)
    assert found.train.images.shape == (10, 3, 32, 32)
    assert found.train.images.dtype == np.uint8
    assert np.array_equal(found.train.images[2:4].reshape(2, -1), rows(2, 1))
    assert np.array_equal(found.test.images.reshape(2, -1), rows(2, 5))
    assert found.test.labels.tolist() == [3, 9]


def test_cifar100_reads_fine_labels(tmp_path):
    inside = tmp_path / "cifar-100-python"
    inside.mkdir()
    for part in ("train", "test"):
        content = {"data": rows(2), "fine_labels": [0, 99], "coarse_labels": [1, 1]}
        (inside / part).write_bytes(pickle.dumps(content, protocol=2))
    assert read_cifar100(tmp_path).train.labels.tolist() == [0, 99]


def test_svhn_class_ten_is_the_digit_zero(tmp_path):
    images = rows(3).reshape(3, 3, 32, 32)
    for part in ("train", "test"):
        content = {"X": images.transpose(2, 3, 1, 0), "y": np.array([[10], [1], [9]], np.uint8)}
        savemat(tmp_path / f"{part}_32x32.mat", content)
    found = read_svhn(tmp_path)
    assert found.test.labels.tolist() == [0, 1, 9]
    assert np.array_equal(found.test.images, images)


def test_imdb_reads_both_classes(tmp_path):
    for part in ("train", "test"):
        for kind in ("neg", "pos"):
            folder = tmp_path / "aclImdb" / part / kind
            folder.mkdir(parents=True)
            (folder / "0_0.txt").write_text(f"{part} {kind} é", encoding="utf-8")
    found = read_imdb(tmp_path)
    assert found.test.texts == ["test neg é", "test pos é"]
    assert found.test.labels.tolist() == [0, 1]


@pytest.mark.parametrize("read", [read_cifar10, read_cifar100, read_svhn, read_imdb])
def test_missing_folder_names_the_command_that_gets_it(tmp_path, read):
    with pytest.raises(
        UnreadableFileError, match=r"get it with: mkdir -p .* && cd .* curl -LO http"
    ) as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


class Hostile:
    """Runs a command when a careless reader opens it."""

    def __init__(self, proof):
        self.proof = proof

    def __reduce__(self):
        return os.mkdir, (str(self.proof),)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickle_with_code_is_refused_and_not_executed(tmp_path, protocol):
    inside = write_cifar10(tmp_path)
    proof = tmp_path / "executed"
    content = {"data": Hostile(proof), "labels": [1]}
    (inside / "data_batch_2").write_bytes(pickle.dumps(content, protocol=protocol))
    with pytest.raises(BadInputError, match=r"would run (posix|nt)\.mkdir; nothing was executed"):
        read_cifar10(tmp_path)
    assert not proof.exists()
    pickle.loads((inside / "data_batch_2").read_bytes())  # the trap itself works
    assert proof.exists()


def test_truncated_pickle(tmp_path):
    file = write_cifar10(tmp_path) / "data_batch_3"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(UnreadableFileError, match="data_batch_3 is damaged or cut short"):
        read_cifar10(tmp_path)


def test_truncated_mat(tmp_path):
    for part in ("train", "test"):
        savemat(tmp_path / f"{part}_32x32.mat", {"X": np.zeros((32, 32, 3, 9), np.uint8)})
    whole = (tmp_path / "train_32x32.mat").read_bytes()
    (tmp_path / "train_32x32.mat").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UnreadableFileError, match="damaged or cut short"):
        read_svhn(tmp_path)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"labels": [3, 10]}, "expected labels from 0 to 9 .* got 3 to 10"),
        ({"labels": [3]}, "expected 2 whole numbers as labels"),
        ({"data": rows(2)[:, :100]}, r"expected rows of 3072 bytes .* shape \(2, 100\)"),
        ({"data": rows(2).astype(float)}, "expected rows of 3072 bytes .* float64"),
    ],
)
def test_wrong_content_is_one_clear_line(tmp_path, change, line):
    file = write_cifar10(tmp_path) / "test_batch"
    content = {"data": rows(2), "labels": [1, 2]} | change
    file.write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(BadInputError, match=line) as caught:
        read_cifar10(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("label", "got"), [(0, "0 to 9"), (11, "9 to 11")])
def test_street_digits_have_labels_from_1_to_10(tmp_path, label, got):
    for part in ("train", "test"):
        content = {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[label], [9]])}
        savemat(tmp_path / f"{part}_32x32.mat", content)
    with pytest.raises(BadInputError, match=f"expected labels from 1 to 10 .* got {got}"):
        read_svhn(tmp_path)


def test_fine_labels_have_a_range(tmp_path):
    inside = tmp_path / "cifar-100-python"
    inside.mkdir()
    content = {"data": rows(2), "fine_labels": [0, 100]}
    (inside / "train").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(BadInputError, match=r"expected labels from 0 to 99 .* got 0 to 100"):
        read_cifar100(tmp_path)


def test_a_review_that_is_not_text_and_a_class_without_reviews(tmp_path):
    for part, kind in (("train", "neg"), ("train", "pos"), ("test", "neg")):
        folder = tmp_path / "aclImdb" / part / kind
        folder.mkdir(parents=True)
        (folder / "0_0.txt").write_text("a film", encoding="utf-8")
    with pytest.raises(UnreadableFileError, match=r"expected reviews in .*pos.*get it with: curl"):
        read_imdb(tmp_path)
    (tmp_path / "aclImdb" / "train" / "pos" / "0_0.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(UnreadableFileError, match=r"a review in .* cannot be read"):
        read_imdb(tmp_path)


def test_an_archive_that_was_not_unpacked_whole(tmp_path):
    """A download that broke off leaves some files out."""
    (write_cifar10(tmp_path) / "data_batch_5").unlink()
    with pytest.raises(UnreadableFileError, match=r"cannot open .*data_batch_5"):
        read_cifar10(tmp_path)


def test_missing_key_and_other_content(tmp_path):
    file = write_cifar10(tmp_path) / "test_batch"
    for content in ({"data": rows(2)}, [1, 2]):
        file.write_bytes(pickle.dumps(content, protocol=2))
        with pytest.raises(HeadwiseError, match=r"expected the key 'labels'|expected a dictionary"):
            read_cifar10(tmp_path)


def test_a_pickled_name_with_a_line_break_is_refused_in_one_line(tmp_path):
    path = tmp_path / "data_batch_1"
    # Protocol 4 takes names from the stack, so that they may hold any character.
    name = b"dty}\n"
    path.write_bytes(b"\x80\x04\x8c\x05numpy\x8c" + bytes([len(name)]) + name + b"\x93.")
    with pytest.raises(BadInputError, match=r"would run numpy\.dty}; nothing") as raised:
        read_plain_pickle(path)
    assert "\n" not in str(raised.value)
