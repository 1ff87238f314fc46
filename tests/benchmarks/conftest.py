"""The scripts beside the package, importable by name."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
