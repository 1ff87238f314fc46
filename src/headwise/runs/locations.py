"""Turn a path or a URL into a database engine; each error is one line."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, SQLAlchemyError

from headwise.errors import ParameterError, StoreAwayError, StoreError, needs_extra

#: The default store.
DEFAULT_STORE = Path(".headwise") / "results.db"

#: Seconds to wait for another writer, and for a database server to answer.
PATIENCE = 10


def store_url(location: str | os.PathLike[str]) -> URL:
    """Return a path or an SQLAlchemy URL as the URL of a store."""
    # Many services print postgres://, which SQLAlchemy does not know.
    text = re.sub(r"^postgres(?=://|\+)", "postgresql", os.fspath(location))
    if "\0" in text or not text:
        raise ParameterError(
            f"expected a path or a URL for `store`, got {text!r}",
            hint="pass for example 'results.db'",
        )
    if "://" not in text:
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreError(
            "the URL of the store cannot be read", hint="write it as postgresql://HOST/DATABASE"
        ) from None
    name = url.get_backend_name()
    if name == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if name != "sqlite":
        raise ParameterError(
            f"expected a `store` in SQLite or PostgreSQL, got {name!r}",
            hint="pass a path, sqlite:///PATH or postgresql://HOST/DATABASE",
        )
    if url.query:
        raise ParameterError(
            f"expected a `store` in SQLite without options, got {', '.join(url.query)}",
            hint="end the URL before the question mark",
        )
    return url.set(drivername="sqlite")


def described(url: URL) -> str:
    """Return the path of a file, or the URL of a server without its password."""
    if url.get_backend_name() == "sqlite":
        return url.database or "the store in memory"
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def engine_of(url: URL) -> Engine:
    """Return an engine for the store and create its folder; no connection is opened yet."""
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    if find_spec("psycopg") is None:
        raise needs_extra("psycopg", "postgres")
    # The pool logs a traceback when a connection is lost; our error says it in one line.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    return create_engine(url, connect_args={"connect_timeout": PATIENCE}, pool_pre_ping=True)


def _sqlite_engine(url: URL) -> Engine:
    _make_folder(Path(url.database or "."))
    _refuse_special(url.database or "")
    engine = create_engine(url, connect_args={"timeout": PATIENCE})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: Any) -> None:
        # Begin transactions here: the driver does not include schema changes in its own.
        connection.isolation_level = None
        # WAL lets others read while a run writes. NORMAL may lose the last answers if the
        # power fails, never when a process is killed, and cannot damage the file.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        wanted = connection.get_execution_options().get("begin", "BEGIN")
        connection.exec_driver_sql(wanted)

    return engine


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the folder of the store {path} cannot be made ({error.strerror})",
            hint="pass a store in a folder that can be written",
        ) from None


def _refuse_special(database: str) -> None:
    """Raise if SQLite would open a pipe or a device, perhaps without end."""
    for ending in ("", "-journal", "-wal", "-shm"):
        path = Path(database + ending)
        try:
            mode = path.stat().st_mode
        except OSError:
            continue  # not there yet, or SQLite will say what is wrong
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise StoreError(
                f"expected a regular file at {path}, got a pipe or a device",
                hint="pass another store",
            )


_NOT_OURS = "is damaged: its tables are not those of a store"
_RESTORE = "restore it from a copy, or pass another store"

#: Words in a database's error -> what they mean, and what to do.
_MEANINGS = (
    ("not a database", "is not a database", "pass another store; the file was not touched"),
    ("malformed", "is a damaged database", _RESTORE),
    ("Could not decode", "is a damaged database", _RESTORE),
    ("duplicate column", _NOT_OURS, _RESTORE),
    ("is full", "cannot be written: the disk is full", "free some space and run again"),
    ("disk I/O error", "cannot be written: the disk refuses", "free some space and run again"),
    ("readonly", "cannot be written: it is read-only", "pass a store that can be written"),
    ("read-only", "cannot be written: it is read-only", "pass a store that can be written"),
    ("unable to open", "cannot be opened", "pass the path of a file in a folder you may write"),
    ("is locked", "is busy: another program is writing it", "run again when that has ended"),
    ("does not exist", "does not exist on that server", "create it with createdb, or mend the URL"),
    ("no such column", _NOT_OURS, _RESTORE),
    ("no such table", _NOT_OURS, _RESTORE),
    ("ON CONFLICT clause", _NOT_OURS, _RESTORE),
    ("has no column", _NOT_OURS, _RESTORE),
    ("authentication failed", "refuses this user", "mend the user or the password in the URL"),
)


@contextmanager
def one_line_errors(place: str) -> Iterator[None]:
    """Turn the errors of a database into one line about the store at ``place``."""
    try:
        yield
    except DatabaseError as error:
        raise _meaning(place, str(error.orig)) from None
    except SQLAlchemyError as error:
        raise _meaning(place, str(error)) from None
    except UnicodeDecodeError:  # sqlite3 raises it for a damaged schema
        raise StoreError(
            f"the store {place} is damaged", hint="restore it from a copy, or pass another store"
        ) from None


def _meaning(place: str, complaint: str) -> StoreError:
    for words, problem, hint in _MEANINGS:
        if words in complaint:
            return StoreError(
                f"the store {place} {problem}", hint=f"{hint}; nothing stored is lost"
            )
    first = " ".join(complaint.split())[:200]
    kind = StoreAwayError if "://" in place else StoreError
    return kind(
        f"the store {place} cannot be reached ({first})",
        hint="check that the database runs and that the URL is right; nothing stored is lost",
    )
