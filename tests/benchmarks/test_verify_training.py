"""A recorded cell's first steps, run again: the same curve agrees, another is noticed."""

from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from sys import modules

import pytest

from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.runs import Record
from headwise.runs.attempt import attempt
from headwise.runs.examples import Square

PATH = Path(__file__).parents[2] / "benchmarks" / "verify_training.py"


@pytest.fixture(scope="module")
def verify():
    spec = spec_from_file_location("verify_training", PATH)
    module = modules["verify_training"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del modules["verify_training"]


def answered(spec):
    outcome = attempt(spec)
    return Record(spec.key, spec.content, outcome.rows, outcome.provenance)


@pytest.fixture(scope="module")
def record():
    sizes = {"width": 4, "tokens": 3, "mlp_width": 8, "batch": 8, "sequences": 16}
    return answered(TrainNeighbours(rank=2, steps=60, epoch=5, evaluation=8, seeds=(0, 1), **sizes))


def test_the_same_code_gives_the_same_beginning(verify, record):
    found = verify.verify_cell(record, steps=20)
    assert found.agrees
    assert found.comparable
    # Up to the last point of the curve that is not beyond 20 steps, and no further.
    assert [step for step, _ in found.differences][-1] == 18
    assert max(difference for _, difference in found.differences) < 1e-4


@pytest.mark.parametrize("field", ["curve_train", "curve_test"])
def test_another_curve_is_noticed(verify, record, field):
    row = record.rows[1]
    changed = row | {field: [value * 1.2 for value in row[field]]}
    found = verify.verify_cell(replace(record, rows=(record.rows[0], changed)), steps=20)
    assert not found.agrees
    assert "differs" in str(found)


def test_another_device_is_reported(verify, record):
    elsewhere = replace(record, provenance=replace(record.provenance, device="cuda (Some GPU)"))
    assert "recorded on cuda (Some GPU), run on cpu" in str(verify.verify_cell(elsewhere, steps=5))


def test_a_cell_in_tf32_runs_in_float32_where_there_is_none(verify, record):
    """As on a machine without a GPU, where rows of one are verified."""
    content = record.spec | {"dtype": "tf32"}
    provenance = replace(record.provenance, device="cuda (Some GPU)")
    found = verify.verify_cell(replace(record, spec=content, provenance=provenance), steps=5)
    assert not found.comparable
    assert max(difference for _, difference in found.differences) < 1e-4
    told = "recorded on cuda (Some GPU) in tf32, run on cpu in float32"
    assert told in str(found)


def test_other_numbers_are_told_and_not_judged_on_the_same_device(verify, record):
    found = verify.verify_cell(replace(record, spec=record.spec | {"dtype": "tf32"}), steps=5)
    assert not found.comparable


def test_one_cell_is_chosen_by_the_seed(verify, record):
    assert verify.verify_random_cell([], seed=0) is None
    assert verify.verify_random_cell([record], seed=0, steps=5).label.startswith("train_neighbours")


def test_what_was_not_trained_is_refused(verify):
    with pytest.raises(ValueError, match="no kind of spec"):
        verify.verify_cell(answered(Square(number=2)))
