"""Both executors, when nothing dies: what workers are like, and where they listen."""

import logging
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import headwise
from headwise.errors import BadInputError, ExecutorError, MissingExtraError, StoppedError
from headwise.progress import NoProgress
from headwise.runs import ClusterExecutor, Failure, LocalExecutor, attempt, run
from headwise.runs.executors import cluster
from headwise.runs.executors.turns import Turns
from headwise.runs.provenance import command_line
from runs.questions import Cube, Poison, Slow, Threads


def rows(executor, specs):
    outcomes = executor.outcomes(specs, lambda spec: None)
    return {outcome.key: outcome.rows[0] for outcome in outcomes}


def test_workers_are_other_processes_with_one_torch_thread(executor, capfd):
    specs = [Threads(number=1), Threads(number=2), Cube(number=3)]
    found = rows(executor, specs)
    assert [found[spec.key].get("threads") for spec in specs] == [1, 1, None]
    assert found[specs[2].key]["pid"] != os.getpid()
    executor.close()
    assert capfd.readouterr().out == ""


def listening(process: psutil.Process) -> set[str]:
    """The addresses on which a process and its children accept connections."""
    family = [process, *process.children(recursive=True)]
    return {
        connection.laddr.ip
        for member in family
        for connection in member.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


def test_a_local_cluster_listens_on_loopback_alone_and_shows_no_dashboard():
    executor = ClusterExecutor("local:1")
    try:
        assert len(rows(executor, [Cube(number=1)])) == 1
        assert listening(psutil.Process()) == {"127.0.0.1"}
        scheduler = executor._cluster.scheduler
        for route in ("status", "info/main/workers.html", "json/counts.json", "metrics"):
            with pytest.raises(OSError, match="404"):
                read(f"http://127.0.0.1:{scheduler.http_server.port}/{route}")
    finally:
        executor.close()


def read(url: str) -> bytes:
    from urllib.request import urlopen

    with urlopen(url, timeout=10) as page:
        return page.read()


def test_a_dashboard_needs_bokeh(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None if name == "bokeh" else True)
    executor = ClusterExecutor("local:1", dashboard="127.0.0.1:0")
    with pytest.raises(MissingExtraError, match="pip install bokeh"):
        rows(executor, [Cube(number=1)])


def test_a_cluster_needs_its_extra(monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dask"):
        rows(ClusterExecutor("local:1"), [Cube(number=1)])


@contextmanager
def dask_in(folder, address=r"tcp://[\d.:]+", options=()):
    """A scheduler and a worker with two threads, as somebody else would have started them."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        # Their scheduler asks a spec twice before it tells us that its worker died.
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    file, dask = folder / "scheduler.json", (sys.executable, "-m", "dask")
    started = [
        subprocess.Popen(
            [*dask, *arguments, "--scheduler-file", file, *options],
            env=environment,
            cwd=folder,
            **quiet,
        )
        for arguments in (
            ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
            ("worker", "--host", "127.0.0.1", "--nthreads", "2", "--no-dashboard"),
        )
    ]
    try:
        deadline = time.monotonic() + 60
        while not (file.exists() and file.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield re.search(address, file.read_text()).group(), started[0]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@pytest.fixture
def dask_elsewhere(tmp_path):
    with dask_in(tmp_path) as found:
        yield found


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    command += " -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return certificate, key


def test_a_cluster_with_tls(certificate, store, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 20.0)
    cert, key = map(str, certificate)
    options = ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
    with dask_in(tmp_path, r"tls://[\d.:]+", options) as (address, _):
        plain = ClusterExecutor(address)
        with pytest.raises(ExecutorError, match=r"DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"):
            run(store.plan([Cube(number=1)]), plain, store)
        from dask import config

        files = {"ca-file": cert, "client.cert": cert, "client.key": key}
        with config.set({f"distributed.comm.tls.{name}": file for name, file in files.items()}):
            tally = run(store.plan([Cube(number=1)]), ClusterExecutor(address), store)
    assert (tally.answered, tally.failed) == (1, 0)


def test_a_cluster_that_runs_elsewhere(dask_elsewhere, store, tmp_path, monkeypatch):
    """A spec that kills its worker, another on the same worker; then the scheduler goes away."""
    monkeypatch.setattr(cluster, "PATIENCE", 20.0)
    address, scheduler = dask_elsewhere
    fine = [Cube(number=number) for number in range(3)]
    beside = Slow(number=1, seconds=0.5, trace=str(tmp_path / "trace"))
    plan = store.plan([Poison(how="kills"), beside, *fine])
    tally = run(plan, ClusterExecutor(address), store)
    assert (tally.answered, tally.failed) == (4, 1)
    (failure,) = store.failures_of(plan.work).values()
    # Twice with the innocent beside it, twice alone.
    assert failure.traceback == "the worker died 4 times"

    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    endless = [Slow(number=n, seconds=60, trace=str(tmp_path / "trace")) for n in (7, 8)]

    class EndsTheCluster(NoProgress):
        def show(self, item):
            scheduler.kill()

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    start = time.monotonic()
    with pytest.raises(ExecutorError, match=r"what it had answered is stored: start it again"):
        run(store.plan(endless), ClusterExecutor(address), store, progress=EndsTheCluster())
    assert time.monotonic() - start < 30
    assert len(store.plan([*fine, *endless]).answered) == 3


def test_dask_is_imported_before_ctrl_c_is_held_back():
    """Importing takes seconds on a busy machine, and Ctrl-C must be able to end it."""
    code = (
        "import sys; from headwise.runs import ClusterExecutor\n"
        "from headwise.runs.examples import Square\n"
        "from headwise.runs.executors import cluster\n"
        "def held_back(): sys.exit('distributed' in sys.modules and 7)\n"
        "cluster.interrupts_later = held_back\n"
        "list(ClusterExecutor('local:1').outcomes([Square(number=1)], print))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7


def test_an_unreachable_cluster(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(ExecutorError, match=r"no cluster answers at tcp://127\.0\.0\.1:1; check"):
        rows(ClusterExecutor("tcp://127.0.0.1:1"), [Cube(number=1)])


def test_a_local_cluster_whose_workers_are_killed_at_the_start_is_started_again(monkeypatch):
    start, failures = cluster._local_cluster, []

    def killed(*given):
        if len(failures) < most:
            failures.append(given)
            raise RuntimeError("Nanny failed to start.")
        return start(*given)

    monkeypatch.setattr(cluster, "_local_cluster", killed)
    most, executor, spec = 2, ClusterExecutor("local:1"), Cube(number=2)
    try:
        assert rows(executor, [spec])[spec.key]["cube"] == 8
    finally:
        executor.close()
    most = 1000
    with pytest.raises(ExecutorError, match=r"ended 3 times while they started; free some memory"):
        rows(ClusterExecutor("local:1"), [spec])
    assert len(failures) == 5


@pytest.mark.parametrize("address", ["", "local:0", "local:x", "http://h:1", "tcp://h", "8786"])
def test_addresses_that_are_none(address):
    with pytest.raises(BadInputError, match="expected `cluster` local, local:4, tcp://HOST:PORT"):
        ClusterExecutor(address)


def test_a_daemon_cannot_start_workers(monkeypatch):
    import multiprocessing

    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(ExecutorError, match=r"cannot start workers of its own; run specs from"):
        rows(LocalExecutor(workers=1), [Cube(number=1)])


def test_a_run_can_be_stopped_while_a_spec_is_computed(store, tmp_path):
    class Impatient(NoProgress):
        told = 0

        def show(self, item):
            self.told += 1
            if self.told > 1:  # not at the start of the spec, but while it is computed
                raise StoppedError("enough", hint="run it again")

    slow = Slow(number=1, seconds=120, trace=str(tmp_path / "trace"))
    started = time.monotonic()
    with pytest.raises(StoppedError, match="enough"):
        run(store.plan([slow]), LocalExecutor(workers=1), store, progress=Impatient())
    assert time.monotonic() - started < 100
    assert not store.answered()


def test_no_workers_do_no_work():
    with pytest.raises(BadInputError, match="expected `workers` of at least 1, got 0"):
        LocalExecutor(workers=0)


UNGUARDED = """
from headwise.runs import LocalExecutor
from headwise.runs.examples import Square
print(list(LocalExecutor(1).outcomes([Square(number=1)], lambda spec: None)))
"""


def test_a_script_that_starts_itself_again_gets_a_hint(tmp_path):
    (tmp_path / "script.py").write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "exit code 1 while it started" in done.stderr
    assert 'must do so under if __name__ == "__main__"' in done.stderr


def test_a_spec_that_a_worker_cannot_load_has_failed():
    class Local(Cube, frozen=True):
        """Known to this process alone."""

    # By the name of a class that no module has.
    Local.__qualname__, Local.__module__ = "Absent", "headwise.runs.examples"
    import headwise.runs.examples as examples

    examples.Absent = Local
    executor = LocalExecutor(workers=1)
    try:
        (outcome,) = executor.outcomes([Local(number=1)], lambda spec: None)
    finally:
        executor.close()
        del examples.Absent
    assert isinstance(outcome, Failure)
    assert "AttributeError" in outcome.reason


def test_workers_receive_the_device(store):
    spec = Cube(number=2)
    run(store.plan([spec]), LocalExecutor(workers=1, device="meta"), store)
    record = store.records()[spec.key]
    assert record.rows[0]["device_seen"] == "meta"
    assert record.provenance.device == "meta"


def test_provenance_names_no_host_and_no_path(store):
    import socket

    spec = Cube(number=2, seed=11)
    command = command_line(["/usr/bin/headwise", "reproduce", "--store", "/home/me/r.db"])
    run(store.plan([spec]), LocalExecutor(workers=1), store, command=command)
    found = store.records()[spec.key].provenance
    assert found.code.startswith(headwise.__version__)
    assert (found.seed, found.dtype, found.device) == (11, "float64", "cpu")
    assert found.command == "headwise reproduce --store …/r.db"
    written = str(replace(found, code=""))
    for private in (socket.gethostname(), str(Path.home()), str(Path.cwd()), "/home"):
        assert private not in written


def test_git_revision_only_of_our_own_checkout(tmp_path):
    from headwise.runs.provenance import _git_revision

    assert _git_revision(tmp_path) == ""
    git = ("git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    (tmp_path / "__init__.py").touch()
    assert _git_revision(tmp_path) == "", "it lies in a checkout, but is not part of it"
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "y"], check=True)
    assert re.fullmatch(r"[0-9a-f]{12}", _git_revision(tmp_path))
    (tmp_path / "__init__.py").write_text("x = 1\n")
    assert _git_revision(tmp_path).endswith("-dirty")


def test_a_spec_beside_one_that_kills_workers_is_asked_again_alone():
    poison, innocent, other = (Cube(number=number) for number in range(3))
    turns = Turns([poison, innocent, other])
    assert turns.next_specs(2) == [poison, innocent]
    assert turns.mourn(poison, 4) is turns.mourn(innocent, 4) is None
    assert turns.next_specs(2) == [other], "suspects wait until nothing else is left"
    assert turns.next_specs(2) == []
    turns.finish(other)
    assert turns.next_specs(2) == [poison]
    assert turns.mourn(poison, 4) == 8
    assert turns.next_specs(2) == [innocent]
    turns.finish(innocent)
    assert not turns.left


def test_rows_must_be_rows():
    for bad in (3, None, [], [1], {"a": (1, 2)}, {1: 2}):
        with pytest.raises(BadInputError):
            attempt.checked_rows(bad)
