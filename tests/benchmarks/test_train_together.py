"""The script that trains whole settings at once: what it takes as answered, and what is left."""

from dataclasses import replace
from importlib import import_module

import pytest

from headwise.papers.exhibit import Scale
from headwise.papers.heads2024 import schedules
from headwise.papers.heads2024.figure_role_of_d import FIGURE_ROLE_OF_D
from headwise.papers.recorded import recorded
from headwise.runs import Store

NAME = FIGURE_ROLE_OF_D.name


@pytest.fixture
def script():
    return import_module("train_together")


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def test_without_the_records_everything_is_left(script, store):
    specs = FIGURE_ROLE_OF_D.specs(Scale.GPU)
    left = script.groups(store, [NAME], Scale.GPU, {})
    assert sum(map(len, left)) == len(specs)


def test_recorded_rows_are_answers_and_stay_as_they_are(script, store):
    specs = FIGURE_ROLE_OF_D.specs(Scale.GPU)
    assert script.take_recorded(store, [NAME], Scale.GPU) == len(specs)
    assert script.groups(store, [NAME], Scale.GPU, {}) == []
    assert dict(store.records_of(specs)) == dict(recorded(FIGURE_ROLE_OF_D, Scale.GPU))


def test_taken_twice_nothing_is_new(script, store):
    script.take_recorded(store, [NAME], Scale.GPU)
    assert script.take_recorded(store, [NAME], Scale.GPU) == 0


def test_a_longer_schedule_is_trained_and_the_rest_is_not(script, store, monkeypatch):
    own = schedules.ROLE_OF_D[Scale.GPU]
    longer = own | {16: replace(own[16], steps=2 * own[16].steps)}
    monkeypatch.setitem(schedules.ROLE_OF_D, Scale.GPU, longer)
    script.take_recorded(store, [NAME], Scale.GPU)
    left = [spec for group in script.groups(store, [NAME], Scale.GPU, {}) for spec in group]
    assert {(spec.width, spec.steps) for spec in left} == {(16, longer[16].steps)}


def test_a_scale_without_records_has_none_to_take(script, store):
    assert script.take_recorded(store, [NAME], Scale.MINIATURE) == 0
