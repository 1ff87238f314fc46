"""Which geometries to offer: shapes of the advised rank, the usual one, what fits a budget."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from headwise.advice.geometries.heads import (
    aimed_heads,
    content_rank,
    most_heads,
    shaped,
)
from headwise.advice.question import NO_LIMIT, Budget, Constraints, Question
from headwise.advice.rule import RankChoice
from headwise.errors import BadInputError
from headwise.geometry import USUAL_HEAD_DIM, HeadGeometry, divisors, usual

Role = Literal[
    "advised",
    "fewer heads",
    "present heads",
    "whole values",
    "half rank",
    "limited rank",
    "lookup",
    "usual",
    "largest",
    "present",
]

#: A rank that divides the width is as good as the advised one up to this factor: the sweeps
#: trained ranks in doublings, and neighbours among them were seldom told apart.
NEAR = 2


@dataclass(frozen=True)
class Candidate:
    """A geometry and its role in the answer."""

    role: Role
    geometry: HeadGeometry


@dataclass(frozen=True)
class Aim:
    """Heads and rank to advise, and the fewer heads offered next to them."""

    rank: int
    heads: int
    fewer: int


def aim(width: int, rank: RankChoice, question: Question, fewer: int) -> Aim:
    """Heads and rank to advise: heads × rank = width where that is as good, else as many as fit.

    >>> from headwise.advice.evidence import law_evidence
    >>> from headwise.advice.rule import choose_rank
    >>> found = choose_rank(law_evidence(100, 64))
    >>> aim(64, found, Question(any_shape=True), 4), aim(64, found, Question(), 4)
    (Aim(rank=48, heads=1, fewer=4), Aim(rank=64, heads=1, fewer=4))
    """
    constraints, budget = question.constraints, question.budget
    if not question.any_shape:
        for r in _ranks_that_fill(width, rank, constraints):
            if budget.allows(shaped(width, width // r, r, r, constraints)):
                return Aim(r, width // r, fewer)
    return Aim(rank.rank, aimed_heads(width, rank.rank, constraints, budget), fewer)


def _ranks_that_fill(width: int, rank: RankChoice, constraints: Constraints) -> Iterator[int]:
    """Ranks with heads × rank = width that meet the need and are near the advised one."""
    if constraints.kind == "mla":
        return
    for r in divisors(width):
        near = r == rank.rank if rank.fixed else rank.rank / NEAR < r <= NEAR * rank.rank
        met = rank.fixed or r >= min(rank.enough, rank.rank)
        grouped = constraints.kind != "gqa" or (width // r) % constraints.group == 0
        if near and met and grouped and constraints.keeps(width // r, r):
            yield r


def candidates(
    width: int, aimed: Aim, constraints: Constraints, budget: Budget, fill: bool = False
) -> list[Candidate]:
    """Every shape of the advised rank that constraints and budget allow.

    With ``fill``, half the rank comes with as many heads as the width and the budget hold, so that
    heads × rank = width if nothing is limited.

    >>> [c.role for c in candidates(64, Aim(4, 16, 4), Constraints(), Budget())]
    ['advised', 'fewer heads', 'whole values', 'half rank']
    """
    found = list(_shapes(width, aimed, constraints, budget, fill))
    fitting = [candidate for candidate in found if budget.allows(candidate.geometry)]
    whole = constraints.heads or most_heads(width, aimed.rank, constraints, NO_LIMIT)
    if found[0] not in fitting or aimed.heads < whole:
        fitting += _smaller(width, aimed.rank, whole, constraints, budget)
    if not fitting:
        raise _nothing_fits(width, constraints, budget)
    return once_each(fitting)


def once_each(offered: Iterable[Candidate]) -> list[Candidate]:
    """Each geometry under the first of its roles."""
    first: dict[HeadGeometry, Candidate] = {}
    for candidate in offered:
        first.setdefault(candidate.geometry, candidate)
    return list(first.values())


def lookup(width: int, rank: int, constraints: Constraints) -> Candidate:
    """Heads of the rank that retrieval needs, as many as the width holds."""
    r = constraints.rounded(rank, width)
    heads = constraints.heads or max(1, width // r)
    return Candidate("lookup", shaped(width, heads, r, r, constraints))


def usual_within(width: int, constraints: Constraints, budget: Budget) -> Candidate | None:
    """The usual geometry under the constraints and the budget; None if none fits.

    With fixed heads the head dimension is width / heads. Fewer heads where the budget holds no
    more.

    >>> usual_within(768, Constraints(heads=8), Budget()).geometry.qk_rank
    96
    """
    wanted = usual(width).qk_rank
    if constraints.heads is not None:
        wanted = max(1, width // constraints.heads)
    elif wanted % constraints.multiple_of:  # it would be rounded away from a divisor of the width
        wanted = min(USUAL_HEAD_DIM, width)
    rank = constraints.rank or constraints.rounded(wanted, width)
    heads = constraints.heads or max(1, width // rank)
    if constraints.heads is None:
        fitting = most_heads(width, rank, constraints, Budget(None, budget.cache_bytes))
        if budget.parameters is not None:
            fitting = min(fitting, most_heads(width, rank, constraints, budget))
        heads = min(heads, fitting)
    if not heads:
        return None
    geometry = shaped(width, heads, rank, rank, constraints)
    return Candidate("usual", geometry) if budget.allows(geometry) else None


def references(
    width: int, heads: int, largest_rank: int, most_parameters: int = 0
) -> list[Candidate]:
    """What costs are compared with: the usual geometry, and the largest rank looked at.

    The largest has more heads if something offered costs more than it.

    >>> [c.geometry.qk_rank for c in references(768, 12, largest_rank=128)]
    [64, 128]
    """
    rank = max(largest_rank, usual(width).qk_rank)
    head = HeadGeometry.free(width, 1, rank).parameters
    largest = HeadGeometry.free(width, max(heads, -(-most_parameters // head)), rank)
    return [Candidate("usual", usual(width)), Candidate("largest", largest)]


def _shapes(
    width: int, aimed: Aim, constraints: Constraints, budget: Budget, fill: bool
) -> Iterator[Candidate]:
    rank, heads, step = aimed.rank, aimed.heads, constraints.multiple_of
    yield Candidate("advised", shaped(width, heads, rank, rank, constraints))
    few = aimed.fewer if constraints.heads is None and 0 < aimed.fewer < heads else heads
    if few < heads:
        role: Role = "fewer heads" if budget.present is None else "present heads"
        yield Candidate(role, shaped(width, few, rank, rank, constraints))
    values = width // few // step * step
    if values > rank:
        yield Candidate("whole values", shaped(width, few, rank, values, constraints))
    less = constraints.rounded(-(-rank // 2))
    if constraints.rank is None and less < rank:
        if fill and constraints.heads is None:
            within = most_heads(width, less, constraints, budget)
            heads = max(heads, min(width // less, within))
        yield Candidate("half rank", shaped(width, heads, less, less, constraints))


def _smaller(
    width: int, rank: int, heads: int, constraints: Constraints, budget: Budget
) -> list[Candidate]:
    """The heads with the largest rank below the advised one that fits.

    If not even one head of the advised rank fits, also the largest rank that one head can have.
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
    """That many heads of the largest rank below a given one that fits.

    More heads where they fit too: a latent, or a key-value head, serves many at one price.
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


def _nothing_fits(width: int, constraints: Constraints, budget: Budget) -> BadInputError:
    rank, heads = constraints.rank or constraints.multiple_of, constraints.heads or 1
    least = shaped(width, heads, rank, rank, constraints)
    limits = " and ".join(
        f"{most:,} {'parameters' if unit == 'parameters' else 'cache bytes per token'}"
        f"{' (the present model)' if own else ''}"
        for unit, (most, own) in budget.limits.items()
    )
    return BadInputError(
        f"nothing fits {limits} at width {width}",
        hint=f"the smallest possible is {least.heads} head{'s' * (least.heads != 1)} of rank "
        f"{content_rank(least)}: {least.parameters:,} parameters, "
        f"{least.cache_bytes_per_token():,} cache bytes per token",
    )
