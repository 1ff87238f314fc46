"""Rules that choose a geometry before training: ours, the usual ones, the paper's, and chance.

Each is asked in four regimes. "heads": the number of heads is given and the rank is chosen.
"width": heads × rank must be the width. "half": half of the largest's parameters are shared out.
"free": any geometry of the first two. A rule answers with a geometry that was trained; a rank
between two trained ones is rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from headwise.advice.curves import paper_saturation
from headwise.advice.decide import decide
from headwise.advice.evidence import Evidence
from headwise.advice.question import FREE, NO_LIMIT, Budget, Constraints
from headwise.advice.question import Question as Asked
from headwise.geometry import HeadGeometry

Regime = Literal["heads", "width", "half", "free"]

#: The usual head dimension.
USUAL = 64


@dataclass(frozen=True)
class Question:
    """What a rule may look at: evidence from before training, and what may be chosen."""

    regime: Regime
    heads: int
    evidence: Evidence
    choices: tuple[HeadGeometry, ...]

    @property
    def width(self) -> int:
        """Width of the model."""
        return self.evidence.width

    def with_rank(self, rank: int, heads: int | None = None) -> HeadGeometry:
        """The choice of the least rank that is not below this one, with these heads if any."""
        if self.regime == "free":
            wanted = self.heads if heads is None else heads
            near = [g for g in self.choices if g.heads == wanted] or list(self.choices)
        else:
            near = list(self.choices)
        above = [g for g in near if g.qk_rank >= rank]
        return min(above, key=_rank) if above else max(near, key=_rank)


def _rank(geometry: HeadGeometry) -> int:
    return geometry.qk_rank


Rule = Callable[[Question], Sequence[HeadGeometry]]


def adviser(question: Question) -> Sequence[HeadGeometry]:
    """headwise: the first choice of ``headwise.advise`` for these tokens."""
    fixed = Constraints(heads=question.heads) if question.regime == "heads" else FREE
    spent = max(g.parameters for g in question.choices)
    budget = Budget(parameters=spent) if question.regime == "half" else NO_LIMIT
    best = decide(
        question.evidence, Asked(budget, fixed, any_shape=True), do_no_harm=False, judged=()
    ).best.geometry
    rank = question.with_rank(best.qk_rank)
    if question.regime != "free":
        return [rank]
    # Rounding the rank up can leave fewer heads in the width than were advised.
    heads = min(best.heads, max(1, question.width // rank.qk_rank))
    return [question.with_rank(best.qk_rank, heads)]


def usual(question: Question) -> Sequence[HeadGeometry]:
    """Head dimension 64, heads = width / 64."""
    return [question.with_rank(USUAL, max(1, question.width // USUAL))]


def four_heads(question: Question) -> Sequence[HeadGeometry]:
    """Rank = width / heads, as in the usual layers; all tasks are given four heads."""
    return [question.with_rank(question.width // question.heads)]


def paper(question: Question) -> Sequence[HeadGeometry]:
    """The rank paper's rule: where the rank with N(0, 1) weights stops growing."""
    curve = next(c for c in question.evidence.curves if c.start == "paper")
    return [question.with_rank(paper_saturation(curve) or curve.head_dims[-1])]


def largest(question: Question) -> Sequence[HeadGeometry]:
    """The most parameters; among equals the largest rank."""
    return [max(question.choices, key=lambda g: (g.parameters, g.qk_rank))]


def half_the_parameters(question: Question) -> Sequence[HeadGeometry]:
    """The cheapest with at least half of the largest's parameters; of equals the given heads."""
    most = max(g.parameters for g in question.choices)
    enough = [g for g in question.choices if 2 * g.parameters >= most]
    return [min(enough, key=lambda g: (g.parameters, abs(g.heads - question.heads)))]


def chance(question: Question) -> Sequence[HeadGeometry]:
    """Any choice, all equally likely."""
    return question.choices


#: Every rule by the name it has in the table; ours first.
RULES: dict[str, Rule] = {
    "headwise": adviser,
    "usual (r = 64)": usual,
    "4 heads (r = d/4)": four_heads,
    "paper's rule": paper,
    "largest": largest,
    "half the parameters": half_the_parameters,
    "chance": chance,
}
