"""What every test and every documentation example may use."""

from importlib.util import find_spec

import pytest
import torch

# Its examples are collected by importing it, which needs Triton.
collect_ignore = [] if find_spec("triton") else ["src/headwise/attention/short_triton.py"]

# Tests run side by side; one thread each keeps them from waiting for one another.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
