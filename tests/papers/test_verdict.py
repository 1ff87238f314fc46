"""The verdict on rank and accuracy: the answer follows from the numbers."""

import math

import pytest

import make_verdict
import unstable_training
from accuracy_verdict import CONSTANT, OUR_RULE, PAPER_RULES, PRINTED, Choices, Setting
from headwise.papers.kinds.trained_rows import fall, unstable
from headwise.papers.saturation import Stop
from predictors import Predicted
from verdict_answer import Tally, answer, at_least, bullets, exceptions, predictors_sentence, tally

GRID = (2, 4, 8, 16, 32)
NORMAL, OWN = PAPER_RULES["normal(0,1)"], PAPER_RULES["model"]


def setting(rules, stop=8, low=8, high=8, dataset="CIFAR-10", predictors=None):
    known = dict.fromkeys((NORMAL, OWN, OUR_RULE, PRINTED, CONSTANT)) | rules
    found = Stop(stop, low, high, GRID, "" if stop else "flat")
    return Setting(dataset, f"{dataset}, 8 heads", True, found, known, predictors or {})


def told(settings):
    return answer({rule: tally(rule, settings) for rule in PAPER_RULES.values()})[0]


def test_a_rule_that_is_always_right_means_yes():
    assert told([setting({NORMAL: 8, OWN: 2})] * 3) == "Yes"


def test_a_rule_that_is_mostly_right_means_in_part():
    assert told([setting({NORMAL: 8, OWN: 2})] * 4 + [setting({NORMAL: 4, OWN: 2})]) == "In part"


def test_a_rule_that_is_right_as_often_as_chance_means_not_shown():
    wide = {"low": 4, "high": 16}
    some = [setting({NORMAL: 8, OWN: 2}, **wide)] * 3 + [setting({NORMAL: 2, OWN: 2}, **wide)]
    assert told(some) == "Not shown"


def test_a_rule_that_is_always_wrong_means_no():
    assert told([setting({NORMAL: 2, OWN: 32})] * 4) == "No"


def test_too_few_settings_mean_undecided():
    assert told([setting({NORMAL: 8, OWN: 8})] * 2) == "Undecided"
    assert told([setting({NORMAL: 8, OWN: 8}, stop=None, low=2, high=32)] * 5) == "Undecided"


def test_a_rule_above_the_grid_is_open_if_accuracy_may_improve_there():
    found = tally(
        OWN,
        [
            setting({OWN: math.inf}, stop=16, low=16, high=32),
            setting({OWN: math.inf}, stop=4, low=4, high=8),
            setting({OWN: 4.0}, stop=4, low=4, high=8),
        ],
    )
    assert (found.agrees, found.differs, found.open) == (1, 1, 1)
    assert found.expected == pytest.approx(0.8)
    assert found.distance == pytest.approx((1 + 3 + 0) / 3)
    assert str(found) == "1 of 2, 1 open"


def test_the_probability_of_chance_is_that_of_independent_events():
    assert at_least(3, [0.2, 0.4, 0.6]) == pytest.approx(0.048)
    assert at_least(1, [0.2, 0.4, 0.6]) == pytest.approx(1 - 0.8 * 0.6 * 0.4)


def test_the_sentence_on_predictors_counts_settings():
    def known(rank, simple):
        return {"rank, x": Predicted(rank, 0.5), "log₂ d_h": Predicted(simple, 0.5)}

    some = [setting({}, predictors=known(0.02, 0.01)), setting({}, predictors=known(0.01, 0.02))]
    assert (
        "accuracy better than rank in 1 of 2 decided settings, log₂ d_h best"
        in predictors_sentence(some)
    )
    assert "in 0 of 1 decided settings." in predictors_sentence(some[1:])
    assert predictors_sentence([setting({})]) == ""


def test_the_points_name_data_initialisation_and_rank():
    some = [setting({NORMAL: 8, OWN: 2}, dataset=name) for name in ("IMDB", "SVHN", "CIFAR-10")]
    some.append(setting({NORMAL: 2, OWN: 2}, dataset="CIFAR-100"))
    rules = (*PAPER_RULES.values(), OUR_RULE)
    data, start, rank = bullets(some, {rule: tally(rule, some) for rule in rules})
    assert "in every decided setting on IMDB and SVHN and CIFAR-10" in data
    assert "in no setting on CIFAR-100" in data
    assert "beats chance with N(0, 1) weights;" in start
    assert NORMAL in rank


def test_other_choices_name_the_rule_that_beats_chance():
    own = {rule: tally(rule, []) for rule in (*PAPER_RULES.values(), OUR_RULE)}
    better = own | {OUR_RULE: Tally(5, 1, 0, 3.0, 0.04, 1.0)}
    letters = dict(zip(own, "ABC", strict=True))
    found = exceptions({"as judged": own, "from 1 point on": better}, letters)
    assert "1 of their 3 results" in found
    assert found.endswith('rule C, 5 of 6 (p = 0.04), with "from 1 point on".')
    assert "None of their 3 results" in exceptions({"as judged": better, "other": own}, letters)


def test_a_fall_is_the_largest_share_that_is_lost():
    assert fall([0.1, 0.4, None, 0.3, 0.5, 0.45]) == pytest.approx(0.25)
    assert fall([0.1, 0.2]) == 0.0
    assert unstable([{"curve_accuracy": [0.1, 0.2]}]) == ""


def test_unstable_training_is_undecided_unless_it_counts():
    families = make_verdict.recorded_families()[0]
    kept = make_verdict.settings_of(families, Choices(stable_only=False))
    strict = make_verdict.settings_of(families)
    lost = [one.name for one in strict if "unstable" in one.stop.reason]
    assert "CIFAR-100, width 384" in lost
    assert sum(one.stop.decided for one in kept) > sum(one.stop.decided for one in strict)
    assert not any("unstable" in one.stop.reason for one in kept)


def test_the_page_leads_with_the_answer():
    page = (make_verdict.Path(make_verdict.__file__).parent / "rank-and-accuracy.md").read_text()
    first = page.partition("## The answer")[2].strip()
    assert first.startswith(("**Yes.**", "**In part.**", "**Not shown.**", "**No.**", "**Undec"))


def test_a_family_is_named_with_the_head_dimensions_that_are_not_trained():
    families, absent = make_verdict.recorded_families()
    untrained = {
        found.label(family): [g.qk_rank for g in found.rising(family) if not found.of(g)]
        for found, family in families
    }
    told = dict(line.split(": head dimension ") for line in absent if ":" in line)
    assert told == {name: ", ".join(map(str, left)) for name, left in untrained.items() if left}


def test_without_records_of_width_384_the_section_is_short(tmp_path, monkeypatch):
    monkeypatch.setattr(unstable_training, "RECORDS", tmp_path)
    part = unstable_training.unstable_part(make_verdict.recorded_families()[0])
    assert "width 384, seed" not in part
    assert "CIFAR-10, width 192" in part
