"""Executors, stores, and a PostgreSQL server of our own where the system has one."""

import pytest
from benchmarks.attack.database import NoServerError, Server

from headwise.runs import ClusterExecutor, LocalExecutor, Store


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


@pytest.fixture(scope="session")
def postgres(postgres_server):
    """The URL of a fresh PostgreSQL server on the loopback interface."""
    return postgres_server.url


@pytest.fixture(scope="session")
def postgres_server():
    """A fresh PostgreSQL server on the loopback interface."""
    pytest.importorskip("psycopg")
    try:
        server = Server()
    except NoServerError as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


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
