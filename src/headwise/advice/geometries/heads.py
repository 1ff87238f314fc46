"""How many heads: as usual, as many as fit, and what limits their number."""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

from headwise.advice.geometries.costs import content_rank
from headwise.advice.geometries.shape import shaped
from headwise.advice.question import (
    CACHE_NUMBER,
    MOST_HEADS,
    NO_LIMIT,
    Budget,
    Constraints,
    Unit,
)
from headwise.geometry import HeadGeometry

#: The usual head dimension.
USUAL_HEAD_DIM = 64

#: The fewest heads that are offered as "fewer heads".
FEWEST_HEADS = 4

#: A budget buys heads up to this many times the width; more was never trained.
MOST_WIDTHS = 2

#: More parameters than any layer has.
MOST_PARAMETERS = 10**18

#: What limits the number of heads.
Limit = Literal["width", "tried", "parameters", "cache", "present"]


def usual_heads(width: int) -> int:
    """width / 64 heads, but at least four.

    >>> usual_heads(768), usual_heads(64)
    (12, 4)
    """
    return max(FEWEST_HEADS, width // USUAL_HEAD_DIM)


def most_heads(width: int, rank: int, constraints: Constraints, budget: Budget) -> int:
    """As many heads of that rank as the width holds, or as a budget of parameters pays for.

    At most ``MOST_WIDTHS`` times the width. 0 if not even one head fits.

    >>> most_heads(64, 8, Constraints(), Budget())
    8
    >>> most_heads(64, 8, Constraints(), Budget(parameters=24_576))
    12
    """
    most = _most_by_width(width, rank, budget)
    step = constraints.group if constraints.kind == "gqa" else 1
    wanted = [*range(1, min(step, most + 1)), *range(step, most + 1, step)]
    # Costs grow with the number of heads, so those that fit come first.
    count = bisect_left(
        wanted,
        True,
        key=lambda heads: not budget.allows(shaped(width, heads, rank, rank, constraints)),
    )
    return wanted[count - 1] if count else 0


def aimed_heads(width: int, rank: int, constraints: Constraints, budget: Budget) -> int:
    """The fixed number of heads, or as many of the rank as the width or the budget holds.

    If not even one fits, the number without a budget.

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
    """What limits the heads of a geometry that has as many as fit.

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


def exceeded_beyond(
    geometry: HeadGeometry, constraints: Constraints, budget: Budget
) -> tuple[tuple[Unit, ...], tuple[Unit, ...]]:
    """The limits that the next larger rank would exceed, and those that more heads would.

    >>> one = HeadGeometry.free(64, heads=1, rank=4)
    >>> exceeded_beyond(one, Constraints(), Budget(cache_bytes=16))
    (('cache',), ('cache',))
    """
    width, heads, rank = geometry.width, geometry.heads, content_rank(geometry)
    above = rank + constraints.multiple_of
    more = heads + (constraints.group if constraints.kind == "gqa" else 1)
    by_rank = budget.exceeded_by(shaped(width, heads, above, above, constraints))
    return by_rank, budget.exceeded_by(shaped(width, more, rank, rank, constraints))


def _most_by_width(width: int, rank: int, budget: Budget) -> int:
    """As many as the width holds, or, with a budget of parameters, as were ever trained."""
    widths = 1 if budget.parameters is None else MOST_WIDTHS
    return min(max(1, widths * width // rank), MOST_HEADS)


def groups_leave_a_rest(geometry: HeadGeometry, limit: Limit, budget: Budget) -> bool:
    """Whether one more head would be within the limit if heads were not added in whole groups.

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
