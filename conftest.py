"""What every test and every documentation example may use."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
