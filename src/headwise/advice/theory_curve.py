"""The rank curve of the finite law, where there are numbers and no data."""

from __future__ import annotations

from headwise.advice.curves import RankCurve, head_dim_grid
from headwise.masks import MaskName
from headwise.theory.columns import ACCURATE_FROM
from headwise.theory.ready import UPPER_BOUND, ready_ratio
from headwise.theory.under_mask import barrier_ratio

#: The largest head dimension that the law is asked about.
MOST_HEAD_DIM = 65_536

_PLATEAU: dict[MaskName, str] = {
    "none": "theory: 1 − (1−1/n)ⁿ",
    "causal": "theory: (n+1) / 2n under a causal mask",
}


def law_curve(length: int, width: int, mask: MaskName = "none") -> RankCurve:
    """E[rank]/n of random heads up to the width, as ``headwise law`` gives it.

    >>> curve = law_curve(512, 768)
    >>> curve.head_dims[-1], round(curve.at(64), 3), round(curve.plateau, 3)
    (768, 0.545, 0.632)
    """
    dims = head_dim_grid(min(width, MOST_HEAD_DIM))
    ratios = tuple(ready_ratio(length, dim, mask).ratio for dim in dims)
    still, plateau = (0.0,) * len(dims), barrier_ratio(length, mask)
    return RankCurve("law", dims, ratios, still, 0, plateau, _PLATEAU[mask], mask)


def bounded_dims(length: int, curve: RankCurve) -> tuple[int, ...]:
    """The head dimensions at which the law is an upper bound and no more.

    >>> bounded_dims(10**9, law_curve(10**9, 16)), bounded_dims(512, law_curve(512, 64))
    ((3, 4, 6, 8, 12), ())
    """
    low = [dim for dim in curve.head_dims if dim < ACCURATE_FROM]
    return tuple(dim for dim in low if ready_ratio(length, dim, curve.mask).method == UPPER_BOUND)
