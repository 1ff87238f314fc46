"""A PostgreSQL server of our own, on the loopback interface, that can be killed."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

#: Where Debian keeps the programs of PostgreSQL, oldest first.
PROGRAMS = sorted(path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb"))

#: Seconds that a server may take to start after a kill.
STARTING = 60.0


class NoServerError(Exception):
    """This machine cannot run a PostgreSQL server."""


def _account() -> str | None:
    """PostgreSQL refuses to run as root; its package brings its own account."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise NoServerError("running as root, and no account is named postgres") from None


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Server:
    """A server in a folder of its own."""

    folder: Path = field(init=False)
    port: int = field(default_factory=free_port)
    account: str | None = field(default_factory=_account)

    def __post_init__(self) -> None:
        """Create the files of the server and start it."""
        if not PROGRAMS:
            raise NoServerError("no PostgreSQL server is installed in /usr/lib/postgresql")
        # A short path: a socket's may not be longer than about a hundred characters.
        self.folder = Path(tempfile.mkdtemp(prefix="headwise-pg-"))
        if self.account:
            shutil.chown(self.folder, self.account)
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "headwise", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        """The database that comes with the server."""
        return f"postgresql://headwise@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        """Where the server keeps its files."""
        return self.folder / "data"

    def start(self) -> None:
        """Start the server; wait for what a killed one left behind to end."""
        # fsync matters when the machine stops, not when a process is killed.
        settings = f"-k {self.folder} -h 127.0.0.1 -p {self.port}"
        settings += " -c fsync=off -c shared_buffers=16MB"
        deadline = time.monotonic() + STARTING
        while True:
            try:
                self._control("-l", self.folder / "log", "-o", settings, "start")
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)
            else:
                return

    def stop(self) -> None:
        """Stop the server at once, as in an emergency."""
        self._control("-m", "immediate", "stop")

    def remove(self) -> None:
        """Stop the server, if it runs, and delete its files."""
        with suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the main process of the server with SIGKILL."""
        os.kill(self._main(), signal.SIGKILL)

    def kill_session(self, dice: random.Random) -> bool:
        """Kill one of its other processes, which serve clients or write files."""
        main = self._main()
        children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        if not children:
            return False
        with suppress(ProcessLookupError):
            os.kill(int(dice.choice(children)), signal.SIGKILL)
            return True
        return False

    def wait(self) -> None:
        """Wait until the server answers; after a kill it repairs its files first."""
        import psycopg

        deadline = time.monotonic() + STARTING
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def clear(self, database: str) -> str:
        """Create an empty database in place of what had this name; return its URL."""
        import psycopg

        self.wait()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)'.encode())
            connection.execute(f'CREATE DATABASE "{database}"'.encode())
        return self.url.removesuffix("postgres") + database

    def _main(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def _control(self, *command: object) -> None:
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "30", *command)

    def _run(self, program: str, *command: object) -> None:
        subprocess.run(
            [str(PROGRAMS[-1] / program), *map(str, command)],
            check=True,
            user=self.account,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
