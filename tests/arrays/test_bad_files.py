"""Every way a file can be bad: one line, the right error, and nothing from the file runs."""

import gzip
import json
import pickle
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save, save_file

from headwise.arrays import read_array
from headwise.arrays.formats import FORMATS
from headwise.endings import ARRAYS
from headwise.errors import BadInputError, HeadwiseError, TooLargeError, UnreadableFileError


def written(path, how):
    how(path)
    return path


def write_npy(path):
    with path.open("wb") as file:
        np.save(file, np.eye(3))


def write_npz(path):
    with path.open("wb") as file:
        np.savez(file, a=np.eye(3))


def write_torch(path):
    torch.save(torch.eye(3), path)


def write_safetensors(path):
    save_file({"a": torch.eye(3)}, path)


def write_gzip(path):
    path.write_bytes(gzip.compress(b"numbers"))


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no arrays")


def write_empty_zip(path):
    zipfile.ZipFile(path, "w").close()


def write_script(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", b"")
        archive.writestr("model/constants.pkl", b"")


WRITERS = {
    ".npy": write_npy,
    ".npz": write_npz,
    ".pt": write_torch,
    ".safetensors": write_safetensors,
}


def assert_refused(path, match):
    with pytest.raises(UnreadableFileError, match=match) as error:
        read_array(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_absent(tmp_path):
    assert_refused(
        tmp_path / "a.npy", r"there is no file .*; pass the path of a file ending in \.npy"
    )


def test_a_folder(tmp_path):
    assert_refused(tmp_path, "is a folder; pass a file in it that ends in")


def test_not_a_regular_file(tmp_path):
    import os

    os.mkfifo(tmp_path / "a.npy")
    assert_refused(tmp_path / "a.npy", "is not a regular file")


@pytest.mark.parametrize("ending", WRITERS)
def test_empty(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    path.touch()
    assert_refused(path, "is empty, 0 bytes; copy it or save it again")


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("content", WRITERS)
def test_renamed_between_formats(tmp_path, name, content):
    path = written(tmp_path / f"a{name}", WRITERS[content])
    if name == content:
        assert torch.equal(read_array(path).double(), torch.eye(3).double())
    else:
        assert_refused(path, rf"is not an? .*: it looks like an? .*; rename it to a\{content}$")


@pytest.mark.parametrize(
    ("write", "match"),
    [
        (lambda p: p.write_text("1 2\n3 4\n"), "it looks like text; save the array in one of"),
        (lambda p: p.write_text("é" * 4000), "it looks like text"),
        (lambda p: p.write_bytes(pickle.dumps(np.eye(2))), "a Python pickle, which headwise never"),
        (write_gzip, "a gzip-compressed file; unpack it with gunzip"),
        (write_zip, "a zip archive without arrays"),
        (write_empty_zip, "a zip archive without arrays"),
        (write_script, "a TorchScript program; save its weights instead"),
        (lambda p: p.write_bytes(b"\x89HDF\r\n\x1a\n"), "an HDF5 file"),
        (lambda p: p.write_bytes(b"\x00\xff\x00\xfe" * 9), "nothing headwise knows"),
        (
            lambda p: p.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
            "a Git LFS pointer, not the file itself; fetch the file: git lfs pull",
        ),
    ],
)
@pytest.mark.parametrize("ending", WRITERS)
def test_something_else_by_a_known_name(tmp_path, write, match, ending):
    assert_refused(written(tmp_path / f"a{ending}", write), match)


def test_unknown_endings_say_what_the_file_is(tmp_path):
    assert_refused(
        written(tmp_path / "a.bin", write_torch), r"'\.bin'.*PyTorch file; rename it to a\.pt"
    )
    assert_refused(
        written(tmp_path / "a", write_npy), r"ends in ''.*NumPy array; rename it to a\.npy"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bare.csv", "1,2\n3,4\n"),
        ("headed.csv", "x,y\n1,2\n3,4\n"),
        ("commented.csv", "# x,y\n1,2\n3,4\n"),
        ("semicolons.csv", "1;2\n3;4\n"),
        ("tabs.tsv", "1\t2\n3\t4\n"),
    ],
)
def test_the_way_out_of_a_table_runs_and_loses_no_row(tmp_path, name, content):
    path = written(tmp_path / name, lambda p: p.write_text(content))
    with pytest.raises(UnreadableFileError) as refused:
        read_array(path)
    exec(str(refused.value).partition("convert it: ")[2], {"numpy": np})
    assert read_array(path.with_suffix(".npy")).tolist() == [[1, 2], [3, 4]]


def test_every_ending_has_a_format():
    assert tuple(ending for known in FORMATS for ending in known.endings) == ARRAYS


def test_endings_may_be_in_capitals(tmp_path):
    assert read_array(written(tmp_path / "A.NPY", write_npy)).shape == (3, 3)


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_truncated(tmp_path, ending, kept):
    path = written(tmp_path / f"a{ending}", WRITERS[ending])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    assert_refused(path, "damaged|bytes of numbers|looks like")


def test_truncated_numbers_are_counted(tmp_path):
    path = written(tmp_path / "a.npy", write_npy)
    path.write_bytes(path.read_bytes()[:-20])
    assert_refused(path, "expected 72 bytes of numbers in .*, got 52; copy it or save it again")


def test_a_header_that_promises_too_much_allocates_nothing(tmp_path):
    path = tmp_path / "a.npy"
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
        np.lib.format.write_array_header_1_0(file, header)
    assert_refused(path, "expected 8000000000000000000 bytes of numbers in .*, got 0")


def test_a_wrong_safetensors_header_is_refused(tmp_path):
    body = save({"a": torch.eye(3)})
    size = int.from_bytes(body[:8], "little")
    header = json.loads(body[8 : 8 + size])
    header["a"]["data_offsets"] = [0, 4000]
    text = json.dumps(header).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + body[8 + size :])
    assert_refused(path, "is damaged")


def test_object_arrays_are_not_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    with pytest.raises(BadInputError, match="holds Python objects, which are not read"):
        read_array(tmp_path / "a.npy")


def test_a_member_of_an_archive_is_named(tmp_path):
    np.savez(tmp_path / "a.npz", good=np.eye(2), bad=np.array([None]))
    assert read_array(tmp_path / "a.npz", "good").shape == (2, 2)
    with pytest.raises(BadInputError, match=r"'bad' in .*holds Python objects"):
        read_array(tmp_path / "a.npz", "bad")


def test_weights_with_other_objects_are_refused_and_the_object_named(tmp_path):
    torch.save({"a": torch.eye(2), "b": np.eye(2)}, tmp_path / "a.pt")
    assert_refused(tmp_path / "a.pt", r"asks for numpy\..*nothing was executed.*save only tensors")


def test_files_without_arrays(tmp_path):
    torch.save({"step": 3}, tmp_path / "a.pt")
    assert_refused(tmp_path / "a.pt", "holds no array; pass a file that holds one")


@pytest.mark.parametrize("ending", [".pt", ".npz"])
def test_an_archive_whose_names_are_no_text(tmp_path, ending):
    path = written(tmp_path / f"a{ending}", WRITERS[ending])
    body = bytearray(path.read_bytes())
    entry = body.index(b"PK\x01\x02")
    body[entry + 8 : entry + 10] = (0x800).to_bytes(2, "little")  # the name claims to be UTF-8
    body[entry + 46] = 0x8B
    path.write_bytes(body)
    with pytest.raises(HeadwiseError) as caught:
        read_array(path)
    assert "copy it or save it again" in str(caught.value)


@pytest.mark.parametrize("ending", WRITERS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damage_anywhere_is_read_or_refused(tmp_path_factory, ending, data):
    """Bytes changed or cut anywhere: numbers, or a HeadwiseError of one line; never a crash."""
    path = written(tmp_path_factory.mktemp("damage") / f"a{ending}", WRITERS[ending])
    body = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(body[: data.draw(st.integers(1, len(body)))])
    try:
        assert isinstance(read_array(path), torch.Tensor)
    except HeadwiseError as error:
        assert "\n" not in str(error)
        assert error.hint


def test_an_expanded_tensor_is_measured_before_it_is_copied(tmp_path):
    """A few hundred bytes that stand for 10¹² numbers."""
    path = tmp_path / "expanded.pt"
    torch.save(torch.zeros(1, dtype=torch.float64).expand(10**6, 10**6), path)
    assert path.stat().st_size < 2000
    with pytest.raises(TooLargeError, match=r"1000000×1000000 tensor in .* needs 8 TB of memory"):
        read_array(path)


def test_an_array_file_is_mapped_instead_of_copied(tmp_path):
    path = tmp_path / "large.npy"
    np.save(path, np.eye(64))
    found = read_array(path)
    assert isinstance(found.numpy().base, np.memmap) or not found.numpy().flags.owndata
    found[0, 0] = 5.0  # a change stays in memory
    assert float(np.load(path)[0, 0]) == 1.0


def test_a_nested_tensor_is_refused(tmp_path):
    torch.save(torch.nested.nested_tensor([torch.eye(2), torch.eye(3)]), tmp_path / "a.pt")
    with pytest.raises(BadInputError, match="matrices of several shapes"):
        read_array(tmp_path / "a.pt")


def doubled(times):
    """Lists in lists, each of which holds the next one twice: 2^times tensors in a few bytes."""
    found = [torch.eye(2)]
    for _ in range(times):
        found = [found, found]
    return found


def inside_itself():
    found = {}
    found["x"] = found
    return found


@pytest.mark.parametrize("made", [lambda: doubled(40), inside_itself], ids=["doubled", "itself"])
def test_a_file_that_nests_without_end_is_refused(tmp_path, made):
    torch.save(made(), tmp_path / "a.pt")
    with pytest.raises(UnreadableFileError, match="nests too deeply or without end"):
        read_array(tmp_path / "a.pt")


def test_lists_nested_deeper_than_python_recurses_are_read(tmp_path):
    deep = torch.eye(2)
    for _ in range(400):
        deep = [deep]
    torch.save(deep, tmp_path / "a.pt")
    assert read_array(tmp_path / "a.pt").shape == (2, 2)


@pytest.mark.parametrize("ending", ["npz", "pt"])
def test_an_archive_that_unpacks_to_more_than_memory_is_refused(tmp_path, ending, monkeypatch):
    path = tmp_path / f"a.{ending}"
    if ending == "npz":
        np.savez_compressed(path, a=np.zeros((1500, 1500)))
    else:
        torch.save(torch.zeros(1500, 1500, dtype=torch.float64), tmp_path / "plain.pt")
        with (
            zipfile.ZipFile(tmp_path / "plain.pt") as plain,
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed,
        ):
            for member in plain.namelist():
                packed.writestr(member, plain.read(member))
    assert path.stat().st_size < 10**5
    monkeypatch.setattr("headwise.memory.available_bytes", lambda device: 10**7)
    with pytest.raises(TooLargeError, match=r"unpacking .* needs 18 MB"):
        read_array(path)
