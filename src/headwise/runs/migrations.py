"""Bring a store of any older version up to date, in one transaction."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection

from sqlalchemy import Connection, inspect, select, text

from headwise.errors import StoreError
from headwise.runs.provenance import seed_of
from headwise.runs.schema import VERSION, metadata, results, schema

#: The number of headwise's advisory lock on a PostgreSQL server.
_LOCK = 0x68656164

#: What a plain table does not have: each may compute, refuse or drop what is written.
_RULES = re.compile(
    r"\b(?:AS|GENERATED|VIRTUAL|CHECK|UNIQUE|CONFLICT|REFERENCES|COLLATE)\b", re.IGNORECASE
)
_CALLED = {"AS": "computed column", "GENERATED": "computed column", "VIRTUAL": "virtual table"}

#: An index of columns, without functions, conditions or a rule that they differ.
_PLAIN_INDEX = re.compile(
    r'CREATE INDEX "?\w+"? ON "?\w+"? ?\( ?"?\w+"?(?:, ?"?\w+"?)* ?\)', re.IGNORECASE
)


def migrate(connection: Connection, place: str) -> None:
    """Create the tables of an empty store, or bring an older one up to date."""
    _wait_for_others(connection)
    _refuse_rewritten(connection, place)
    tables = set(inspect(connection).get_table_names())
    if schema.name not in tables:
        _refuse_foreign(connection, tables, place)
        metadata.create_all(connection)
        connection.execute(schema.insert().values(version=VERSION))
        return
    versions = connection.execute(select(schema.c.version)).scalars().all()
    found = versions[0] if len(versions) == 1 else versions
    if not isinstance(found, int) or found < min(STEPS, default=VERSION):
        raise StoreError(
            f"{place} is damaged: expected a version number, got {found!r}",
            hint="restore it from a copy, or pass another store",
        )
    if found > VERSION:
        raise StoreError(
            f"{place} is a store of version {found}, and this headwise reads up to {VERSION}",
            hint="install a newer headwise, or pass another store",
        )
    for step in range(found, VERSION):
        STEPS[step](connection)
    if found < VERSION:
        connection.execute(schema.update().values(version=VERSION))


def _wait_for_others(connection: Connection) -> None:
    """Take a lock, so that two drivers that start together do not both migrate.

    SQLite took its write lock when the transaction began. PostgreSQL has advisory locks; this one
    ends with the transaction.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})


def _refuse_rewritten(connection: Connection, place: str) -> None:
    """Raise if an SQLite file has more than plain tables under headwise's names."""
    # A trigger may drop what is written, a view may run without end, and a computed column may be
    # as large as it likes. A database server belongs to its owner, who may replicate by triggers.
    if connection.dialect.name != "sqlite":
        return
    query = text(
        "SELECT type, coalesce(sql, '') FROM sqlite_master WHERE lower(tbl_name) IN (:one, :other)"
    )
    for kind, made in connection.execute(query, {"one": schema.name, "other": results.name}):
        found = kind if kind in ("view", "trigger") else _rule_in(kind, str(made))
        if found is not None:
            raise StoreError(
                f"expected only plain tables in the store {place}, got a {found}",
                hint="restore it from a copy, or pass another store; nothing was changed",
            )


def _rule_in(kind: str, made: str) -> str | None:
    """Return what the statement that made a table or an index adds to its plain columns."""
    if kind == "index":
        # SQLite makes the index of a primary key by itself, without a statement.
        return "changed index" if made and not _PLAIN_INDEX.fullmatch(made) else None
    word = _RULES.search(made)
    return None if word is None else _CALLED.get(word[0].upper(), f"{kind} with {word[0].upper()}")


def _refuse_foreign(connection: Connection, tables: Collection[object], place: str) -> None:
    """Raise if an SQLite file belongs to another program; PostgreSQL databases may be shared."""
    if tables and connection.dialect.name == "sqlite":
        # A damaged file may name a table in bytes, or over several lines.
        name = " ".join(min(map(str, tables)).split())
        raise StoreError(
            f"{place} is a database of something else (it has a table {name})",
            hint="pass another store; nothing was changed",
        )


def _from_1(connection: Connection) -> None:
    """Add command and seed (version 2); the seed was already in the spec."""
    run = connection.exec_driver_sql
    run("ALTER TABLE headwise_results ADD COLUMN command VARCHAR NOT NULL DEFAULT ''")
    run("ALTER TABLE headwise_results ADD COLUMN seed BIGINT")
    run("CREATE INDEX ix_headwise_results_kind ON headwise_results (kind)")
    specs = connection.execute(text("SELECT key, spec FROM headwise_results")).all()
    seeds = [{"key": key, "seed": seed_of(json.loads(spec))} for key, spec in specs]
    if seeds:
        setting = text("UPDATE headwise_results SET seed = :seed WHERE key = :key")
        connection.execute(setting, seeds)


#: Version -> the step that leads from it to the next.
STEPS: dict[int, Callable[[Connection], None]] = {1: _from_1}
