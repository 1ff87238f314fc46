"""What every test and every documentation example may use."""

import pytest
import torch

# Tests run side by side; one thread each keeps them from waiting for one another.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _names_in_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["torch"] = torch
