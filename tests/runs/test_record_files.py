"""Rows as files and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.errors import BadInputError, MissingExtraError, StoreError, UnreadableFileError
from headwise.runs import Provenance, Record, Records, read_records, record_files, write_records
from runs.questions import Cube, Poison

FOUND = Provenance("0.1.0+abc", "2.13.0", "cpu", None, 0.1 + 0.2, "headwise reproduce, all", None)


def record(spec, *rows):
    return Record(spec.key, spec.content, rows, FOUND)


CUBES = [
    record(Cube(number=0.1, tags=("a,b", "1")), {"mean": 0.1 + 0.2, "text": "1"}, {"mean": 2}),
    record(Poison(how="nan"), {"list": [1, 2.5, None], "text": "", "none": None, "yes": True}),
]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_records_survive_a_file(tmp_path, name):
    again = read_records(write_records(CUBES, tmp_path / "new" / name))
    assert list(again.values()) == CUBES
    assert [entry.name for entry in (tmp_path / "new").iterdir()] == [name]


@given(st.text() | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none())
def test_every_cell_reads_back(value):
    if isinstance(value, float) and value in (float("inf"), -float("inf")):
        return
    again = record_files._uncelled(record_files._cell(value))
    assert again == value
    assert type(again) is type(value)


def test_a_json_list_reads_like_its_lines(tmp_path):
    lines = write_records(CUBES, tmp_path / "rows.jsonl").read_text().splitlines()
    (tmp_path / "rows.json").write_text(json.dumps([json.loads(line) for line in lines]))
    assert list(read_records(tmp_path / "rows.json").values()) == CUBES


def test_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = write_records(CUBES, tmp_path / "rows.parquet")
    rows = parquet.read_table(path).to_pylist()
    assert [row["row.mean"] for row in rows] == [0.1 + 0.2, 2.0, None]
    assert [row["spec.number"] for row in rows] == [0.1, 0.1, None]
    assert rows[2]["row.list"] == [1.0, 2.5, None]


def test_parquet_columns_about_which_kinds_disagree(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    mixed = [record(Cube(number=n), {"value": value}) for n, value in enumerate([1, "one", None])]
    rows = parquet.read_table(write_records(mixed, tmp_path / "rows.parquet")).to_pylist()
    assert [row["row.value"] for row in rows] == ["1", '"one"', None]


def test_parquet_needs_its_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(record_files, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pyarrow"):
        write_records(CUBES, tmp_path / "rows.parquet")


def test_nothing_is_a_table_too(tmp_path):
    for name in ("rows.csv", "rows.jsonl"):
        assert len(read_records(write_records([], tmp_path / name))) == 0


def test_a_changed_file_is_refused(tmp_path):
    path = write_records(CUBES, tmp_path / "rows.csv")
    path.write_text(path.read_text().replace("0.1,0,float64", "0.2,0,float64"))
    with pytest.raises(UnreadableFileError, match=r"entry 1 of .* was changed: its key is not"):
        read_records(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rows.csv", "key,row.a\nabc\n", "line 2 has another number of cells"),
        ("rows.csv", "key,row.a\nabc,1,2\n", "line 2 has another number of cells"),
        ("rows.csv", "a,b\n1,2\n", "was changed|is no record"),
        ("rows.json", "{}", "is no list of records"),
        ("rows.json", "[1]", "entry 1 of .* is no record; a record has key"),
        ("rows.jsonl", "{", "is damaged"),
        ("rows.xlsx", "", "ends in '.xlsx'; records are read from .csv"),
    ],
)
def test_files_that_hold_no_records(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(UnreadableFileError, match=words) as raised:
        read_records(tmp_path / name)
    assert "\n" not in str(raised.value)


def test_the_same_spec_from_two_files_would_count_twice(tmp_path):
    one = write_records(CUBES, tmp_path / "one.csv")
    two = write_records(CUBES[:1], tmp_path / "two.jsonl")
    with pytest.raises(UnreadableFileError, match=r"two\.jsonl answers 1 specs that another"):
        read_records(one, two)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        write_records(CUBES, tmp_path / "file" / "rows.csv")
    with pytest.raises(UnreadableFileError, match=r"write to \.csv, \.jsonl or \.parquet"):
        write_records(CUBES, tmp_path / "rows.txt")


def test_joined_rows_carry_their_spec():
    rows = Records(CUBES[:1]).rows()
    assert [(row["number"], row["mean"]) for row in rows] == [(0.1, 0.1 + 0.2), (0.1, 2)]
    twice = record(Cube(number=1), {"number": 2})
    with pytest.raises(BadInputError, match=r"'number' is 1.0 in the spec .* and 2 in its row"):
        twice.joined()
