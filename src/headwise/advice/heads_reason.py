"""Why the first choice has so many heads, in words."""

from __future__ import annotations

from headwise.advice.heads import MOST_WIDTHS, Limit, groups_leave_a_rest, usual_heads
from headwise.advice.question import CACHE, PARAMETERS, Budget
from headwise.advice.result import Choice
from headwise.geometry import HeadGeometry

MANY_HEADS_WORDS = (
    "Trained at equal cost, many heads of the rank that is needed did better than few of a larger "
    "one."
)

#: What the heads are as many as; where groups of them leave a rest, that is said in between.
LIMIT_WORDS: dict[Limit, str] = {
    "width": "as many of this rank{groups} as fill the width.",
    "tried": f"as many of this rank{{groups}} as {MOST_WIDTHS} widths hold; more was never tried.",
    "parameters": "as many of this rank{groups} as {parameters} pay for.",
    "cache": "as many of this rank{groups} as {cache} hold.",
    "present": "as many of this rank{groups} as cost no more than {parameters}.",
}


def heads_reason(
    best: Choice, limit: Limit | None, budget: Budget, stopped: str, present: HeadGeometry | None
) -> str:
    """Why the first choice has so many heads, where nobody fixed them.

    Without a limit of their number their rank is limited too: ``stopped`` says by what.
    """
    geometry = best.geometry
    words = f"Heads: {geometry.heads}, "
    if best.role == "present":
        return words + "as many as the model has."
    if limit is None:
        words += stopped or f"of what is left within {budget}."
    else:
        rest = groups_leave_a_rest(geometry, limit, budget)
        groups = f", in groups of {geometry.group} that share a key-value head," if rest else ""
        limits = budget.in_words()
        parameters, cache = limits.get(PARAMETERS, ""), limits.get(CACHE, "")
        words += LIMIT_WORDS[limit].format(groups=groups, parameters=parameters, cache=cache)
    beside = usual_heads(geometry.width) if present is None else present.heads
    return f"{words} {MANY_HEADS_WORDS}" if best.meets and geometry.heads > beside else words
