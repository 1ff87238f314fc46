"""Executors, stores, and a PostgreSQL server of our own where the system has one."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from headwise.runs import ClusterExecutor, LocalExecutor, Store

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@pytest.fixture(params=["local", "cluster"])
def executor_name(request):
    return request.param


@pytest.fixture
def executor(executor_name):
    """Two workers, however they are started."""
    made = LocalExecutor(workers=2) if executor_name == "local" else ClusterExecutor("local:2")
    yield made
    made.close()


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _server_account() -> str | None:
    """PostgreSQL refuses to run as root; its package brings its own account."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        pytest.skip("running as root, and the system has no account named postgres")


@dataclass
class Server:
    """A PostgreSQL server that can be stopped as if it were killed, and started again."""

    url: str
    start: Callable[[], None]
    kill: Callable[[], None]


@pytest.fixture(scope="session")
def postgres(postgres_server):
    """The URL of a fresh PostgreSQL server on the loopback interface."""
    return postgres_server.url


@pytest.fixture(scope="session")
def postgres_server():
    """A fresh PostgreSQL server on the loopback interface."""
    pytest.importorskip("psycopg")
    if not SERVERS:
        pytest.skip("no PostgreSQL server is installed in /usr/lib/postgresql")
    account, programs = _server_account(), SERVERS[-1].parent
    # A short path: a socket's may not be longer than about a hundred characters.
    folder = Path(tempfile.mkdtemp(prefix="headwise-pg-"))
    if account:
        shutil.chown(folder, account)
    port = _free_port()

    def server(*command: object) -> None:
        subprocess.run(
            [str(part) for part in command],
            check=True,
            user=account,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    data = folder / "data"
    server(programs / "initdb", "-D", data, "-A", "trust", "-U", "headwise", "--no-sync")
    settings = f"-k {folder} -h 127.0.0.1 -p {port} -c fsync=off -c shared_buffers=16MB"
    control = (programs / "pg_ctl", "-D", data, "-w", "-t", "30")
    start = partial(server, *control, "-l", folder / "log", "-o", settings, "start")
    kill = partial(server, *control, "-m", "immediate", "stop")
    start()
    yield Server(f"postgresql://headwise@127.0.0.1:{port}/postgres", start, kill)
    kill()
    shutil.rmtree(folder)


@pytest.fixture
def empty_postgres(postgres):
    """The server's database without our tables."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS headwise_results, headwise_schema")
    return postgres


@pytest.fixture(params=["sqlite", "postgres"])
def location(request, tmp_path):
    """Where a store may lie: each test of a store runs on both databases."""
    if request.param == "postgres":
        return request.getfixturevalue("empty_postgres")
    return str(tmp_path / "results.db")
