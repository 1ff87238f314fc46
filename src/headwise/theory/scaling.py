"""How the head dimension grows with the length: (log n)² for a share, log n for a gain.

For large d_h the weight n·p of a key is nearly log-normal, exp(cZ − c²/2), with c² = t⁴/(2 d_h)
and t = Φ⁻¹(1 − 1/n). The share of the barrier that is reached depends on c alone, so d_h is
t⁴/4 times a number that belongs to the share; and t² tends to 2 ln n, so t⁴/4 to (ln n)².
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from headwise.checks import fraction, positive, whole
from headwise.errors import BadInputError
from headwise.theory.law_formula import column_share, critical_head_dim
from headwise.theory.number_types import Real, Whole
from headwise.theory.numerics import crossing, rule_between

#: The shares of the barrier that ``scaling`` reports.
SHARES = (0.5, 0.9, 0.95)

# Head dimensions among which the last step that still gains is sought, before it is bracketed.
_LADDER = tuple(2**power for power in range(1, 16))

# The published means have three decimals: 0.592 − 0.579 must count as 0.013.
_PRINT_SLACK = 1e-9


@dataclass(frozen=True)
class Scaling:
    """The t⁴/4 form at one length: for each share of the barrier, the head dimension.

    ``leading`` is constant · t⁴/4 and ``asymptote`` constant · (ln n)²; ``by_law`` inverts L.
    """

    length: int
    quantile: float
    constant: dict[float, float]
    leading: dict[float, float]
    asymptote: dict[float, float]
    by_law: dict[float, int]


def scaling(length: Whole) -> Scaling:
    """The head dimension at 50, 90 and 95 % of the barrier, three ways."""
    n = whole("`length`", length, 2)
    t = quantile(n)
    constant = {share: saturation_constant(share) for share in SHARES}
    return Scaling(
        n,
        t,
        constant,
        leading={share: c * t**4 / 4 for share, c in constant.items()},
        asymptote={share: c * math.log(n) ** 2 for share, c in constant.items()},
        by_law={share: critical_head_dim(n, share) for share in SHARES},
    )


def quantile(length: Whole) -> float:
    """t = Φ⁻¹(1 − 1/n): the score that one of n Gaussian scores exceeds."""
    # From the other tail, where 1/n is not rounded away.
    return abs(float(special.ndtri(1 / whole("`length`", length, 2))))


def saturation_constant(share: Real) -> float:
    """d_h / (t⁴/4) at which a long sequence reaches ``share`` of the barrier: 2/c²."""
    goal = fraction("`fraction`", share)
    spread = crossing(lambda c: _log_normal_share(c) - goal, 1e-4, 60.0)
    return 2 / spread**2


def _log_normal_share(spread: float) -> float:
    """The share of 1 − 1/e that is used when column weights are exp(cZ − c²/2)."""
    z, weight = rule_between(-9.0, 9.0 + spread, 400)
    # Weights above e^50 are used for certain; the cap keeps the exponential finite.
    used = -np.expm1(-np.exp(np.minimum(spread * z - spread**2 / 2, 50.0)))
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return float((weight * density * used).sum()) / -math.expm1(-1)


def gain_head_dim(length: Whole, gain: Real = 0.01, step: Whole = 16) -> int:
    """The least d_h from which on ``step`` more dimensions raise L(n, d_h) by at most ``gain``.

    This is the rank paper's rule on the law. At practical lengths it grows like log n. It has an
    end: the steepest step itself gains less for very large n.

    >>> [gain_head_dim(25 * 2**k) for k in (0, 1, 2, 3, 15)]
    [31, 43, 55, 68, 197]
    """
    n, s = whole("the length", length, 2), whole("the step", step, 1)
    limit = positive("the gain", gain)

    def gains(head_dim: int) -> bool:
        return float(column_share(n, head_dim + s)) - float(column_share(n, head_dim)) > limit

    low = max((d for d in _LADDER if gains(d)), default=0)
    if not low:
        raise BadInputError(
            f"no step of {s} gains {limit} at length {n}", hint="ask for a smaller gain"
        )
    # The next rung does not gain, so the answer lies between.
    high = 2 * low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if gains(middle) else (low, middle)
    return high


def saturation_row(
    head_dims: Sequence[int], ratios: Sequence[float], threshold: Real = 0.013
) -> int | None:
    """The rank paper's critical head dimension: the last one before a small improvement.

    An improvement is small when it is at most ``threshold``; the paper says "around 0.01",
    and its published choices need about 0.013. None if every improvement is larger.

    >>> saturation_row([16, 32, 48, 64], [0.536, 0.593, 0.601, 0.612])
    32
    """
    limit = positive("the threshold", threshold) + _PRINT_SLACK
    if len(head_dims) != len(ratios) or len(ratios) < 2:
        raise BadInputError(
            f"{len(head_dims)} head dimensions and {len(ratios)} ratios do not make a table",
            hint="pass one ratio for each head dimension, at least two of each",
        )
    if any(after <= before for before, after in itertools.pairwise(head_dims)):
        raise BadInputError("the head dimensions do not rise", hint="sort the table by them")
    for row, step in enumerate(np.diff(ratios)):
        if step <= limit:
            return head_dims[row]
    return None
