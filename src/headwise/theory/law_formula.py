"""The law: the share of columns that the hardmax of a random head uses, and where it saturates.

The mathematics of ``headwise.law`` with and without a causal mask, in plain numpy: a command that
needs the law alone starts in a fraction of a second.
"""

from __future__ import annotations

import math

import numpy as np

from headwise.checks import fraction, whole
from headwise.errors import BadInputError
from headwise.mask_names import MaskName, checked_mask
from headwise.theory.causal import causal_share
from headwise.theory.number_types import MAX_HEAD_DIM, Real, Whole, Wholes, cells
from headwise.theory.picking import key_norms

#: From this head dimension on the law is an estimate; below it is only a bound.
ACCURATE_FROM = 16

# Cells computed together: enough to amortise each call, few enough to stay in cache.
_CELLS = 64


def law_share(length: Wholes, head_dim: Wholes, mask: MaskName = "none") -> np.ndarray:
    """The share of columns that the hardmax of a random head uses: L(n, d_h), or C(n, d_h)."""
    share = causal_share if checked_mask(mask) == "causal" else column_share
    return share(length, head_dim)


def barrier_ratio(length: Whole, mask: MaskName = "none") -> float:
    """What the law tends to as d_h grows: 1 − (1 − 1/n)ⁿ, or (n + 1) / 2n under a causal mask.

    For long sequences these are 1 − 1/e and one half.

    >>> barrier_ratio(2), round(barrier_ratio(10**9), 6), barrier_ratio(4, "causal")
    (0.75, 0.632121, 0.625)
    """
    n = whole("`length`", length)
    if checked_mask(mask) == "causal":
        return (n + 1) / (2 * n)
    return 1.0 if n == 1 else -math.expm1(n * math.log1p(-1 / n))


def critical_head_dim(length: Whole, share: Real = 0.9, mask: MaskName = "none") -> int:
    """The least head dimension whose law reaches ``share`` of the barrier."""
    n, goal = whole("`length`", length, 2), fraction("`fraction`", share)
    goal *= barrier_ratio(n, mask)
    low, high = 1, MAX_HEAD_DIM
    if float(law_share(n, high, mask)) < goal:
        raise BadInputError(
            f"no head dimension up to {MAX_HEAD_DIM} reaches {share} of the barrier at length {n}",
            hint="ask for a smaller fraction",
        )
    while low < high:
        middle = (low + high) // 2
        reached = float(law_share(n, middle, mask)) >= goal
        low, high = (low, middle) if reached else (middle + 1, high)
    return low


def column_share(length: Wholes, head_dim: Wholes) -> np.ndarray:
    """L(n, d_h) for one or many lengths and head dimensions, broadcast against each other."""
    n, d = cells(length, head_dim, least=2)
    flat_n, flat_d = n.reshape(-1), d.reshape(-1)
    parts = [slice(start, start + _CELLS) for start in range(0, n.size, _CELLS)]
    found = [_share_of_cells(flat_n[part], flat_d[part]) for part in parts]
    return np.concatenate([np.empty(0), *found]).reshape(n.shape)


def _share_of_cells(n: np.ndarray, d: np.ndarray) -> np.ndarray:
    rule = key_norms(n, d)
    # Interpolation may overshoot p = 1 by a rounding, where log1p would be NaN.
    with np.errstate(divide="ignore"):
        never_picked = n[:, None] * np.log1p(-rule.odds.clip(max=1.0))
    return rule.mean(-np.expm1(never_picked))
