"""The scripts beside the package, importable by name."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _scripts():
    """For the session: fixtures of a module import scripts too."""
    folder = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    yield
    sys.path.remove(folder)
