"""What a geometry costs, how to build one, and how many heads fit."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

from headwise.advice.question import (
    MOST_HEADS,
    NO_LIMIT,
    Budget,
    Constraints,
    Unit,
)
from headwise.advice.rule import whole_dimension
from headwise.geometry import HeadGeometry, LatentGeometry, divisors, usual
from headwise.theory.harmonic_bound import error_lower_bound

#: A lower bound on the lookup error below this says nothing.
NEGLIGIBLE = 0.0005


@dataclass(frozen=True)
class Costs:
    """Parameters of one layer without biases, FLOPs per token, KV cache bytes per token.

    >>> Costs.of(HeadGeometry.standard(64, heads=4), length=16)
    Costs(parameters=16384, flops_per_token=36864, cache_bytes_per_token=256)
    """

    parameters: int
    flops_per_token: int
    cache_bytes_per_token: int

    @classmethod
    def of(cls, geometry: HeadGeometry, length: int) -> Costs:
        """The costs at a context of ``length`` tokens, with a cache of 16-bit numbers."""
        return cls(
            geometry.parameters,
            geometry.flops_per_token(length),
            geometry.cache_bytes_per_token(),
        )

    def against(self, other: Costs) -> dict[str, float]:
        """Each cost as a share of another's."""
        return {name: own / getattr(other, name) for name, own in vars(self).items()}


def content_rank(geometry: HeadGeometry) -> int:
    """The rank with which queries and keys read content; this is what is shown and judged.

    It excludes a rotary part, which reads positions, and is at most what the latents pass on.

    >>> content_rank(LatentGeometry(64, 4, 4, 48, 32, kv_latent=24, q_latent=None, rope_rank=16))
    24
    """
    if not isinstance(geometry, LatentGeometry):
        return geometry.qk_rank
    return min(geometry.content_rank, geometry.kv_latent, geometry.q_latent or geometry.width)


def rotary_rank(geometry: HeadGeometry) -> int:
    """Query-key dimensions that carry rotary positions alone."""
    return geometry.rope_rank if isinstance(geometry, LatentGeometry) else 0


def lookup_error(effective_dimension: float, rank: int, heads: int) -> float:
    """The least mean squared error of looking up the nearer of two isotropic tokens (0 … 0.5).

    The heads paper's lower bound, at the effective dimension. One head of that rank is exact.

    >>> lookup_error(63.7, 64, heads=1), round(lookup_error(64.0, 8, heads=8), 4)
    (0.0, 0.1768)
    """
    if is_exact(effective_dimension, rank):
        return 0.0
    return error_lower_bound(max(2, whole_dimension(effective_dimension)), rank, heads)


def is_exact(effective_dimension: float, rank: int) -> bool:
    """Whether one head of this rank can look up isotropic tokens of that dimension exactly."""
    return rank >= whole_dimension(effective_dimension)


#: The latent as a multiple of the content rank, as in DeepSeek-V3 (512 and 128). The rotary part
#: is half the content rank (64 and 128).
LATENT_RANKS = 4


def shaped(
    width: int, heads: int, rank: int, values: int, constraints: Constraints
) -> HeadGeometry:
    """A geometry of the kind asked for: full, grouped, or latent as in DeepSeek-V3.

    >>> shaped(64, 8, 4, 4, Constraints(kind="gqa")).kv_heads
    2
    >>> shaped(64, 8, 4, 4, Constraints(kind="mla")).kv_latent
    16
    """
    if constraints.kind == "mla":
        return _latent(width, heads, rank, values, constraints.latent)
    plain = HeadGeometry(width, heads, heads, rank, values)
    if constraints.kind != "gqa" or heads == 1:
        return plain
    most = max(1, heads // constraints.group)
    return plain.grouped(max(k for k in divisors(heads) if k <= most))


def _latent(
    width: int, heads: int, rank: int, values: int, like: LatentGeometry | None
) -> LatentGeometry:
    """The latents and the rotary part of ``like``, widened only where the rank needs it."""
    if like is None:
        rope = 2 * max(1, rank // 4)
        latent = min(width, LATENT_RANKS * rank)
        return LatentGeometry(width, heads, heads, rank + rope, values, latent, None, rope)
    asking = None if like.q_latent is None else max(like.q_latent, rank)
    latent, rope = max(like.kv_latent, rank), like.rope_rank
    return LatentGeometry(width, heads, heads, rank + rope, values, latent, asking, rope)


#: The fewest heads that are offered as "fewer heads".
FEWEST_HEADS = 4

#: A budget buys heads up to this many times the width; more was never trained.
MOST_WIDTHS = 2

#: More parameters than any layer has.
MOST_PARAMETERS = 10**18

#: What limits the number of heads.
Limit = Literal["width", "tried", "parameters", "cache", "present"]


def usual_heads(width: int) -> int:
    """The heads of the usual geometry, but at least four.

    >>> usual_heads(768), usual_heads(64)
    (12, 4)
    """
    return max(FEWEST_HEADS, usual(width).heads)


def nearest_divisors(width: int, heads: int) -> list[int]:
    """The numbers of heads on either side that divide the width; none if these do.

    >>> nearest_divisors(768, 7), nearest_divisors(768, 12), nearest_divisors(64, 100)
    ([6, 8], [], [64])
    """
    if width % heads == 0:
        return []
    parts = divisors(width)
    below, above = [k for k in parts if k < heads], [k for k in parts if k > heads]
    return below[-1:] + above[:1]


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
    cost = geometry.cache_bytes_per_token() if cached else geometry.parameters
    most = budget.cache_bytes if cached else budget.parameters
    return most is not None and cost * (heads + 1) <= heads * most
