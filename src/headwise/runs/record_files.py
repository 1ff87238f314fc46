"""Write records to CSV, JSON lines and Parquet; read them from CSV, JSON and JSON lines.

A line is one row with its spec and its provenance. Keys are checked when a file is read: a file
whose values were changed by hand, or by a spreadsheet, is refused.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headwise.errors import StoreError, UnreadableFileError, needs_extra
from headwise.runs.provenance import Provenance
from headwise.runs.record import Record, Records
from headwise.runs.spec import content_key
from headwise.whole_files import write_whole

#: The parts of a row; in flat formats a column is named part.field.
_PARTS = ("spec", "row", "provenance")


def write_records(records: Iterable[Record], path: str | os.PathLike[str]) -> Path:
    """Write every row to a .csv, .jsonl or .parquet file; the file appears whole or not at all.

    Args:
        records: What to write.
        path: The file; its extension chooses the format.

    Returns:
        The path of the file that was written; ``read_records`` reads it.

    Raises:
        UnreadableFileError: If the extension is unknown.

    Example:
        >>> import tempfile
        >>> from headwise.runs.attempt import attempt
        >>> from headwise.runs.examples import Square
        >>> spec = Square(number=3)
        >>> answer = attempt(spec)
        >>> record = Record(spec.key, spec.content, answer.rows, answer.provenance)
        >>> path = write_records([record], Path(tempfile.mkdtemp()) / "squares.csv")
        >>> read_records(path)[spec.key] == record
        True
    """
    path = Path(path)
    writer = _WRITERS.get(path.suffix)
    if writer is None:
        raise UnreadableFileError(
            f"{path} ends in {path.suffix!r}", hint="write to .csv, .jsonl or .parquet"
        )
    content = writer([line for record in records for line in _lines(record)])
    return write_whole(path, content, StoreError, hint="choose another place for it")


def read_records(*paths: str | os.PathLike[str]) -> Records:
    """Read the records in .csv, .json or .jsonl files and check each key against its content.

    Args:
        *paths: The files.

    Returns:
        The records of all files.

    Raises:
        UnreadableFileError: If a file cannot be read, or was changed.

    Example:
        >>> read_records("nowhere.csv")
        Traceback (most recent call last):
        ...
        headwise.errors.UnreadableFileError: nowhere.csv cannot be read (No such file or ...
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for path in map(Path, paths):
        here: dict[str, list[Mapping[str, Any]]] = {}
        for number, line in enumerate(_read(path), 1):
            _refuse_changed(path, number, line)
            known = {**line, "provenance": _provenance(path, number, line)}
            here.setdefault(line["key"], []).append(known)
        _refuse_repeated(path, found, here)
        found |= here
    return Records(_record(key, lines) for key, lines in found.items())


def _lines(record: Record) -> Iterator[dict[str, Any]]:
    for row in record.rows:
        yield {
            "key": record.key,
            "spec": record.spec,
            "row": row,
            "provenance": vars(record.provenance),
        }


def _record(key: str, lines: list[Mapping[str, Any]]) -> Record:
    rows = tuple(line["row"] for line in lines)
    return Record(key, lines[0]["spec"], rows, lines[0]["provenance"])


def _refuse_changed(path: Path, number: int, line: Any) -> None:
    whole = isinstance(line, Mapping) and {"key", *_PARTS} <= set(line)
    if not whole or not all(isinstance(line[part], Mapping) for part in _PARTS):
        raise UnreadableFileError(
            f"entry {number} of {path} is no record",
            hint="a record has key, spec, row and provenance; write it with write_records",
        )
    try:
        key = content_key(line["spec"])
    except ValueError:  # JSON has no infinite numbers, but 1e999 is read as one
        key = None
    if key != line["key"]:
        raise UnreadableFileError(
            f"entry {number} of {path} was changed: its key is not that of its spec",
            hint="restore the file, or run its specs again",
        )


def _provenance(path: Path, number: int, line: Mapping[str, Any]) -> Provenance:
    found = Provenance.read(line["provenance"])
    if found is None:
        raise UnreadableFileError(
            f"the provenance in entry {number} of {path} is incomplete or damaged",
            hint="restore the file, or run its specs again",
        )
    return found


def _refuse_repeated(path: Path, found: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse a spec that is in two files: its rows would count twice."""
    twice = found.keys() & here.keys()
    if twice:
        raise UnreadableFileError(
            f"{path} answers {len(twice)} specs that another of these files answers too",
            hint="read one of them",
        )


def _flat(line: Mapping[str, Any]) -> dict[str, Any]:
    columns = {f"{part}.{name}": value for part in _PARTS for name, value in line[part].items()}
    return {"key": line["key"]} | columns


def _columns(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return every column, in the order of first appearance."""
    return list({name: None for line in lines for name in line})


def _as_csv(lines: list[dict[str, Any]]) -> bytes:
    flat = [_flat(line) for line in lines]
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(flat) or ["key"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in line.items()} for line in flat)
    return text.getvalue().encode()


def _as_jsonl(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def _as_parquet(lines: list[dict[str, Any]]) -> bytes:
    if find_spec("pyarrow") is None:
        raise needs_extra("pyarrow", "parquet")
    import pyarrow
    from pyarrow import parquet

    flat = [_flat(line) for line in lines]
    table = {name: _arrow([line.get(name) for line in flat]) for name in _columns(flat)}
    out = io.BytesIO()
    parquet.write_table(pyarrow.table(table), out)
    return out.getvalue()


def _arrow(values: list[Any]) -> Any:
    """Return a column of one type, or of JSON text if kinds of spec disagree on the type."""
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if value is None else json.dumps(value) for value in values])


_WRITERS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    ".csv": _as_csv,
    ".jsonl": _as_jsonl,
    ".parquet": _as_parquet,
}


def _cell(value: Any) -> str:
    """Return a value as JSON; a text has no quotes unless it could be read as JSON."""
    bare = isinstance(value, str) and value != "" and _uncelled(value) is value
    return value if bare else json.dumps(value, ensure_ascii=False)


def _uncelled(cell: str) -> Any:
    try:
        return json.loads(cell, parse_constant=_refuse_constant)
    except ValueError:
        return cell


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _read(path: Path) -> list[Any]:
    readers = {".csv": _from_csv, ".json": _from_json, ".jsonl": _from_jsonl}
    if path.suffix not in readers:
        raise UnreadableFileError(
            f"{path} ends in {path.suffix!r}", hint="records are read from .csv, .json or .jsonl"
        )
    try:
        return readers[path.suffix](path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFileError(
            f"{path} cannot be read ({error.strerror})", hint="check the path"
        ) from None
    except (ValueError, csv.Error) as error:
        raise UnreadableFileError(
            f"{path} is damaged ({error})", hint="restore it, or write it again"
        ) from None


def _from_json(text: str) -> list[Any]:
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("it is no list of records")
    return found


def _from_jsonl(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _from_csv(text: str) -> list[Any]:
    lines = []
    for cells in csv.DictReader(io.StringIO(text), strict=True):
        if None in cells or None in cells.values():
            raise ValueError(f"line {len(lines) + 2} has another number of cells than the first")
        line: dict[str, Any] = {part: {} for part in _PARTS} | {"key": cells.get("key")}
        for column, cell in cells.items():
            part, _, name = str(column).partition(".")
            if part in _PARTS and cell:  # an empty cell belongs to another kind of spec
                line[part][name] = _uncelled(cell)
        lines.append(line)
    return lines
