"""The adversary: it finds planted faults, and a short run of it finds none."""

import sqlite3

import numpy as np
import pytest
from benchmarks.attack import files
from benchmarks.attack.readers import Reader, readers

from headwise.data.sources import read_source
from headwise.data.text import tokenizer_file
from headwise.errors import BadInputError, StoreError, UnreadableFileError
from headwise.runs import Store, read_records


def fault_of(read, tmp_path):
    return files.fault_of(Reader(read, "a.bin", (b"x",)), b"x", tmp_path)


def test_an_answer_is_no_fault(tmp_path):
    assert fault_of(lambda path: path.read_bytes(), tmp_path) is None


def refuse(path):
    raise BadInputError("expected one thing, got another", hint="do this")


def refuse_at_length(path):
    raise BadInputError("expected one thing,\ngot another", hint="do this")


def test_a_refusal_in_one_line_is_no_fault(tmp_path):
    assert fault_of(refuse, tmp_path) is None


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (lambda path: 1 / 0, "ZeroDivisionError"),
        (lambda path: exec("raise SystemExit(3)"), "SystemExit"),
        (lambda path: bytearray(2**62), "MemoryError"),
        (refuse_at_length, "a message of several lines"),
    ],
)
def test_anything_else_is_a_fault(read, fault, tmp_path):
    assert fault in fault_of(read, tmp_path)


def test_a_reader_that_ends_its_process_is_found(monkeypatch):
    def end(path):
        import os

        os.abort()

    monkeypatch.setattr(files, "readers", lambda: {"deadly": Reader(end, "a.bin", (b"x",))})
    figures = files.attack(seed=0, minutes=1, most=3)
    assert figures["faults"] == 3


def test_a_seed_names_one_file():
    reader = Reader(len, "a.bin", (bytes(range(200)), b"other"))
    assert files.content_of(reader, 7) == files.content_of(reader, 7)
    assert len({files.content_of(reader, seed) for seed in range(50)}) > 40


def test_valid_files_are_read(tmp_path):
    for name, reader in readers().items():
        if name != "mat":  # one of two files that are needed
            for content in reader.contents:
                for left in tmp_path.iterdir():
                    left.unlink()
                (tmp_path / reader.name).write_bytes(content)
                try:
                    reader.read(tmp_path / reader.name)
                except BadInputError as error:
                    assert "npz" in name or "safetensors" in name or "pt" in name, error


def test_a_short_attack_finds_nothing():
    figures = files.attack(seed=10**6, minutes=1, most=700)
    assert figures["files"] >= 700
    assert figures["faults"] == 0


@pytest.mark.parametrize("version", ["NULL", "'one'", "-1", "0"])
def test_a_store_without_version_number_is_refused(tmp_path, version):
    path = tmp_path / "results.db"
    Store.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE headwise_schema")
        connection.execute("CREATE TABLE headwise_schema (version INTEGER)")
        connection.execute(f"INSERT INTO headwise_schema VALUES ({version})")
    with pytest.raises(StoreError, match="expected a version number"):
        Store.open(path)


@pytest.mark.parametrize("side", [9_000, 2**30])
def test_a_picture_of_a_claimed_size_that_no_memory_holds_is_refused(tmp_path, side):
    from PIL import Image

    Image.fromarray(np.zeros((2, 2, 3), np.uint8)).save(tmp_path / "a.bmp")
    content = bytearray((tmp_path / "a.bmp").read_bytes())
    content[18:26] = side.to_bytes(4, "little") * 2
    (tmp_path / "a.bmp").write_bytes(content)
    with pytest.raises(UnreadableFileError, match="not a picture"):
        read_source(tmp_path, size=8)


def test_a_tokenizer_without_its_unknown_token_is_refused(tmp_path):
    (content,) = readers()["tokenizer"].contents
    (tmp_path / "tokenizer.json").write_bytes(content.replace(b'"[UNK]":2', b'"x":2'))
    encode, _ = tokenizer_file(tmp_path / "tokenizer.json")
    with pytest.raises(UnreadableFileError, match="cannot encode"):
        encode("a word that it does not know")


def test_a_record_with_an_infinite_number_is_refused(tmp_path):
    (content,) = readers()["records jsonl"].contents
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content.replace(b'"number": 0.0', b'"number": 1e999'))
    assert path.read_bytes() != content
    with pytest.raises(UnreadableFileError, match="was changed"):
        read_records(path)


def test_a_store_whose_schema_is_no_text_is_refused(tmp_path):
    reader = readers()["store"]
    (tmp_path / "results.db").write_bytes(files.content_of(reader, 2002699))
    with pytest.raises(StoreError, match=r"damaged|cannot be"):
        Store.open(tmp_path / "results.db")
