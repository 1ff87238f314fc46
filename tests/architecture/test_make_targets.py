"""The two commands, and what stands behind them."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def planned(target: str) -> str:
    """What ``make`` would run for a target in a folder without .venv, without running it."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "--no-print-directory", target],
        cwd=ROOT,
        # These tests themselves run under make, whose flags would be inherited.
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_demo_installs_the_pinned_versions_and_asks_for_advice():
    plan = planned("demo")
    assert plan.index("-m venv .venv") < plan.index("-c constraints.txt -e .")
    assert plan.rstrip().endswith(".venv/bin/headwise advise --html local/advice.html")


def test_test_runs_every_check():
    plan = planned("test")
    for tool in ("ruff check", "ruff format --check", "basedpyright", "lint-imports", "pytest"):
        assert f".venv/bin/{tool}" in plan


def test_test_all_adds_the_slow_tests_and_coverage():
    assert '-m "not slow"' in planned("test")
    assert "not slow" not in planned("test-all")
    assert "--cov=headwise" in planned("test-all")


def test_ci_runs_every_test():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().rstrip().splitlines()[-1] == "make test-all"


def test_what_python_compiles_is_kept():
    """Many machines set this variable; then every process compiles torch again, for seconds."""
    done = subprocess.run(
        ["make", "--no-print-directory", "--eval", "show-variables: ; @env", "show-variables"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "KEPT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "KEPT=1" in done.stdout
    assert "PYTHONDONTWRITEBYTECODE" not in done.stdout


def test_every_target_is_phony_or_a_file():
    phony = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M).group(1).split())
    targets = set(re.findall(r"^([\w.-]+):", MAKEFILE, re.M)) - {".PHONY"}
    assert targets == phony


@pytest.mark.parametrize(
    "extra", ["", "dev", "docs", "cluster", "postgres", "parquet", "vision", "frames"]
)
def test_every_requirement_is_pinned(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"][extra] if extra else project["dependencies"]
    names = {re.match(r"[\w.-]+", line).group() for line in wanted}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.partition("==")[0].lower() for line in lines if "==" in line}
    assert names
    assert {name.lower() for name in names} - {"headwise"} <= pinned
