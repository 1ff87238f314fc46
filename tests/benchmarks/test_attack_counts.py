"""The adversary of certified counts: it finds lies and failures, and keeps them when killed."""

import json
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections import Counter
from types import SimpleNamespace

import pytest
from benchmarks.attack import certificates, many
from benchmarks.attack.remainders import Remainder

from headwise.spectra import deflation


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


def test_a_short_attack_on_deflation_finds_nothing_and_takes_every_way(monkeypatch):
    ways, taken = ("_count_by_squares", "_count_whitened", "_count_in_basis"), set()

    def noting(name, way):
        def noted(*args):
            found = way(*args)
            taken.update({name} if found is not None else ())
            return found

        return noted

    for name in ways:
        monkeypatch.setattr(deflation, name, noting(name, getattr(deflation, name)))
    checked = Counter()
    for seed in range(100, 180):
        one = certificates.target(seed, 60, "deflation")
        assert list(certificates.attack(one, "cpu", checked)) == []
    assert checked["deflation"] > 250
    assert taken == set(ways)


def test_an_attack_on_deflation_finds_a_claim_beyond_its_bound(monkeypatch):
    honest = deflation._count_remainder

    def boastful(triangle, lead, epsilon, delta, largest):
        found = honest(triangle, lead, epsilon, delta, largest)
        return None if found is None else deflation.Deflated(found.low, found.low, 1e-9)

    monkeypatch.setattr(deflation, "_count_remainder", boastful)
    targets = (certificates.target(seed, 40, "deflation") for seed in range(40))
    assert any(list(certificates.attack(one, "cpu", Counter())) for one in targets)


def test_matrices_for_deflation_cross_its_panels():
    sizes = {min(Remainder.numbered(seed, 260).matrix.shape) for seed in range(400)}
    assert sizes & {127, 128, 129} and sizes & {255, 256, 257}
