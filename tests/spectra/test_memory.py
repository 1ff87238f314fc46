import resource
import subprocess
import sys
import textwrap

import pytest
import torch

from headwise import memory
from headwise.errors import TooLargeError
from headwise.spectra import LogWeights, count


def test_what_would_not_fit_is_refused_before_it_is_allocated(monkeypatch):
    monkeypatch.setattr(memory, "ALWAYS_TRIED", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda device: 10_000)
    with pytest.raises(TooLargeError, match=r"60×60 matrix needs 86\.4 kB.*10 kB is free; use"):
        count(torch.randn(60, 60, dtype=torch.float64))
    with pytest.raises(TooLargeError):
        count(LogWeights(torch.randn(60, 60, dtype=torch.float64)))
    assert int(count(torch.eye(60, dtype=torch.float64))) == 60, "sparse work needs little"


def test_limits_of_a_container_are_respected(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    monkeypatch.setattr(memory, "GROUP_FOLDER", tmp_path)
    assert memory.available_bytes(torch.device("cpu")) == 600
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "facts").write_text("MemAvailable:   5 kB\n")
    monkeypatch.setattr(memory, "MEMORY_FACTS", tmp_path / "facts")
    assert memory.available_bytes(torch.device("cpu")) == 5 * 1024
    monkeypatch.setattr(memory, "MEMORY_FACTS", tmp_path / "absent")
    assert memory.available_bytes(torch.device("cpu")) is None


MEASURE = """
import resource, sys, torch
from headwise.spectra import LogWeights, count
torch.set_num_threads(1)
def logits(batch, n, scale):
    g = torch.Generator().manual_seed(0)
    q = torch.randn(batch, n, 16, generator=g, dtype=torch.float64)
    k = torch.randn(batch, n, 16, generator=g, dtype=torch.float64)
    return scale * q @ k.mT
batch, n, scale = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
count(LogWeights(logits(1, min(n, 800), scale)))  # libraries take their own memory once
source = logits(batch, n, scale)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
method = count(LogWeights(source)).methods[0]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(method, (after - before) * 1024 / source.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read the Linux way")
@pytest.mark.parametrize(
    ("batch", "n", "scale", "method"),
    [(60, 400, 100.0, "near-hardmax"), (30, 400, 0.3, "deflation"), (100, 200, 0.3, "qr"),
     (1, 1700, 0.2, "deflation"), (1, 1700, 0.05, "deflation")],
)  # fmt: skip
def test_extra_memory_stays_below_three_times_the_batch(batch, n, scale, method):
    words = [sys.executable, "-c", textwrap.dedent(MEASURE), str(batch), str(n), str(scale)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == method
    assert float(said[1]) < 3


def test_the_reading_of_peak_memory_can_fail():
    """The figure above is a real one: holding a copy raises it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    held = torch.ones(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 128 + 2**24)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) * 1024 > 0.2 * held.nbytes
