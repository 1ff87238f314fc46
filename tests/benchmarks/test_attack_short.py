"""A short run of the attacks on stores, processes and the page; and faults that they must find."""

import random
from collections import Counter

import pytest
from benchmarks.attack import disks, interrupts, kills, page, processes

from headwise.runs import Store


def test_disks_clocks_and_damage():
    found = disks.attack(seed=500, minutes=2, most=len(disks.kinds()) * 2)
    assert found["faults"] == 0
    assert len(found["outcomes"]) >= len(disks.kinds())


def test_an_answer_that_is_lost_is_found(monkeypatch):
    monkeypatch.setattr(Store, "put", lambda *_: None)
    assert "is lost" in str(disks.play(4, "wrong clock", Counter()))


def test_an_error_that_is_not_ours_is_found(monkeypatch):
    def broken(*_):
        raise OSError("the disk is gone")

    monkeypatch.setattr(Store, "put", broken)
    assert "OSError" in str(disks.play(4, "wrong clock", Counter()))


def test_threads_and_forks():
    found = processes.attack(seed=0, minutes=0, kinds=("threads", "fork"))
    assert found == {"rounds": {"threads": 1, "fork": 1}, "faults": 0, "seed": 0}


def test_a_count_that_differs_between_threads_is_found(monkeypatch):
    monkeypatch.setattr(processes, "ranks", lambda seed: [[random.random()]])
    assert processes.threads_of(0) == "threads: another count"


def test_several_torch_threads_count_the_same():
    several = next(n for n in range(20) if takes_several_torch_threads(n))
    assert processes.threads(random.Random(several)) is None


def takes_several_torch_threads(seed):
    dice = random.Random(seed)
    dice.randrange(10**6)
    return dice.random() >= 0.5


@pytest.mark.slow
def test_nested_processes_and_ctrl_c():
    found = processes.attack(seed=0, minutes=0, kinds=("nested", "interrupt"))
    assert found == {"rounds": {"nested": 1, "interrupt": 1}, "faults": 0, "seed": 0}


WORKER = """Process ForkServerPoolWorker-1:
Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/process.py", line 314, in _bootstrap
KeyboardInterrupt
headwise: stopped
"""

BEFORE_OURS = """Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/project/src/headwise/__init__.py", line 3, in <module>
KeyboardInterrupt
"""


@pytest.mark.parametrize(
    ("code", "said", "faulty"),
    [
        (130, "headwise: stopped\n", False),
        (0, "done\n", False),
        (1, "headwise: stopped\n", True),
        (130, WORKER, True),
        (1, BEFORE_OURS, False),
    ],
)
def test_a_command_that_ctrl_c_ends_badly_is_found(code, said, faulty):
    assert (interrupts.fault_of(code, said) is not None) == faulty


def test_kills(tmp_path):
    figures = kills.Figures()
    kills.attack(["sqlite/local"], seed=3, minutes=0, figures=figures, tell=lambda: None)
    assert sum(figures.kills.values()) >= 1
    assert figures.faults == []


# The upload of a job cancelled while it waits is deleted with the job, and Python warns of that.
cancelled_uploads = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@cancelled_uploads
def test_the_page():
    pytest.importorskip("uvicorn")
    found = page.attack(seed=0, minutes=2, most=page.SHORT)
    assert found["what"] == []
    assert found["requests"] > 300


@cancelled_uploads
def test_a_page_that_lets_foreign_requests_in_is_found(monkeypatch):
    pytest.importorskip("uvicorn")
    from headwise.web.safety import Guard

    monkeypatch.setattr(Guard, "_refusal", lambda *_: None)
    with page.running() as one:
        page.foreign(one, random.Random(0))
    assert len(one.faults) >= 2
