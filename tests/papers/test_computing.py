"""What is computed: recorded rows count as answers, and `only` picks settings."""

from dataclasses import replace

import pytest

from headwise.errors import BadInputError, UnreadableFileError
from headwise.papers.catalogue import chosen
from headwise.papers.computing import Computation, _without_absent_data, take_recorded
from headwise.papers.exhibit import Scale
from headwise.papers.heads2024 import schedules
from headwise.papers.recorded import recorded
from headwise.papers.reproduce import reproduce
from headwise.papers.reproduction import Wanted
from headwise.progress import SILENT
from headwise.runs import Plan, Store

(FIGURE_ROLE_OF_D,) = chosen(["heads2024/figure_role_of_d"])
WANTED = [Wanted(FIGURE_ROLE_OF_D, Scale.GPU)]
HOW = Computation(
    device="cpu",
    cluster=None,
    workers=1,
    seconds=None,
    store=None,
    only={},
    retry=False,
    take_records=True,
    progress=SILENT,
    command="",
)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def left(store, **only):
    return replace(HOW, only=only).plan(store, WANTED).work


def test_without_the_records_everything_is_left(store):
    assert len(left(store)) == len(WANTED[0].specs())


def test_recorded_rows_are_answers_and_stay_as_they_are(store):
    specs = WANTED[0].specs()
    assert take_recorded(store, WANTED) == len(specs)
    assert left(store) == ()
    assert dict(store.records_of(specs)) == dict(recorded(FIGURE_ROLE_OF_D, Scale.GPU))
    assert take_recorded(store, WANTED) == 0


def test_a_longer_schedule_is_trained_and_the_rest_is_not(store, monkeypatch):
    own = schedules.ROLE_OF_D[Scale.GPU]
    longer = own | {16: replace(own[16], steps=2 * own[16].steps)}
    monkeypatch.setitem(schedules.ROLE_OF_D, Scale.GPU, longer)
    take_recorded(store, WANTED)
    assert {(spec.width, spec.steps) for spec in left(store)} == {(16, longer[16].steps)}


def test_only_picks_the_specs_that_have_a_value(store):
    assert {spec.width for spec in left(store, width="64")} == {64}
    assert left(store, width="65") == ()
    with pytest.raises(
        BadInputError, match="`only`: no run has a field 'witdh'; choose from batch"
    ):
        left(store, witdh="64")


def test_a_scale_without_records_has_none_to_take(store):
    assert take_recorded(store, [Wanted(FIGURE_ROLE_OF_D, Scale.MINIATURE)]) == 0


def test_a_time_limit_leaves_work_for_the_next_call(tmp_path):
    place = {"scale": "miniature", "store": tmp_path / "runs.db"}
    first = reproduce("heads2024/figure_role_of_d", seconds=1e-9, **place)
    assert first.exhibits[0].problem == "missing"
    part = reproduce("heads2024/figure_role_of_d", only={"protocol": "fixed"}, **place)
    assert part.exhibits[0].problem == "4 missing of 8"
    whole = reproduce("heads2024/figure_role_of_d", seconds=600, **place)
    assert not whole.exhibits[0].problem
    assert len(repr(whole)) < 300
    assert list(whole.plot()) == ["heads2024/figure_role_of_d"]


def test_the_compared_values_become_a_frame():
    found = reproduce("rank2026/table_1", from_records=True)
    cells = [cell for one in found.exhibits for cell in one.shown.cells]
    frame = found.to_frame()
    assert len(frame) == len(cells) > 0
    assert frame.measured.tolist() == [cell.measured for cell in cells]
    assert set(frame.exhibit) == {"rank2026/table_1"}


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_DATA", str(tmp_path / "nowhere"))


def test_work_on_absent_sets_is_left_out_with_one_line(nowhere):
    (exhibit,) = chosen(["rank2026/figure_2b"])
    specs = exhibit.specs(Scale.LAPTOP)
    plan, (note,) = _without_absent_data(Plan.of(specs, answered=()))
    assert {spec.kind for spec in plan.work} == {"predict_rank"}
    assert len(plan.missing) == len(specs)
    assert "expected cifar10, cifar100, svhn in" in note
    assert note.count("curl -LO") == 4
    assert "\n" not in note


def test_nothing_but_absent_sets_is_refused(nowhere):
    (exhibit,) = chosen(["rank2026/figure_3c"])
    plan = Plan.of(exhibit.specs(Scale.LAPTOP), answered=())
    with pytest.raises(UnreadableFileError, match=r"expected imdb in .*; get the data with"):
        _without_absent_data(plan)


def test_the_digits_are_always_there(nowhere):
    (exhibit,) = chosen(["rank2026/figure_3c"])
    plan = Plan.of(exhibit.specs(Scale.MINIATURE), answered=())
    assert _without_absent_data(plan) == (plan, [])
