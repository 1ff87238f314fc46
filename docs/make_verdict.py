"""Write rank-and-accuracy.md, the verdict on rank and accuracy, from recorded rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from accuracy_verdict import (
    CONSTANT,
    OUR_RULE,
    PAPER_RULES,
    PRINTED,
    Choices,
    Setting,
    recorded_families,
    settings_of,
)
from headwise.papers.kinds.trained_rows import FALL
from headwise.papers.saturation import CONFIDENCE, MARGIN
from headwise.report import Table
from unstable_training import among_all, unstable_part
from verdict_answer import (
    CHANCE,
    FEWEST_SETTINGS,
    Tally,
    answer,
    best_predictors,
    bullets,
    exceptions,
    predictors_sentence,
    tally,
)

_HEAD = """# Does rank predict accuracy?

This page tests the rank paper's practical claim on real data: look at the rank of attention before
training, and take the head dimension d_h at which it first saturates, because accuracy after
training saturates there too. `python docs/make_exhibits.py` generates this page, including the
answer, from recorded rows. A *setting* is one data set with one family of geometries.
"""

_RULES_WORDS = f"""How often each rule for d_h agrees with accuracy. *Open*: rank still grows at
the largest d_h, and accuracy may too. *Expected by chance*: how often a random d_h of the grid
agrees on average. *p-value*: the probability that it agrees as often as the rule or more; a rule
*beats chance* if that is at most {CHANCE:g}. *Mean distance*: from what was found, in doublings of
d_h; a rule above the grid counts as its end. D and E measure nothing. The letters are used in all
tables below."""

_SETS_WORDS = "The same for each data set: decided settings in which the rule agrees."

_METHOD = f"""## How it is judged

With the number of heads fixed, accuracy *stops improving* at the smallest d_h that all larger ones
exceed, on average, by at most {MARGIN:g} standard deviations of one seed, pooled over all d_h of
the setting. With the width fixed, heads grow fewer as d_h grows, and the question is the *best*
d_h. The interval holds {CONFIDENCE:.0%} of the answers when mean accuracies and the seeds' spread
are drawn again with the noise of so few seeds. It holds the noise of seeds, not of the test
images, which are the same for all runs. A setting is undecided

* with fewer than two seeds or three head dimensions,
* if head dimensions differ no more than seeds do (F test, 5 %),
* if the interval is the whole grid,
* if training is unstable: the validation accuracy of a run falls by more than
  {100 * FALL:g} % of its best. This was fixed after the runs were seen.

A rule *agrees* if its d_h lies in the interval, and *differs* if not. It is *open* if it lies above
the grid and the interval reaches the grid's end. A rule is judged as a whole if at least
{FEWEST_SETTINGS} settings are decided.

The paper's rule stops at the last d_h before rank / length grows by at most 0.013, the value that
reproduces its Table 1. The paper does not say how weights start on real data, so both readings are
judged: N(0, 1) weights, and the model's own initialisation. Our rule is that of `headwise advise`:
the first d_h whose lower confidence limit over seeds reaches 90 % of the highest rank. Rank is the
number of singular values of at least 1e-8, in the first layer. Test accuracy is judged; no choice
was made by it. The paper gives no width where the number of heads is fixed, and no number of heads
on IMDB; those here are ours.
"""

#: Other choices of ours, in words.
_OTHER_CHOICES = {
    "as judged above": Choices(),
    "accuracy: a gain counts from 1 standard deviation on": Choices(deviations=1.0),
    "accuracy: from 4 standard deviations on": Choices(deviations=4.0),
    "accuracy: from 1 point on, whatever the spread": Choices(deviations=0.0, points=0.01),
    "rank: the paper's rule with a gain of 0.010": Choices(threshold=0.010),
    "rank: the paper's rule with a gain of 0.020": Choices(threshold=0.020),
    "settings with unstable training count": Choices(stable_only=False),
}

_CHOICES_WORDS = (
    "The answer under other choices of ours: in how many decided settings [each "
    "rule](#the-answer) agrees, with the p-value. *Not shown*: the paper's rule beats chance with "
    "neither initialisation, but with at least one it agrees more often than expected by chance. "
    "*No*: with neither does it agree more often than that."
)


def page() -> str:
    """Return the page."""
    families = recorded_families()
    settings = settings_of(families[0])
    by_choice = {
        words: _tallies(settings_of(families[0], own)) for words, own in _OTHER_CHOICES.items()
    }
    lead = _answer_part(settings, exceptions(by_choice, _letters()))
    parts = [_HEAD, lead, _settings_part(settings), _choices_part(by_choice)]
    parts += [_predictors_part(settings), unstable_part(families[0]), _METHOD]
    return "\n".join([*parts, _absent_part(families[1])])


def _rules() -> list[str]:
    return [*PAPER_RULES.values(), OUR_RULE, PRINTED, CONSTANT]


def _letters() -> dict[str, str]:
    """Return the letter that stands for each rule in tables."""
    return dict(zip(_rules(), "ABCDE", strict=True))


def _tallies(settings: Sequence[Setting]) -> dict[str, Tally]:
    return {rule: tally(rule, settings) for rule in _rules()}


def _answer_part(settings: Sequence[Setting], other_choices: str) -> str:
    tallies = _tallies(settings)
    word, why = answer(tallies)
    lead = " ".join(filter(None, (f"**{word}.**", why, predictors_sentence(settings))))
    letters = _letters()
    rules = Table.of(
        {"rule": letters[rule], "its d_h": rule} | _line(own) for rule, own in tallies.items()
    )
    sets = list(dict.fromkeys(one.dataset for one in settings))
    by_set = Table.of(
        {"rule": letters[rule]}
        | {
            name: str(tally(rule, [one for one in settings if one.dataset == name]))
            for name in sets
        }
        for rule in _rules()
    )
    told = "\n".join([*bullets(settings, tallies), other_choices])
    parts = [lead, told, _RULES_WORDS, rules.markdown(), _SETS_WORDS, by_set.markdown()]
    return "\n\n".join(["## The answer", *parts, *_simple_parts(settings)]) + "\n"


def _line(own: Tally) -> dict[str, str | float | int | None]:
    return {
        "agrees": own.agrees,
        "differs": own.differs,
        "open": own.open,
        "expected by chance": f"{own.expected:.1f} of {own.decided}",
        "p-value": f"{own.chance:.2f}",
        "mean distance": None if own.distance is None else round(own.distance, 1),
        "beats chance": "yes" if own.beats_chance else "no",
    }


def _simple_parts(settings: Sequence[Setting]) -> list[str]:
    """How often each predictor of accuracy is the best."""
    best = best_predictors(settings)
    known = [one for own in best.values() for one in own]
    if not known:
        return []
    names = dict.fromkeys(name for one in known for name in one.predictors)
    shares = {
        name: [one.predictors[name].best for one in known if name in one.predictors]
        for name in names
    }
    table = Table.of(
        {
            "predictor of accuracy": name,
            "least error": f"{len(best.get(name, []))} of {len(own)}",
            "surely the best": sum(_is_best(share) == "the best" for share in own),
            "surely not the best": sum(_is_best(share) == "not the best" for share in own),
        }
        for name, own in shares.items()
    )
    words = (
        "How well a straight line in each predictor predicts the accuracy of a d_h left out, in "
        "the decided settings ([every setting](#simpler-predictors)):"
    )
    return [words, table.markdown()]


def _settings_part(settings: Sequence[Setting]) -> str:
    rows = tuple(
        (one.name, _found(one), *(_cell(one, rule) for rule in _rules())) for one in settings
    )
    columns = ("setting", "accuracy (interval)", *_letters().values())
    words = (
        "d_h by accuracy and by [each rule](#the-answer), with the rule's distance in doublings. E "
        "is the median of what was found in the other settings of the same kind. A setting trained "
        "on a subset says nothing about the whole set; [the exhibits](exhibits.md) name the "
        "subsets."
    )
    return f"## Every setting\n\n{words}\n\n{Table(columns, rows).markdown()}\n"


def _found(one: Setting) -> str:
    stop = one.stop
    if stop.head_dim is None:
        some = among_all(one.name) if "unstable" in stop.reason else ""
        return f"undecided: {stop.reason}{some}"
    if one.heads_fixed and stop.high == stop.grid[0]:
        return f"does not improve beyond {stop.grid[0]}, the smallest"
    what = "stops improving at" if one.heads_fixed else "best at"
    # A curve that still rises at the end of the grid may rise beyond it.
    more = " or more" if one.heads_fixed and stop.high == stop.grid[-1] else ""
    return f"{what} {stop.head_dim} ({stop.low} to {stop.high}{more})"


def _cell(one: Setting, rule: str) -> str:
    head_dim, distance = one.rules.get(rule), one.distance(rule)
    if head_dim is None:
        return "no answer"
    shown = f"above {one.stop.grid[-1]}" if math.isinf(head_dim) else f"{head_dim:g}"
    far = "" if distance is None else f" ({distance:+.1f})"
    return f"{shown}{far}, {one.verdict(rule)}"


def _choices_part(by_choice: Mapping[str, dict[str, Tally]]) -> str:
    table = Table.of(
        {"choice": words, "answer": answer(tallies)[0]} | _counts(tallies)
        for words, tallies in by_choice.items()
    )
    title = "## Does the answer depend on our choices?"
    return f"{title}\n\n{_CHOICES_WORDS}\n\n{table.markdown()}\n"


def _counts(tallies: dict[str, Tally]) -> dict[str, str]:
    letters = _letters()
    return {
        letters[rule]: f"{own} (p = {own.chance:.2f})" if own.decided else str(own)
        for rule, own in tallies.items()
    }


def _predictors_part(settings: Sequence[Setting]) -> str:
    known = [one for one in settings if one.predictors]
    if not known:
        return ""
    names = list(dict.fromkeys(name for one in known for name in one.predictors))
    rows = tuple((one.name, *(_predicted(one, name) for name in names)) for one in known)
    best = (min(names, key=lambda name: _error(one, name)) for one in known)
    table = Table(
        ("setting", *names), rows, frozenset((i, 1 + names.index(n)) for i, n in enumerate(best))
    )
    words = (
        "Each predictor is fitted as a straight line to all head dimensions but one, and predicts "
        "the accuracy of that one. The table has the error in points of accuracy, the least of a "
        "setting in bold. Mean accuracies are drawn again with the noise of their seeds; the share "
        "of redraws in which the predictor is the best is in parentheses. A predictor is surely "
        f"the best only from {CONFIDENCE:.0%} on, and surely not the best up to "
        f"{1 - CONFIDENCE:.0%}."
    )
    return f"## Simpler predictors\n\n{words}\n\n{table.markdown()}\n"


def _error(one: Setting, name: str) -> float:
    return one.predictors[name].error if name in one.predictors else math.inf


def _predicted(one: Setting, name: str) -> str:
    if name not in one.predictors:
        return ""
    found = one.predictors[name]
    return f"{100 * found.error:.2f} ({found.best:.0%})"


def _is_best(share: float) -> str:
    if share >= CONFIDENCE:
        return "the best"
    return "not the best" if share <= 1 - CONFIDENCE else "undecided"


def _absent_part(absent: Sequence[str]) -> str:
    if not absent:
        return ""
    lines = [f"* {name}" for name in absent]
    return "\n".join(["## Not trained with two seeds yet", "", *lines, ""])


def main() -> None:
    """Write the page."""
    Path(__file__).with_name("rank-and-accuracy.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
