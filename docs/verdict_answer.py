"""The answer in a few words: how often each rule agrees with accuracy, and whether by chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from accuracy_verdict import OUR_RULE, PAPER_RULES, Setting
from headwise.papers.kinds.real_ranks import READINGS

#: A rule that a random choice equals with this probability or less is better than chance.
CHANCE = 0.05

#: Settings that must be decided before a rule is judged as a whole.
FEWEST_SETTINGS = 3


@dataclass(frozen=True)
class Tally:
    """How a rule fares in all settings.

    Attributes:
        agrees: Settings in whose interval it lies.
        differs: Settings in whose interval it does not lie.
        open: Settings where rule and accuracy may both lie above the grid.
        expected: How often a random head dimension of the grid would agree, on average.
        chance: The probability that it would agree as often as the rule or more.
        distance: The mean distance from what was found, in doublings; None without settings. A
            rule above the grid counts as its end.
    """

    agrees: int
    differs: int
    open: int
    expected: float
    chance: float
    distance: float | None

    @property
    def decided(self) -> int:
        """Settings in which the rule is right or wrong."""
        return self.agrees + self.differs

    @property
    def beats_chance(self) -> bool:
        """Whether it agrees more often than random choices do."""
        return self.decided >= FEWEST_SETTINGS and self.chance <= CHANCE

    def __str__(self) -> str:
        if not self.decided + self.open:
            return "undecided"
        words = [f"{self.agrees} of {self.decided}"] * bool(self.decided)
        return ", ".join([*words, *[f"{self.open} open"] * bool(self.open)])


def tally(rule: str, settings: Iterable[Setting]) -> Tally:
    """Count how often a rule agrees."""
    found = {"agrees": [], "differs": [], "open": [], "undecided": []}
    for one in settings:
        found[one.verdict(rule)].append(one)
    decided = [*found["agrees"], *found["differs"]]
    shares = [_share(one) for one in decided]
    distances = [_distance(one, rule) for one in [*decided, *found["open"]]]
    return Tally(
        *(len(found[verdict]) for verdict in ("agrees", "differs", "open")),
        expected=sum(shares),
        chance=at_least(len(found["agrees"]), shares),
        distance=sum(distances) / len(distances) if distances else None,
    )


def _share(one: Setting) -> float:
    """The share of the grid that lies in the interval."""
    stop = one.stop
    return sum(stop.low <= dim <= stop.high for dim in stop.grid) / len(stop.grid)


def _distance(one: Setting, rule: str) -> float:
    return abs(math.log2(min(one.rules[rule], one.stop.grid[-1]) / one.stop.head_dim))


def at_least(count: int, shares: Sequence[float]) -> float:
    """The probability that at least ``count`` of independent events with these shares happen.

    >>> at_least(1, [0.5, 0.5]), at_least(2, [0.5, 0.5]), at_least(0, [])
    (0.75, 0.25, 1.0)
    """
    chances = np.ones(1)
    for share in shares:
        chances = np.convolve(chances, [1 - share, share])
    return float(chances[count:].sum())


def answer(tallies: Mapping[str, Tally]) -> tuple[str, str]:
    """The answer in a word, and a sentence that says why; from both readings of the paper."""
    readings = {start: tallies[rule] for start, rule in PAPER_RULES.items()}
    better = {start: own for start, own in readings.items() if own.beats_chance}
    always = [start for start, own in better.items() if not own.differs]
    random = "a head dimension drawn at random from the grid"
    if all(own.decided < FEWEST_SETTINGS for own in readings.values()):
        return "Undecided", f"Fewer than {FEWEST_SETTINGS} settings are decided."
    if always:
        return "Yes", (
            f"With {READINGS[always[0]]} the paper's rule agrees with accuracy in every decided "
            f"setting, which {random} rarely does."
        )
    if better:
        return "In part", (
            f"With {READINGS[next(iter(better))]} the paper's rule agrees with accuracy more often "
            f"than {random}, but not in every decided setting."
        )
    if all(own.agrees <= own.expected for own in readings.values()):
        return "No", f"The paper's rule agrees with accuracy no more often than {random}."
    return "Not shown", (
        "The paper's rule agrees with accuracy in some settings, but not clearly more often than "
        f"{random}."
    )


def best_predictors(settings: Iterable[Setting]) -> dict[str, list[Setting]]:
    """The decided settings, by the predictor of accuracy with the least error."""
    found: dict[str, list[Setting]] = {}
    for one in settings:
        if one.stop.decided and one.predictors:
            best = min(one.predictors, key=lambda name: one.predictors[name].error)
            found.setdefault(best, []).append(one)
    return found


def predictors_sentence(settings: Sequence[Setting]) -> str:
    """Say whether rank or something simpler predicts accuracy better; empty without predictors."""
    best = best_predictors(settings)
    rank = sum(len(own) for name, own in best.items() if name.startswith("rank"))
    known = sum(map(len, best.values()))
    if not known:
        return ""
    simple = [name for name in best if not name.startswith("rank")]
    such = f", {max(simple, key=lambda name: len(best[name]))} best of all" if simple else ""
    return (
        f"Predictors that need no measurement predict accuracy better than rank in {known - rank} "
        f"of {known} decided settings{such}."
    )


def bullets(settings: Sequence[Setting], tallies: Mapping[str, Tally]) -> list[str]:
    """Say for what data, which initialisation and which rule for rank the claim holds."""
    start = max(PAPER_RULES, key=lambda own: _rate(tallies[PAPER_RULES[own]]))
    rank_rules = (*PAPER_RULES.values(), OUR_RULE)
    beating = [rule for rule in rank_rules if tallies[rule].beats_chance]
    starts = [words for own, words in READINGS.items() if PAPER_RULES[own] in beating]
    return [
        f"* **Data.** With {READINGS[start]} the paper's rule agrees "
        f"{_sets_words(PAPER_RULES[start], settings)}.",
        "* **Initialisation.** The paper's rule "
        + (f"beats chance with {' and '.join(starts)}" if starts else "beats chance with neither")
        + f"; it agrees more often with {READINGS[start]}.",
        "* **Rank.** The paper's rule and ours define saturation of the rank differently; "
        + (f"these beat chance: {'; '.join(beating)}." if beating else "neither beats chance."),
    ]


def exceptions(by_choice: Mapping[str, Mapping[str, Tally]], letters: Mapping[str, str]) -> str:
    """Name the rules that beat chance under other choices; the first choice is the page's own."""
    others = list(by_choice.items())[1:]
    rules = (*PAPER_RULES.values(), OUR_RULE)
    found = [
        f'rule {letters[rule]}, {tallies[rule]} (p = {tallies[rule].chance:.2f}), with "{words}"'
        for words, tallies in others
        for rule in rules
        if tallies[rule].beats_chance
    ]
    compared = f"{len(rules)} rules measure rank. {len(found) or 'None'} of their "
    compared += f"{len(rules) * len(others)} results under "
    compared += f"[{len(others)} other choices](#does-the-answer-depend-on-our-choices)"
    beat = "beat chance" if len(found) > 1 else "beats chance"
    return f"* **Choices.** {compared} {beat}" + ": " * bool(found) + "; ".join(found) + "."


def _rate(own: Tally) -> float:
    return own.agrees / own.decided if own.decided else 0.0


def _sets_words(rule: str, settings: Sequence[Setting]) -> str:
    """On which sets a rule agrees always, sometimes or never."""
    told: dict[str, list[str]] = {}
    for dataset in dict.fromkeys(one.dataset for one in settings):
        own = tally(rule, [one for one in settings if one.dataset == dataset])
        some = {0: "in no setting", own.decided: "in every decided setting"}
        often = some.get(own.agrees, "in some settings") if own.decided else "undecided"
        told.setdefault(often, []).append(dataset)
    undecided = told.pop("undecided", [])
    words = [f"{often} on {' and '.join(names)}" for often, names in told.items()]
    words += [f"{' and '.join(undecided)}: undecided"] * bool(undecided)
    return "; ".join(words)
