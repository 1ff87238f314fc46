"""Geometries worth naming: the advised rank in several shapes, what fits a budget, and habits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headwise.advice.heads import HABIT, most_heads
from headwise.advice.question import CACHE_NUMBER, NO_LIMIT, Budget, Constraints
from headwise.advice.shaping import content_rank, shaped
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry


@dataclass(frozen=True)
class Candidate:
    """A geometry, and in what role it stands."""

    role: str
    geometry: HeadGeometry


@dataclass(frozen=True)
class Few:
    """How many heads are offered as what saves most, and under which role."""

    heads: int
    role: str


def candidates(
    width: int, rank: int, heads: int, constraints: Constraints, budget: Budget, fewer: int = 0
) -> list[Candidate]:
    """Every shape of the advised rank that constraints and budget allow; none is an error.

    ``fewer`` heads of it are offered too, as what saves most.

    >>> [c.role for c in candidates(64, 4, 16, Constraints(), Budget(), fewer=4)]
    ['advised', 'fewer heads', 'whole values', 'half advised']
    """
    few = Few(fewer, "fewer heads" if budget.present is None else "present heads")
    found = list(_shapes(width, rank, heads, constraints, few))
    fitting = [candidate for candidate in found if budget.allows(candidate.geometry)]
    whole = constraints.heads or most_heads(width, rank, constraints, NO_LIMIT)
    if found[0] not in fitting or heads < whole:
        fitting += _smaller(width, rank, whole, constraints, budget)
    if not fitting:
        raise _nothing_fits(width, constraints, budget)
    return once_each(fitting)


def once_each(offered: Iterable[Candidate]) -> list[Candidate]:
    """Each geometry under the first of its roles.

    >>> twice = [Candidate(role, HeadGeometry.standard(64, 4)) for role in ("advised", "lookup")]
    >>> [candidate.role for candidate in once_each(twice)]
    ['advised']
    """
    first: dict[HeadGeometry, Candidate] = {}
    for candidate in offered:
        first.setdefault(candidate.geometry, candidate)
    return list(first.values())


def lookup(width: int, rank: int, constraints: Constraints) -> Candidate:
    """Heads that can look single tokens up: of the rank that takes, as many as the width holds.

    >>> lookup(64, 20, Constraints()).geometry.heads
    3
    """
    r = constraints.rounded(rank, width)
    heads = constraints.heads or max(1, width // r)
    return Candidate("lookup", shaped(width, heads, r, r, constraints))


def _shapes(
    width: int, rank: int, heads: int, constraints: Constraints, fewer: Few
) -> Iterator[Candidate]:
    yield Candidate("advised", shaped(width, heads, rank, rank, constraints))
    few = fewer.heads if constraints.heads is None and 0 < fewer.heads < heads else heads
    if few < heads:
        yield Candidate(fewer.role, shaped(width, few, rank, rank, constraints))
    values = width // few // constraints.multiple_of * constraints.multiple_of
    if values > rank:
        yield Candidate("whole values", shaped(width, few, rank, values, constraints))
    half = -(-rank // 2)
    less = constraints.rounded(half)
    if constraints.rank is None and less < rank:
        role = "half advised" if less == half else "under advised"
        yield Candidate(role, shaped(width, heads, less, less, constraints))


def _smaller(
    width: int, rank: int, heads: int, constraints: Constraints, budget: Budget
) -> list[Candidate]:
    """The heads with the largest rank below the advised one that fits.

    Where not even one head has the advised rank, also the largest that one can have.
    """
    if constraints.rank is not None:
        return []
    found = _of_largest_rank(width, rank, heads, constraints, budget)
    if constraints.heads is None and not budget.allows(shaped(width, 1, rank, rank, constraints)):
        found = _of_largest_rank(width, rank, 1, constraints, budget) + found
    return found


def _of_largest_rank(
    width: int, below: int, heads: int, constraints: Constraints, budget: Budget
) -> list[Candidate]:
    """So many heads of the largest rank below a given one that fits; none if none does.

    More heads where they fit too: a latent, and a key-value head, serve many at one price.
    """
    ranks = range(constraints.multiple_of, below, constraints.multiple_of)
    count = bisect_left(
        ranks, True, key=lambda r: not budget.allows(shaped(width, heads, r, r, constraints))
    )
    if not count:
        return []
    rank = ranks[count - 1]
    fitting = most_heads(width, rank, constraints, budget) if constraints.heads is None else 0
    geometry = shaped(width, max(heads, fitting), rank, rank, constraints)
    return [Candidate("limited rank", geometry)]


def _smallest(width: int, constraints: Constraints) -> HeadGeometry:
    rank = constraints.rank or constraints.multiple_of
    heads = constraints.heads or 1
    return shaped(width, heads, rank, rank, constraints)


def _nothing_fits(width: int, constraints: Constraints, budget: Budget) -> BadInputError:
    least = _smallest(width, constraints)
    number = "head" if least.heads == 1 else "heads"
    return BadInputError(
        f"nothing fits {budget} at width {width}",
        hint=f"the smallest that would is {least.heads} {number} of rank {content_rank(least)}: "
        f"{least.parameters:,} parameters, {least.cache_bytes_per_token(CACHE_NUMBER):,} cache "
        "bytes per token",
    )


def references(width: int, heads: int, largest_rank: int, dearest: int = 0) -> list[Candidate]:
    """What costs are compared with: habit, and the largest rank that was looked at.

    The largest has more heads where something offered would cost more than it.

    >>> [c.geometry.qk_rank for c in references(768, 12, largest_rank=128)]
    [64, 128]
    """
    habit = HeadGeometry.free(width, max(1, width // HABIT), min(HABIT, width))
    rank = max(largest_rank, min(HABIT, width))
    head = HeadGeometry.free(width, 1, rank).parameters
    largest = HeadGeometry.free(width, max(heads, -(-dearest // head)), rank)
    return [Candidate("habit", habit), Candidate("largest", largest)]
