"""What the answer of a trial shows: intervals, capped probabilities, blanks, narrow screens."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.trials.test_halving import NAMES, OneSeed

from headwise.geometry import HeadGeometry
from headwise.progress import NoProgress
from headwise.trials import render, splits
from headwise.trials.halving import Limits, Repeats, Standing, _survivors, race
from headwise.trials.prediction import SURPRISE, most_stated, predict
from headwise.trials.result import Entrant, Trial, answer

PAIR = splits(8)
FIRST = Entrant(PAIR[0], 20, 0.0308, 0.0308, 0.0558, 0.97, 256, 32, True)
SECOND = Entrant(PAIR[1], 20, 0.9900, 0.9900, 0.0558, 0.03, 256, 32, False)
CURVES = (((0.0308, 0.0308),), ((0.9900, 0.9900),))


def trial_of_two(measure="error rate", **changed):
    found = Trial((FIRST, SECOND), measure, 20, (20,), CURVES, True, constant=0.9)
    return replace(found, **changed)


def numbers(words):
    return [float(word) for word in re.findall(r"-?\d+\.\d+|(?<=\()-?\d|-?\d(?=\))", words)]


def test_an_interval_stays_within_the_scores_there_can_be():
    rows = render.table(trial_of_two()).rows
    assert [row[2] for row in rows] == ["0.0308 (0 to 0.0866)", "0.9900 (0.9342 to 1)"]
    assert all(0 <= found <= 1 for row in rows for found in numbers(row[2]))
    loss = render.table(trial_of_two("loss")).rows
    assert [row[2] for row in loss] == ["0.0308 (0 to 0.0866)", "0.9900 (0.9342 to 1.0458)"]
    assert repr(trial_of_two()).endswith("error rate 0.0308 (0 to 0.0866) after 20 steps)")


def test_the_legend_says_what_the_brackets_hold():
    said = " ".join(str(trial_of_two()).split())
    assert "In brackets: one standard error below and above the score, cut off at 0 and 1." in said
    assert "cut off at 0. It" in " ".join(str(trial_of_two("loss")).split())
    relative = " ".join(str(trial_of_two("relative error")).split())
    assert "divided by the variance of the labels" in relative and "variance" not in said


def test_a_prediction_below_zero_is_shown_as_zero():
    curves = {"a": [[0.02], [0.0]], "b": [[0.9], [0.8]]}
    standing = Standing(["a", "b"], [1, 2], curves)
    standing.predictions = lambda full: {
        name: replace(one, score=one.score - 0.1)
        for name, one in Standing.predictions(standing, full).items()
    }
    found = answer(standing, dict(zip("ab", PAIR, strict=True)), 4, "error rate")
    assert found.best.predicted == 0.0


def test_bars_of_the_figure_stay_within_the_scores_there_can_be():
    pytest.importorskip("matplotlib")
    drawn = trial_of_two().plot()
    bars = [bar for each in drawn.axes[0].collections for bar in each.get_paths()]
    heights = [point[1] for bar in bars for point in bar.vertices]
    assert heights and min(heights) >= 0 and max(heights) <= 1


def test_nothing_learned_blanks_probability_and_front_everywhere():
    learned, guessed = trial_of_two(), trial_of_two(constant=0.01)
    assert [row[3] for row in render.table(learned).rows] == ["0.97", "0.03"]
    assert [row[-1] for row in render.table(learned).rows] == ["yes", None]
    for row in render.table(guessed).rows:
        assert (row[3], row[-1]) == (None, None)
    assert "0.97" in str(learned) and "0.97" not in str(guessed)
    assert "yes" not in str(guessed) and "Probabilities and the Pareto front are left out" in str(
        guessed
    ).replace("\n", " ")
    page = render.document(guessed)
    assert "0.97" in render.document(learned) and "0.97" not in page and ">yes<" not in page
    found = json.loads(json.dumps(guessed.as_json()))["entrants"]
    assert [(one["probability_best"], one["pareto"]) for one in found] == [(None, None)] * 2
    assert learned.as_json()["entrants"][0]["probability_best"] == 0.97
    assert len(guessed.plot().axes) == 1 < len(learned.plot().axes)


def test_nothing_learned_blanks_probability_and_front_in_the_frame():
    pytest.importorskip("pandas")
    frame = trial_of_two(constant=0.01).to_frame()
    assert frame["probability"].isna().all() and frame["on_front"].isna().all()
    assert trial_of_two().to_frame()["probability"].tolist() == [0.97, 0.03]


def test_a_probability_at_its_limit_is_told():
    limit = most_stated(2)
    assert limit == pytest.approx(1 - SURPRISE / 2) == pytest.approx(0.9)
    capped = (replace(FIRST, steps=10, probability=limit), replace(SECOND, probability=1 - limit))
    said = " ".join(str(trial_of_two(entrants=capped, steps=(10,))).split())
    assert "with probability 0.90, the most that is stated before the end of the training." in said
    assert "all probabilities lie from 0.10 to 0.90" in said
    below = (replace(capped[0], probability=0.8), capped[1])
    assert "the most that" not in str(trial_of_two(entrants=below, steps=(10,)))
    assert "the most that" not in str(trial_of_two(entrants=capped))


def test_no_prediction_before_the_end_exceeds_what_can_be_stated():
    for count in (2, 4):
        curves = {name: np.full((2, 2), float(k)) for k, name in enumerate("abcd"[:count])}
        assert predict(curves, (1, 2), full=8)["a"].probability == pytest.approx(most_stated(count))


def test_a_candidate_stops_below_its_equal_share_and_three_in_a_thousand():
    curves = {"a": [[0.1], [0.1]], "b": [[0.9], [0.9]]}
    standing = Standing(["a", "b"], [1, 2], curves)
    assert standing.predictions(8)["b"].probability == pytest.approx(0.1)
    assert _survivors(standing, 8) == ["a"]


WIDE = HeadGeometry(128, 128, 128, 16, 128)


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("learned", [True, False])
def test_the_answer_fits_the_screen(width, learned):
    wide = replace(FIRST, geometry=WIDE, parameters=12_345_678, cache_bytes=65_536, steps=10)
    changed = {"entrants": (wide, SECOND), "full": 100_000, "steps": (10,), "finished": False}
    found = trial_of_two(**changed, constant=0.9 if learned else 0.01)
    lines = found.text(width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum("Pareto front" in line and "geometry" in line for line in lines) == 1
    assert sum(line.startswith("128 x 16/128 ") for line in lines) >= 1


class Told(NoProgress):
    """Keeps what is shown."""

    def __init__(self):
        self.items = []

    def start(self, task, total):
        self.task = task

    def show(self, item):
        self.items.append(item)


def test_a_line_of_progress_fits_100_columns():
    told = Told()
    others = OneSeed(1)
    race(OneSeed(0), NAMES, 80_000, Limits(progress=told), Repeats(2, lambda: others))
    begin = f"headwise: {told.task}: 102345/240000 done, 1 h 20 min left"
    lines = [f"{begin}, {item}" for item in told.items]
    assert max(map(len, lines)) <= 100 and any("seeds 2-3, step" in line for line in lines)
