"""How many heads: by habit, as many as fit, and what keeps there from being more."""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

from headwise.advice.question import CACHE_NUMBER, MOST_HEADS, NO_LIMIT, Budget, Constraints
from headwise.advice.shaping import content_rank, shaped
from headwise.geometry import HeadGeometry

#: The head dimension that habit chooses.
HABIT = 64

#: Heads when neither the question nor habit says more.
FEWEST_HEADS = 4

#: Heads times rank in widths, at the most: what a budget may buy.
MOST_WIDTHS = 2

#: More than any layer has: a budget of this leaves the other limits alone.
MOST_PARAMETERS = 10**18

#: What keeps the number of heads from being larger.
Limit = Literal["width", "tried", "parameters", "cache", "present"]


def usual_heads(width: int) -> int:
    """Heads by habit, width / 64, but at least four.

    >>> usual_heads(768), usual_heads(64)
    (12, 4)
    """
    return max(FEWEST_HEADS, width // HABIT)


def most_heads(width: int, rank: int, constraints: Constraints, budget: Budget) -> int:
    """As many heads of that rank as the width holds, or as a budget of parameters pays for.

    Beyond ``MOST_WIDTHS`` times the width nothing was tried. 0 where not even one head fits.

    >>> most_heads(64, 8, Constraints(), Budget())
    8
    >>> most_heads(64, 8, Constraints(), Budget(parameters=24_576))
    12
    """
    most = _most_by_width(width, rank, budget)
    step = constraints.group if constraints.kind == "gqa" else 1
    wanted = [*range(1, min(step, most + 1)), *range(step, most + 1, step)]
    # Costs rise with the number of heads, so those that fit come first.
    count = bisect_left(
        wanted,
        True,
        key=lambda heads: not budget.allows(shaped(width, heads, rank, rank, constraints)),
    )
    return wanted[count - 1] if count else 0


def aimed_heads(width: int, rank: int, constraints: Constraints, budget: Budget) -> int:
    """Those that were fixed, or as many of the rank as the width or the budget holds.

    Where not even one fits, what would be advised without a budget is still the aim.

    >>> aimed_heads(64, 8, Constraints(), Budget(parameters=1))
    8
    """
    if constraints.heads is not None:
        return constraints.heads
    found = most_heads(width, rank, constraints, budget)
    return found or most_heads(width, rank, constraints, NO_LIMIT)


def limit_of(
    geometry: HeadGeometry,
    constraints: Constraints,
    budget: Budget,
    present: HeadGeometry | None = None,
) -> Limit:
    """What keeps a geometry with as many heads as fit from having more.

    >>> limit_of(HeadGeometry.standard(64, 8), Constraints(), Budget())
    'width'
    """
    width, rank, heads = geometry.width, content_rank(geometry), geometry.heads
    if budget.parameters is None:
        whole = most_heads(width, rank, constraints, NO_LIMIT)
        return "width" if heads == whole else "cache"
    if heads == most_heads(width, rank, constraints, Budget(parameters=MOST_PARAMETERS)):
        return "tried"
    if heads < most_heads(width, rank, constraints, Budget(parameters=budget.parameters)):
        return "cache"
    own = present is not None and budget.parameters == present.parameters
    return "present" if own else "parameters"


def what_stops_more(geometry: HeadGeometry, constraints: Constraints, budget: Budget) -> str:
    """The limits that the next larger rank, and more heads of this one, would exceed.

    >>> one = HeadGeometry.free(64, heads=1, rank=4)
    >>> what_stops_more(one, Constraints(), Budget(cache_bytes=16))
    'since a larger rank or more heads would exceed 16 cache bytes per token.'
    """
    width, heads, rank = geometry.width, geometry.heads, content_rank(geometry)
    above = rank + constraints.multiple_of
    by_rank = budget.exceeded_by(shaped(width, heads, above, above, constraints))
    more = heads + (constraints.group if constraints.kind == "gqa" else 1)
    by_heads = budget.exceeded_by(shaped(width, more, rank, rank, constraints))
    if not by_rank:
        return ""
    if by_rank == by_heads:
        return f"since a larger rank or more heads would exceed {by_rank}."
    beside = f", and more heads {by_heads}" if by_heads else ""
    return f"since a larger rank would exceed {by_rank}{beside}."


def _most_by_width(width: int, rank: int, budget: Budget) -> int:
    """As many as the width holds, or, where a budget of parameters decides, as were ever tried."""
    widths = 1 if budget.parameters is None else MOST_WIDTHS
    return min(max(1, widths * width // rank), MOST_HEADS)


def groups_leave_a_rest(geometry: HeadGeometry, limit: Limit, budget: Budget) -> bool:
    """Whether one head more would be within the limit, were heads not added in whole groups.

    Grouped heads all cost the same, so one more costs its share.

    >>> four = HeadGeometry(64, heads=4, kv_heads=1, qk_rank=12, v_rank=12)
    >>> groups_leave_a_rest(four, "width", Budget())
    True
    """
    heads = geometry.heads
    if geometry.group == 1:
        return False
    if limit in ("width", "tried"):
        return heads < _most_by_width(geometry.width, content_rank(geometry), budget)
    cached = limit == "cache"
    cost = geometry.cache_bytes_per_token(CACHE_NUMBER) if cached else geometry.parameters
    most = budget.cache_bytes if cached else budget.parameters
    return most is not None and cost * (heads + 1) <= heads * most
