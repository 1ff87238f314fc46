"""Ranks trained as one ensemble answer as each does alone."""

from dataclasses import replace

import pytest

from headwise.errors import BadInputError
from headwise.experiments.ensembles import ask_together, stackable
from headwise.experiments.train_incontext import TrainInContext
from headwise.experiments.train_neighbours import TrainNeighbours
from headwise.training import Saving

SMALL = {
    "width": 8,
    "tokens": 4,
    "mlp_width": 16,
    "batch": 16,
    "sequences": 64,
    "steps": 30,
    "epoch": 4,
    "evaluation": 32,
    "seeds": (3, 5),
    "dtype": "float64",
}


def specs(**more):
    return [TrainNeighbours(rank=rank, **(SMALL | more)) for rank in (2, 8)]


def in_context():
    sizes = {"dimensions": 3, "points": 4, "width": 8, "layers": 2}
    shared = {name: SMALL[name] for name in ("batch", "steps", "epoch", "evaluation", "dtype")}
    return [
        TrainInContext(heads=heads, seeds=(3, 5), **sizes, **shared, learning_rate=0.01)
        for heads in (1, 4)
    ]


@pytest.mark.parametrize(
    "group",
    [specs(), specs(layers=2, copies=3, protocol="fresh"), in_context()],
    ids=["ranks", "ranks of deep layers", "heads in context"],
)
def test_rows_are_those_of_single_runs(group):
    for spec, rows in zip(group, ask_together(group), strict=True):
        alone = spec.ask()
        assert [row["seed"] for row in rows] == [3, 5]
        for row, expected in zip(rows, alone, strict=True):
            assert row.keys() == expected.keys()
            for name, value in expected.items():
                near = value if value is None else pytest.approx(value, rel=1e-5)
                assert row[name] == near, name


def test_ranks_differ_or_the_test_above_says_nothing():
    few, many = (rows[0]["test_loss"] for rows in ask_together(specs()))
    assert few != pytest.approx(many, rel=1e-4)


def test_a_stopped_group_resumes_to_the_same_rows(tmp_path, monkeypatch):
    group = in_context()
    usual = Saving.in_folder
    monkeypatch.setattr(Saving, "in_folder", lambda *place: replace(usual(*place), seconds=-1))

    def stop_on_the_way(row):
        if row.step > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_together(group, folder=tmp_path, sink=stop_on_the_way)
    assert len(list(tmp_path.glob("*.pt"))) == 1
    assert ask_together(group, folder=tmp_path) == ask_together(group)
    assert not list(tmp_path.iterdir())


def test_other_differences_are_refused():
    mixed = [*specs(), *specs(layers=2)]
    assert [len(group) for group in stackable(mixed)] == [2, 2]
    with pytest.raises(BadInputError, match="4 specs differ in more than their rank"):
        ask_together(mixed)
