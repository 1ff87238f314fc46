"""What an import costs: nothing heavy comes in before it is used."""

import resource
import subprocess
import sys

import pytest

HEAVY = {"torch", "matplotlib", "scipy", "numpy", "transformers", "safetensors", "sqlalchemy"}


def loaded_by(statement: str) -> set[str]:
    """The top-level modules a fresh interpreter holds after the statement."""
    code = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.splitlines()[-1].split())


HELP = """
from headwise.cli.app import main
try:
    main({arguments})
except SystemExit:
    pass
"""


@pytest.mark.parametrize(
    "statement",
    [
        "import headwise",
        HELP.format(arguments=["--help"]),
        HELP.format(arguments=["rank", "--help"]),
        HELP.format(arguments=["--version"]),
        HELP.format(arguments=["rank", "--bogus"]),
        HELP.format(arguments=["rank", "no/such.npy"]),
        HELP.format(arguments=["rank", "--queries", "no/such.npy", "--keys", "no/such.npy"]),
        HELP.format(arguments=["advise", "no/such.npy"]),
        HELP.format(arguments=["advise", "--config", "no/such.json"]),
        HELP.format(arguments=["trial", "no/such.npy"]),
        HELP.format(arguments=["trial", "digits.npy", "--labels", "no/such.npy"]),
        HELP.format(arguments=["scan", "no/such/model", "--random"]),
        HELP.format(arguments=["reduce", "no/such/model", "--text", "README.md", "--rank", "8"]),
        HELP.format(arguments=["data", "no/such"]),
    ],
)
def test_nothing_heavy_is_loaded(statement):
    loaded = loaded_by(statement)
    assert "headwise" in loaded
    assert not loaded & HEAVY


def seconds_of(*arguments: str) -> float:
    """Least processor time of three runs, which other work on the machine hardly changes."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    return min(once() for _ in range(3))


def test_help_takes_less_than_three_tenths_of_a_second():
    assert 0 < seconds_of("-m", "headwise", "--help") < 0.3


def test_importing_headwise_takes_less_than_fifty_milliseconds():
    assert seconds_of("-c", "import headwise") - seconds_of("-c", "pass") < 0.05


def test_listing_exhibits_takes_less_than_a_second():
    assert 0 < seconds_of("-m", "headwise", "reproduce", "--list") < 1


def test_the_measuring_core_does_without_the_command_line():
    """Heavy modules are seen where they are loaded."""
    core = "headwise, headwise.spectra, headwise.attention, headwise.training"
    loaded = loaded_by(f"import {core}; headwise.measure")
    assert "torch" in loaded
    faces = {"typer", "rich", "pydantic", "sqlalchemy", "matplotlib", "safetensors", "transformers"}
    assert not loaded & faces


def test_runs_loads_no_mathematics_and_no_cluster():
    loaded = loaded_by("import headwise.runs, headwise.report")
    assert {"pydantic", "sqlalchemy"} <= loaded
    assert not loaded & (HEAVY - {"sqlalchemy"})
    assert not loaded & {"distributed", "dask", "psycopg", "pyarrow", "typer", "rich"}


def test_making_a_layer_loads_no_computer_algebra():
    made = "from headwise.attention import HeadGeometry, mha; mha(HeadGeometry.standard(8, 2))"
    loaded = loaded_by(made)
    assert "torch" in loaded
    assert not loaded & {"sympy"}
