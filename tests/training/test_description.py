"""What a task is called in a checkpoint: the same in every process, another for another task."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.data import (
    Batch,
    BiasedNearestNeighbour,
    FarthestNeighbour,
    InContext,
    NearestNeighbour,
    OrthonormalPairs,
    Planted,
    Samples,
)
from headwise.training.description import LONGEST, described


def samples(value=0.0, dtype=torch.float32, classes=(0, 1), smoothing=0.0):
    data = Batch((torch.tensor([[1.0, 2.0], [3.0, value]], dtype=dtype),), (torch.tensor(classes),))
    return Samples(data, data, smoothing)


class Bare:
    """A task with nothing to say of itself."""

    def __init__(self, size, inner=None):
        self.size, self.inner, self.words = size, inner, {"a", "b", "c"}


TASKS = [
    FarthestNeighbour(4, 3),
    FarthestNeighbour(4, 5),
    FarthestNeighbour(4, 3, Planted(2.0)),
    FarthestNeighbour(4, 3, Planted(3.0)),
    NearestNeighbour(4, 3),
    OrthonormalPairs(4),
    BiasedNearestNeighbour(4),
    InContext(4, 7),
    InContext(4, 7).for_steps(50),
    samples(),
    samples(1.0),
    samples(dtype=torch.float64),
    samples(classes=(1, 0)),
    samples(smoothing=0.1),
    Bare(3),
    Bare(4),
    Bare(np.arange(2000)),
    Bare(np.arange(2000)[::-1]),
    Bare(tuple(range(2000))),
    Bare((*range(1999), 0)),
    Bare("two\nlines"),
    Bare("twolines"),
]


def test_every_task_has_a_line_of_its_own():
    lines = [described(task) for task in TASKS]
    assert len(set(lines)) == len(lines)
    assert all(len(line) <= LONGEST and len(line.splitlines()) == 1 for line in lines)


def test_a_task_is_found_again_in_another_process():
    roots = [str(Path(__file__).parents[2] / "src"), str(Path(__file__).parents[1])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(roots), "PYTHONHASHSEED": "7"}
    script = "from training.test_description import *; print(*map(described, TASKS), sep='\\n')"
    told = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert told.stdout.splitlines() == [described(task) for task in TASKS]


def test_addresses_are_left_out():
    assert described(Bare(3, Bare(4))) == described(Bare(3, Bare(4)))
    assert "0x" not in described(Bare(3, described))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.int64, torch.complex64])
def test_numbers_of_different_kinds_have_different_descriptions(dtype):
    one, other = torch.zeros(3, dtype=dtype), torch.ones(3, dtype=dtype)
    assert described(one) == described(one.clone()) != described(other)
    assert described(one[0]) != described(one[:1])


def test_the_memory_layout_does_not_change_the_description():
    task = samples()
    turned = Batch(tuple(t.T.contiguous().T for t in task.trained.inputs), task.trained.targets)
    assert described(replace(task, trained=turned)) == described(task)
