"""torch.compile(fullgraph=True) takes every preset, forward and backward, and computes the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attention.every_preset import PRESETS

TESTS = Path(__file__).parents[1]


def run(backend, names):
    path = os.pathsep.join(
        [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    )
    return subprocess.run(
        [sys.executable, str(TESTS / "attention" / "compile_presets.py"), backend, *names],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_preset_is_one_graph():
    done = run("aot_eager", PRESETS)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[:-1] == [f"compiled {name}" for name in [*PRESETS, "masks"]]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_machine_code_of_the_two_kernels_computes_the_same():
    done = run("inductor", ["mha", "rank one"])
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[:-1] == ["compiled mha", "compiled rank one"]
