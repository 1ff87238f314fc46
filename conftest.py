"""What every test and every documentation example may use."""

from importlib.util import find_spec

import pytest
import torch
from hypothesis import settings

# Kernels can only be read, for their examples, where what they are written in is installed.
collect_ignore_glob = [] if find_spec("triton") else ["src/headwise/*/*_triton.py"]

# Tests run side by side; one thread each keeps them from waiting for one another.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch


# A first call loads and compiles, and other work shares the machine: time is no property tested.
settings.register_profile(
    "headwise", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("headwise")
