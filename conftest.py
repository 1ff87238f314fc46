"""What every test and every documentation example may use."""

import signal
from importlib.util import find_spec

import pytest
import torch
from hypothesis import settings

# Kernels can only be read, for their examples, where what they are written in is installed.
collect_ignore_glob = [] if find_spec("triton") else ["src/headwise/*/*_triton.py"]

# Tests run side by side; one thread each keeps them from waiting for one another.
torch.set_num_threads(1)


# Started in the background (nohup make test &), a process inherits an ignored SIGINT, and so do
# the processes that tests start and interrupt. Restore Python's own handler.
signal.signal(signal.SIGINT, signal.default_int_handler)


#: Files whose tests are slow: kills, clusters, end-to-end runs, documentation drift.
SLOW = (
    "tests/attention/test_compile.py",
    "tests/runs/test_endurance.py",
    "tests/runs/test_executors.py",
    "tests/runs/test_how_to.py",
    "tests/golden/test_golden.py",
    "tests/architecture/test_types.py",
    "tests/cli/test_manners.py",
    "tests/cli/test_advise.py::test_the_legend_explains_only",
    "tests/cli/test_reproduce.py::test_an_unreachable_cluster",
    "tests/cli/test_reproduce.py::test_the_star",
    "tests/cli/test_reproduce.py::test_the_summary_of_several",
    "tests/cli/test_scan.py::test_every_output",
    "tests/cli/test_trial.py::test_the_answer_fits_100_columns",
    "tests/cli/test_errors.py::test_processes",
    "tests/report/test_report.py::test_processes",
    "tests/runs/test_store.py::test_ten_thousand",
    "tests/spectra/test_certificates.py::test_adversarial_families_are_counted_correctly[42]",
    "tests/spectra/test_certificates.py::test_adversarial_families_are_counted_correctly[84]",
    "tests/advice/test_answer_words.py::test_a_multiple_of_8",
    "tests/advice/test_measuring.py::TestUnevenSequences",
    "tests/arrays/test_bad_files.py::test_a_file_that_nests_without_end",
    "tests/test_readme.py",
    "tests/test_layers_page.py",
    "tests/theory/test_theorems.py::test_the_documentation_page",
    "tests/training/test_page.py",
    "tests/trials/test_trial_page.py",
    "tests/trials/test_workers.py::test_a_trial_resumes",
    "tests/trials/test_workers.py::test_workers_give",
    "tests/benchmarks",
    "tests/papers",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow files, so that ``-m "not slow"`` leaves them out."""
    for item in items:
        # ``everything`` reproduces every exhibit in miniature.
        whole = "everything" in getattr(item, "fixturenames", ())
        if whole or item.nodeid.startswith(SLOW) or "killed" in item.name:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch


# A first call loads and compiles, and other work shares the machine: time is no property tested.
settings.register_profile(
    "headwise", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("headwise")
