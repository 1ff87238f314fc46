"""Store: answers and failures by key, in SQLite or PostgreSQL. Only the driver writes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, Executable, Select, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

from headwise.errors import StoreError
from headwise.runs.locations import DEFAULT_STORE, described, engine_of, one_line_errors, store_url
from headwise.runs.migrations import migrate
from headwise.runs.outcome import Answer, Failure, Outcome
from headwise.runs.plan import Plan
from headwise.runs.provenance import Provenance
from headwise.runs.record import Record, Records
from headwise.runs.schema import results
from headwise.runs.spec import Spec

#: Keys in one query: every SQLite accepts that many.
KEYS_AT_A_TIME = 900

#: Insert statements with a rule for existing keys.
_INSERT = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
_ANSWERED: ColumnElement[bool] = results.c.failure.is_(None)

#: One row of the results table, by column.
_Columns = Mapping[str, Any]


class Store:
    """Answers and failures by key, in a file or a database. Open one with ``Store.open``.

    Args:
        engine: The database.
        place: Its path or URL, for messages.

    Example:
        >>> import tempfile
        >>> from headwise.runs.attempt import attempt
        >>> from headwise.runs.examples import Square
        >>> spec = Square(number=3)
        >>> with Store.open(os.path.join(tempfile.mkdtemp(), "results.db")) as store:
        ...     store.put(spec, attempt(spec))
        ...     store.records()[spec.key].rows
        ({'square': 9.0},)
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._replacing = _replacing_failures(engine.dialect.name)
        self.place = place

    @classmethod
    def open(cls, location: str | os.PathLike[str] = DEFAULT_STORE) -> Store:
        """Open the store at a path or SQLAlchemy URL; create or upgrade it if needed."""
        url = store_url(location)
        place = described(url)
        store = cls(engine_of(url), place)
        try:
            with store._transaction("BEGIN IMMEDIATE") as connection:
                migrate(connection, place)
        except BaseException:
            store.close()
            raise
        return store

    def put(self, spec: Spec, outcome: Outcome) -> None:
        """Store an outcome. An answer replaces a failure; a failure never replaces an answer."""
        row = {
            "key": outcome.key,
            "kind": spec.kind,
            "revision": spec.revision,
            "spec": _text(spec.content),
            "rows": _text(outcome.rows) if isinstance(outcome, Answer) else None,
            "failure": outcome.traceback if isinstance(outcome, Failure) else None,
            **vars(outcome.provenance),
        }
        with self._transaction() as connection:
            connection.execute(self._replacing, row)

    def answered(self) -> frozenset[str]:
        """Return the keys that have an answer."""
        return self._keys(_ANSWERED)

    def failed(self) -> frozenset[str]:
        """Return the keys that failed and have no answer."""
        return self._keys(~_ANSWERED)

    def plan(self, specs: Iterable[Spec]) -> Plan:
        """Return which of these specs are answered, failed and missing."""
        return Plan.of(specs, answered=self.answered(), failed=self.failed())

    def records(self) -> Records:
        """Return every answer."""
        return Records(map(self._record, self._read(select(results).where(_ANSWERED))))

    def records_of_kind(self, kind: str) -> Records:
        """Return every answer to questions of one kind."""
        chosen = select(results).where(_ANSWERED, results.c.kind == kind)
        return Records(map(self._record, self._read(chosen)))

    def records_of(self, specs: Iterable[Spec]) -> Records:
        """Return the stored answers of these specs, in their order."""
        keys = list({spec.key: None for spec in specs})
        found = {row["key"]: row for row in self._of_keys(keys, _ANSWERED)}
        return Records(self._record(found[key]) for key in keys if key in found)

    def failures_of(self, specs: Iterable[Spec]) -> dict[str, Failure]:
        """Return the failures among these specs, by key."""
        rows = self._of_keys(list({spec.key: None for spec in specs}), ~_ANSWERED)
        return {row["key"]: self._failure(row) for row in rows}

    def close(self) -> None:
        """Close the database; the last connection folds SQLite's log into the file."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self, begin: str = "BEGIN") -> Iterator[Connection]:
        with one_line_errors(self.place), self._engine.connect() as connection:
            connection = connection.execution_options(begin=begin)
            with connection.begin():
                yield connection

    def _read(self, query: Select[Any]) -> Sequence[Any]:
        with self._transaction() as connection:
            return connection.execute(query).mappings().all()

    def _record(self, row: _Columns) -> Record:
        try:
            spec, rows = json.loads(row["spec"]), tuple(json.loads(row["rows"]))
        except (TypeError, ValueError, RecursionError):
            raise self._damaged(row) from None
        if not isinstance(spec, dict) or not all(isinstance(one, dict) for one in rows):
            raise self._damaged(row)
        return Record(row["key"], spec, rows, self._provenance(row))

    def _failure(self, row: _Columns) -> Failure:
        return Failure(row["key"], row["failure"], self._provenance(row))

    def _provenance(self, row: _Columns) -> Provenance:
        found = Provenance.read(row)
        if found is None:
            raise self._damaged(row)
        return found

    def _damaged(self, row: _Columns) -> StoreError:
        return StoreError(
            f"{self.place} is damaged: its entry {row['key']!r} cannot be read",
            hint="restore it from a copy, or pass another store",
        )

    def _keys(self, state: ColumnElement[bool]) -> frozenset[str]:
        return frozenset(row["key"] for row in self._read(select(results.c.key).where(state)))

    def _of_keys(self, keys: list[str], state: ColumnElement[bool]) -> Iterator[_Columns]:
        for start in range(0, len(keys), KEYS_AT_A_TIME):
            some = results.c.key.in_(keys[start : start + KEYS_AT_A_TIME])
            yield from self._read(select(results).where(some, state))


def _replacing_failures(database: str) -> Executable:
    """Return an insert that replaces a failure and keeps an answer."""
    insert = _INSERT[database](results)
    return insert.on_conflict_do_update(
        index_elements=[results.c.key],
        set_={column.name: insert.excluded[column.name] for column in results.c},
        where=~_ANSWERED,
    )


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
