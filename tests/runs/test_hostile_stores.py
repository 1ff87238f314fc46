"""SQLite stores whose tables compute, refuse or drop what is written are refused."""

import sqlite3

import pytest

from headwise.errors import StoreError
from headwise.runs import Store

RESULTS = "headwise_results"
LARGE = "zeroblob(1000000000)"

HOSTILE = {
    "a version that is computed": (
        [
            "DROP TABLE headwise_schema",
            f"CREATE TABLE headwise_schema (one INTEGER, version AS ({LARGE}))",
            "INSERT INTO headwise_schema (one) VALUES (1)",
        ],
        "computed column",
    ),
    "answers that replace one another": (
        [
            f"DROP TABLE {RESULTS}",
            f"CREATE TABLE {RESULTS} (key VARCHAR PRIMARY KEY, kind UNIQUE ON CONFLICT REPLACE)",
        ],
        "table with UNIQUE",
    ),
    "a slow rule": (
        [
            f"DROP TABLE {RESULTS}",
            f"CREATE TABLE {RESULTS} (key VARCHAR PRIMARY KEY, check(length({LARGE})))",
        ],
        "table with CHECK",
    ),
    "a virtual table": (
        [f"DROP TABLE {RESULTS}", f"CREATE VIRTUAL TABLE {RESULTS} USING fts5(key, kind)"],
        "virtual table",
    ),
    "one answer of a kind": ([f"CREATE UNIQUE INDEX i ON {RESULTS} (kind)"], "changed index"),
    "a slow index": ([f"CREATE INDEX i ON {RESULTS} (length({LARGE}))"], "changed index"),
    "a computed index": ([f"CREATE INDEX i ON {RESULTS} (1 + 1)"], "changed index"),
    "an index of some": ([f"CREATE INDEX i ON {RESULTS} (kind) WHERE 1"], "changed index"),
}


def altered(path, statements):
    Store.open(path).close()
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused(tmp_path, name):
    statements, found = HOSTILE[name]
    path = altered(tmp_path / "a.db", statements)
    with pytest.raises(StoreError, match=f"expected only plain tables .*, got a {found}"):
        Store.open(path)


def test_an_index_of_columns_and_other_tables_are_accepted(tmp_path):
    statements = [
        f"CREATE INDEX mine ON {RESULTS} (kind, seed)",
        "CREATE TABLE mine_too (one UNIQUE, two AS (one + 1), CHECK (one > 0))",
        "VACUUM",
    ]
    Store.open(altered(tmp_path / "a.db", statements)).close()
