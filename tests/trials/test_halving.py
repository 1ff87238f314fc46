"""The race: who is stopped, time limits, resuming after a kill."""

import math

import pytest

from headwise.errors import BadInputError, UnreadableFileError
from headwise.progress import NoProgress
from headwise.trials.halving import Limits, Repeats, Standing, _survivors, looks, race

NAMES = ["a", "b", "c", "d"]


class Planted:
    """A runner whose scores are known: k tenths for the k-th candidate, and some wobble."""

    def __init__(self, dies_at=math.inf):
        self.calls, self.dies_at, self.saves = [], dies_at, 0

    def train(self, names, until):
        if until >= self.dies_at:
            raise KeyboardInterrupt
        self.calls.append((tuple(names), until))
        return {name: [self.score(NAMES.index(name), until, s) for s in (0, 1)] for name in names}

    def score(self, place, step, seed):
        return 0.1 * place + 0.01 * math.sin(step * (place + 1)) + 0.01 * seed + 1 / step

    def save(self):
        self.saves += 1


def test_the_best_wins_and_the_others_stop_early():
    runner = Planted()
    standing = race(runner, NAMES, 800)
    found = standing.predictions(800)
    assert max(found, key=lambda name: found[name].probability) == "a"
    assert len(standing.curves["d"]) < len(standing.curves["a"])
    full = len(NAMES) * 800
    spent, last = 0, 0
    for names, until in runner.calls:
        spent, last = spent + len(names) * (until - last), until
    assert spent < full / 2


def test_rounds_end_at_an_eighth_a_quarter_a_half_and_the_whole():
    assert [step for step, ends in looks(800) if ends] == [100, 200, 400, 800]
    assert [step for step, _ in looks(1)] == [1]


def test_a_killed_race_resumes(tmp_path):
    path = tmp_path / "trial.json"
    with pytest.raises(KeyboardInterrupt):
        race(Planted(dies_at=90), NAMES, 800, Limits(path=path, identity="x"))
    again = Planted()
    standing = race(again, NAMES, 800, Limits(path=path, identity="x"))
    assert again.calls[0][1] >= 90
    assert standing.curves == race(Planted(), NAMES, 800).curves


def test_the_standing_of_another_trial_is_refused(tmp_path):
    path = tmp_path / "trial.json"
    race(Planted(), NAMES, 8, Limits(path=path, identity="x"))
    with pytest.raises(UnreadableFileError, match="that of another"):
        race(Planted(), NAMES, 8, Limits(path=path, identity="y"))
    path.write_text("[]")
    with pytest.raises(UnreadableFileError, match="remove it"):
        race(Planted(), NAMES, 8, Limits(path=path, identity="x"))


def test_time_ends_a_race_and_too_little_is_refused():
    times = iter(range(0, 10_000, 10))
    standing = race(Planted(), NAMES, 800, Limits(70, clock=lambda: next(times)))
    assert standing.stopped and len(standing.steps) >= 4
    times = iter(range(0, 10_000, 10))
    with pytest.raises(BadInputError, match="expected time for one round"):
        race(Planted(), NAMES, 800, Limits(5, clock=lambda: next(times)))


class Broken(Planted):
    """A runner whose every score is NaN."""

    def train(self, names, until):
        super().train(names, until)
        return {name: [math.nan, math.inf] for name in names}


def test_a_loss_that_is_nan_in_every_candidate_ends_the_race_at_once():
    runner = Broken()
    with pytest.raises(BadInputError, match="got none after 59 steps"):
        race(runner, NAMES, 800)
    assert len(runner.calls) == 1


def test_progress_counts_what_is_planned_and_ends_at_its_total():
    news = []

    class Counting(NoProgress):
        def start(self, task, total):
            news.append(total)

        def advance(self, steps=1):
            news.append(steps)

    race(Planted(), NAMES[:2], 800, Limits(progress=Counting()))
    total, *steps = news
    assert total == 2 * 800 and 0 < sum(steps) <= total


class OneSeed(Planted):
    """A runner of one seed; the first two candidates cannot be told apart."""

    def __init__(self, seed, dies_at=math.inf, gap=0.1):
        super().__init__(dies_at)
        self.seed, self.gap = seed, gap

    def train(self, names, until):
        return {name: scores[:1] for name, scores in super().train(names, until).items()}

    def score(self, place, step, seed):
        wobble = 0.01 * math.sin(step * (place + 1) + self.seed)
        return self.gap * max(0, place - 1) + wobble + 1 / step


def test_all_train_with_the_first_seed_and_the_last_two_with_all():
    first, others = OneSeed(0), OneSeed(1)
    standing = race(first, NAMES, 800, repeats=Repeats(1, lambda: others))
    assert first.calls[0][0] == tuple(NAMES)
    assert {names for names, _ in others.calls} == {("a", "b")}
    assert [step for _, step in others.calls] == standing.steps
    assert [len(standing.scores(name)[-1]) for name in NAMES] == [2, 2, 1, 1]
    assert not standing.stopped


def test_no_half_stops_before_a_quarter_of_the_length():
    runner = OneSeed(0, gap=0.02)
    race(runner, NAMES, 800)
    assert {names for names, step in runner.calls if step <= 200} == {tuple(NAMES)}
    assert {len(names) for names, step in runner.calls if step > 200} == {2}


def test_other_seeds_that_would_end_too_late_are_not_trained():
    first, others = OneSeed(0), OneSeed(1)

    def spent():
        return sum(run.calls[-1][1] if run.calls else 0 for run in (first, others))

    limits = Limits(1200, clock=spent)
    standing = race(first, NAMES, 800, limits, Repeats(1, lambda: others))
    assert standing.steps[-1] == 800 and standing.stopped
    assert not others.calls and len(standing.scores("a")[-1]) == 1


def test_a_race_that_is_killed_among_the_other_seeds_resumes_there(tmp_path):
    path = tmp_path / "trial.json"
    dying = Repeats(1, lambda: OneSeed(1, dies_at=300))
    with pytest.raises(KeyboardInterrupt):
        race(OneSeed(0), NAMES, 800, Limits(path=path, identity="x"), dying)
    first, others = OneSeed(0), OneSeed(1)
    limits = Limits(path=path, identity="x")
    standing = race(first, NAMES, 800, limits, Repeats(1, lambda: others))
    assert not first.calls and others.calls[0][1] >= 300
    whole = race(OneSeed(0), NAMES, 800, repeats=Repeats(1, lambda: OneSeed(1)))
    assert (standing.curves, standing.others) == (whole.curves, whole.others)


def test_the_predicted_score_decides_who_goes_on_not_the_prior():
    curves = {"a": [[0.5, 0.7], [0.4, 0.6]], "b": [[0.54, 0.68], [0.44, 0.58]]}
    curves["advised"] = [[0.57, 0.67], [0.47, 0.57]]
    standing = Standing(list(curves), [1, 2], curves, prior={"advised": 50.0})
    found = standing.predictions(8)
    assert max(found, key=lambda name: found[name].probability) == "advised"
    assert _survivors(standing, 8) == ["a", "b"]


class Told(NoProgress):
    """Keeps what is shown."""

    def __init__(self):
        self.items = []

    def show(self, item):
        self.items.append(item)


def test_progress_names_the_seed_and_the_step():
    told = Told()
    others = OneSeed(1)
    race(OneSeed(0), NAMES, 800, Limits(progress=told), Repeats(1, lambda: others))
    assert told.items[0].startswith("seed 1 of 2, step ")
    assert told.items[-1] == "seed 2 of 2, step 800/800, 2 running"
