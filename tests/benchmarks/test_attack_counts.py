"""The adversary of certified counts: it finds lies and failures, and keeps them when killed."""

import json
import signal
import subprocess
import sys
import time
from argparse import Namespace
from types import SimpleNamespace

import pytest
from benchmarks.attack import certificates, many


def one_too_many(source, epsilon):
    honest = certificates.count(source, epsilon, method="svd")
    return SimpleNamespace(low=honest.low + 1, high=honest.high + 1, delta=honest.delta)


def broken(source, epsilon):
    raise RuntimeError("a broken method")


@pytest.mark.parametrize(("method", "kind"), [(one_too_many, "wrong"), (broken, "failed")])
def test_a_search_tells_every_finding_with_its_seed(monkeypatch, method, kind):
    monkeypatch.setattr(certificates, "methods", lambda: {"planted": method})
    monkeypatch.setattr(certificates, "MOST_FAILURES", 3)
    told, found = [], certificates.Findings(7, "cpu")
    deadline = time.monotonic() + 0.5
    certificates.search(found, 6, deadline, lambda news: told.append(news) if news else None)
    assert told and {next(iter(news)) for news in told} == {kind}
    assert found.report()[kind] == len(told)
    assert {"seed", "largest"} <= told[0][kind].keys()
    assert told[0][kind]["seed"] >= 7


TELLS_AND_WAITS = """
import time
print('{"so far": {"matrices": 5, "counts checked": 40, "wrong": 0, "failed": 0}}', flush=True)
print('{"wrong": {"seed": 9}}', flush=True)
time.sleep(600)
"""


def test_figures_are_kept_when_the_run_is_stopped(tmp_path, monkeypatch):
    started = []

    def start(device, seed, *_):
        started.append(lane_of(TELLS_AND_WAITS, device, seed))
        return started[-1]

    def stop(path, report):
        write(path, report)
        if report["parts"]["cpu"]["wrong"] and len(started) == 1:
            started.append(None)
            raise KeyboardInterrupt

    write = many.write_whole
    monkeypatch.setattr(many.Lane, "start", start)
    monkeypatch.setattr(many, "write_whole", stop)
    monkeypatch.setattr(many, "PAUSE", 0.1)
    chosen = Namespace(seed=3, minutes=9, largest=5, out=tmp_path / "counts.json")
    with pytest.raises(KeyboardInterrupt):
        many.attack_with_many({"cpu": 1}, chosen)
    found = json.loads(chosen.out.read_text())["parts"]["cpu"]
    assert (found["counts checked"], found["wrong counts"]) == (40, [{"seed": 9}])
    assert found["seeds"] == [3]
    assert started[0].process.wait() == -signal.SIGKILL


def lane_of(code, device="cpu", seed=0):
    """A process that prints what the code says."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return many.Lane(
        device, seed, subprocess.Popen([sys.executable, "-c", code], text=True, **pipes)
    )


def test_what_a_process_prints_is_kept():
    lane = lane_of('print(\'{"wrong": {"seed": 4}}\'); 1/0')
    lane.read()
    lane.process.wait()
    assert lane.ended_early
    assert lane.wrong == [{"seed": 4}]
    assert lane.other[-1] == "ZeroDivisionError: division by zero"
    assert many.summary([lane], "cpu")["wrong counts"] == [{"seed": 4}]
