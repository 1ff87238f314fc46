"""Killed workers, poison, killed drivers, Ctrl-C: each done for real, on both executors."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from headwise.errors import ExecutorError, StoreAwayError
from headwise.progress import NoProgress
from headwise.runs import Failure, LocalExecutor, Store, run
from headwise.runs import driver as driver_module
from headwise.runs.executors import local
from runs import drive
from runs.questions import Cube, Poison, Slow, asked

#: Longer than anything here takes, even on a busy machine.
PATIENCE = 60


class KillsOne(NoProgress):
    """Once three specs are answered, kills the worker of the next one that begins."""

    def __init__(self, trace: Path):
        self.trace, self.answers, self.victim = trace, 0, None
        self.killer = Thread(target=self._kill)

    def advance(self, steps=1):
        self.answers += 1
        if self.answers == 3:
            self.killer.start()

    def stop(self):
        self.killer.join()

    def _kill(self):
        before, deadline = len(asked(self.trace)), time.monotonic() + PATIENCE
        while len(asked(self.trace)) == before and time.monotonic() < deadline:
            time.sleep(0.005)
        self.victim, pid = asked(self.trace)[before]
        os.kill(pid, signal.SIGKILL)


def test_a_killed_worker_loses_no_result_and_repeats_only_what_was_in_flight(
    executor, store, tmp_path
):
    trace = tmp_path / "trace"
    specs = [Slow(number=number, seconds=0.4, trace=str(trace)) for number in range(10)]
    killer = KillsOne(trace)
    tally = run(store.plan(specs), executor, store, progress=killer)
    assert (tally.answered, tally.failed) == (10, 0)
    for record in store.records().of(specs):
        number = record.spec["number"]
        assert record.rows == ({"double": 2 * number}, {"double": 2 * number + 1})
    times = Counter(number for number, _ in asked(trace))
    assert killer.victim is not None
    assert times == Counter(dict.fromkeys(range(10), 1)) + Counter([killer.victim])


def test_a_spec_that_kills_workers_is_recorded_and_the_sweep_continues(executor, store):
    fine = [Cube(number=number) for number in range(6)]
    ways = ("raises", "kills", "exits", "nonsense", "nan")
    poison = {how: Poison(how=how) for how in ways}
    plan = store.plan([fine[0], *poison.values(), *fine[1:]])
    tally = run(plan, executor, store)
    assert (tally.answered, tally.failed) == (6, 5)
    found = store.failures_of(poison.values())
    text = {how: found[spec.key].traceback for how, spec in poison.items()}
    assert 'File "runs/questions.py"' in text["raises"]
    assert text["raises"].rstrip().endswith("RuntimeError: this spec is poison")
    assert text["kills"].startswith("the worker died 3 times")
    assert "SystemExit: 3" in text["exits"]
    assert "which a row cannot hold" in text["nonsense"]
    assert "'value' is nan" in text["nan"]
    again = store.plan(plan.work)
    assert again.work == ()
    assert len(again.failed) == 5
    assert set(again.retrying().work) == set(poison.values())


def driver(executor_name, folder, *, count, slow_from):
    return subprocess.Popen(
        [
            *(sys.executable, drive.__file__, executor_name),
            *(folder / "results.db", folder / "trace", str(count), str(slow_from)),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as a terminal does: Ctrl-C goes to the whole group
    )


def answered(folder) -> set[int]:
    if not (folder / "results.db").exists():
        return set()
    with Store.open(folder / "results.db") as store:
        return {record.spec["number"] for record in store.records().values()}


def wait_until(true, process):
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_driver_leaves_a_store_that_needs_only_what_is_missing(executor_name, tmp_path):
    first = driver(executor_name, tmp_path, count=16, slow_from=16)
    wait_until(lambda: len(answered(tmp_path)) >= 4, first)
    first.kill()
    first.communicate(timeout=PATIENCE)
    stored, before = answered(tmp_path), asked(tmp_path / "trace")
    assert 4 <= len(stored) < 16
    second = driver(executor_name, tmp_path, count=16, slow_from=16)
    out, err = second.communicate(timeout=PATIENCE)
    assert (second.returncode, err) == (0, "")
    assert out == f"{16 - len(stored)} answered, 0 failed\n"
    repeated = [number for number, _ in asked(tmp_path / "trace")[len(before) :]]
    assert sorted(repeated) == sorted(set(range(16)) - stored)
    assert answered(tmp_path) == set(range(16))


def test_workers_do_not_outlive_a_killed_driver(executor_name, tmp_path):
    process = driver(executor_name, tmp_path, count=2, slow_from=0)
    wait_until(lambda: len(asked(tmp_path / "trace")) == 2, process)
    process.kill()
    process.communicate(timeout=PATIENCE)
    deadline = time.monotonic() + 10
    pids = {pid for _, pid in asked(tmp_path / "trace")}
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, pids))


def busyness():
    """How much longer work takes here than on an idle machine: wall time over processor time."""
    wall, busy = time.monotonic(), time.process_time()
    while time.process_time() < busy + 0.2:
        pass
    return max(1.0, (time.monotonic() - wall) / 0.2)


def ended_by_ctrl_c(process, seconds=5):
    """What a process printed; it ends within the seconds an idle machine would take."""
    before, start = busyness(), time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    printed = process.communicate(timeout=PATIENCE)
    spent = time.monotonic() - start
    assert spent < seconds or spent < seconds * max(before, busyness())
    return printed


def test_ctrl_c_ends_within_five_seconds_and_can_be_resumed(executor_name, tmp_path):
    process = driver(executor_name, tmp_path, count=8, slow_from=4)
    wait_until(lambda: {4, 5} <= {number for number, _ in asked(tmp_path / "trace")}, process)
    wait_until(lambda: len(answered(tmp_path)) == 4, process)
    out, err = ended_by_ctrl_c(process)
    assert (process.returncode, out) == (130, "")
    assert err == (
        f"stopped with 4 of 8 left; the others are in {tmp_path / 'results.db'}; "
        "run the same command again to go on\n"
    )
    assert not any(is_alive(pid) for _, pid in asked(tmp_path / "trace"))
    # Its log was folded into it: a copy of the one file is whole.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.db", "trace"]
    assert answered(tmp_path) == {0, 1, 2, 3}


def test_ctrl_c_while_workers_start_is_as_quiet(executor_name, tmp_path):
    process = driver(executor_name, tmp_path, count=4, slow_from=0)
    wait_until((tmp_path / "results.db").exists, process)
    time.sleep(0.3)
    out, err = ended_by_ctrl_c(process)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("stopped with 4 of 4 left")
    assert err.count("\n") == 1


def test_a_repeated_spec_is_noticed(store, tmp_path):
    from headwise.runs import LocalExecutor

    spec = Slow(number=1, seconds=0, trace=str(tmp_path / "trace"))
    for _ in range(2):
        executor = LocalExecutor(workers=1)
        outcomes = list(executor.outcomes([spec], lambda spec: None))
        executor.close()
        assert not isinstance(outcomes[0], Failure)
    assert len(asked(tmp_path / "trace")) == 2


def test_a_run_waits_for_a_database_that_stops_answering(
    postgres_server, empty_postgres, tmp_path, capfd
):
    trace = tmp_path / "trace"
    specs = [Slow(number=number, seconds=0.5, trace=str(trace)) for number in range(6)]

    def restart():
        while len(asked(trace)) < 3:
            time.sleep(0.05)
        postgres_server.kill()
        time.sleep(2)
        postgres_server.start()

    killer = Thread(target=restart)
    killer.start()
    with Store.open(empty_postgres) as store:
        tally = run(store.plan(specs), LocalExecutor(workers=2), store)
        killer.join()
        assert (tally.answered, tally.failed) == (6, 0)
        assert len(store.records()) == 6
    assert len(asked(trace)) == 6
    assert "Traceback" not in capfd.readouterr().err


def test_a_database_that_stays_away_ends_the_run_in_one_line(
    postgres_server, empty_postgres, tmp_path, monkeypatch
):
    monkeypatch.setattr(driver_module, "DATABASE_PATIENCE", 1.0)
    specs = [Slow(number=1, seconds=0.5, trace=str(tmp_path / "trace"))]
    with Store.open(empty_postgres) as store:
        plan = store.plan(specs)
        postgres_server.stop()
        try:
            with pytest.raises(StoreAwayError, match="cannot be reached") as raised:
                run(plan, LocalExecutor(workers=1), store)
        finally:
            postgres_server.start()
    assert "\n" not in str(raised.value)


def killed_at_start(monkeypatch, times):
    """Kill the first workers before they are ready."""
    started, killed = local._started, []

    def start(*given):
        worker = started(*given)
        if len(killed) < times:
            killed.append(worker.process.pid)
            os.kill(worker.process.pid, signal.SIGKILL)
            worker.process.join()
            # A quick worker may have said that it is ready before the signal came.
            with suppress(EOFError, OSError):
                while worker.connection.poll():
                    worker.connection.recv_bytes()
        return worker

    monkeypatch.setattr(local, "_started", start)
    return killed


def test_workers_killed_while_they_start_are_started_again(store, monkeypatch):
    killed = killed_at_start(monkeypatch, 4)
    specs = [Cube(number=number) for number in range(4)]
    assert run(store.plan(specs), LocalExecutor(workers=2), store).answered == 4
    assert len(killed) == 4


def test_workers_that_are_always_killed_end_the_run_with_a_fitting_hint(store, monkeypatch):
    killed = killed_at_start(monkeypatch, 1000)
    with pytest.raises(ExecutorError, match=r"10 worker .* were killed .*; free some memory"):
        run(store.plan([Cube(number=1)]), LocalExecutor(workers=1), store)
    assert len(killed) == 10


def killed_fork_server(monkeypatch, times):
    """Kill the process that forks workers in the middle of starting one."""
    from multiprocessing import forkserver, popen_forkserver

    connect, killed = forkserver.connect_to_new_process, []

    def killing(descriptors):
        found = connect(descriptors)
        if len(killed) < times:
            killed.append(forkserver._forkserver._forkserver_pid)
            os.kill(killed[-1], signal.SIGKILL)
        return found

    monkeypatch.setattr(popen_forkserver.forkserver, "connect_to_new_process", killing)
    return killed


def test_a_fork_server_killed_while_it_starts_a_worker_is_started_again(store, monkeypatch):
    killed = killed_fork_server(monkeypatch, 2)
    assert run(store.plan([Cube(number=1)]), LocalExecutor(workers=1), store).answered == 1
    assert len(set(killed)) == 2


def test_a_killed_fork_server_that_takes_a_second_to_end_is_waited_for(store, monkeypatch):
    started, first = local._started, time.monotonic()

    def start(*given):
        if time.monotonic() < first + 1:
            raise EOFError
        return started(*given)

    monkeypatch.setattr(local, "_started", start)
    assert run(store.plan([Cube(number=1)]), LocalExecutor(workers=1), store).answered == 1


def test_a_worker_whose_driver_is_gone_ends_without_a_word(monkeypatch):
    from multiprocessing import Pipe

    from headwise.runs.executors import worker

    monkeypatch.setattr(worker, "become_worker", lambda: None)
    driver, own = Pipe()
    driver.close()
    worker.serve(own, "cpu")
    own.close()
