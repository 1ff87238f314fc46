"""Windows for next-token prediction: what trains and what is tested never overlap."""

import pytest
import torch

from headwise.data import NextToken
from headwise.errors import BadInputError


@pytest.mark.parametrize("length", [1, 4, 7])
def test_training_windows_never_reach_the_test_part(length):
    task = NextToken.of_text(torch.arange(101), length)
    trained = task.batch(torch.arange(len(task.trained)))
    tested = task.examine(1000, torch.Generator())
    seen = {*trained.inputs[0].flatten().tolist(), *trained.targets[0].flatten().tolist()}
    asked = {*tested.inputs[0].flatten().tolist(), *tested.targets[0].flatten().tolist()}
    assert not seen & asked
    assert max(asked) <= 100


def test_rows_stay_apart():
    rows = torch.arange(60).view(10, 6)
    task = NextToken.of_rows(rows)
    batch = task.batch(torch.arange(9))
    assert torch.equal(batch.inputs[0], rows[:9, :-1])
    assert torch.equal(batch.targets[0], rows[:9, 1:])
    assert torch.equal(task.examine(5, torch.Generator()).inputs[0], rows[9:, :-1])


def test_a_uniform_answer_costs_the_log_of_the_vocabulary():
    task = NextToken.of_text(torch.arange(40) % 5, 3)
    batch = task.examine(2, torch.Generator())
    scores = torch.zeros(*batch.targets[0].shape, 5)
    assert float(task.loss(scores, *batch.targets)) == pytest.approx(1.6094379)


@pytest.mark.parametrize("ids", [torch.arange(8), torch.arange(0)])
def test_too_short_a_text_is_refused(ids):
    with pytest.raises(BadInputError, match="expected at least 13 tokens"):
        NextToken.of_text(ids, length=5)


def test_one_row_is_refused():
    with pytest.raises(BadInputError, match="expected at least 2 sequences"):
        NextToken.of_rows(torch.zeros(1, 5, dtype=torch.int64))
