"""The rank curve of the finite law, where there are numbers and no data."""

from __future__ import annotations

from headwise.advice.curves import RankCurve, head_dim_grid
from headwise.theory.columns import barrier_ratio, column_share

#: The largest head dimension that the law is asked about.
MOST_HEAD_DIM = 1024


def law_curve(length: int, width: int) -> RankCurve:
    """L(n, d_h) up to the width. Above d_h = 16 within 0.01 of simulation, below an upper bound.

    >>> curve = law_curve(512, 768)
    >>> curve.head_dims[-1], round(curve.at(64), 3), round(curve.plateau, 3)
    (768, 0.545, 0.632)
    """
    dims = head_dim_grid(min(width, MOST_HEAD_DIM))
    ratios = tuple(column_share(length, list(dims)).tolist())
    still = (0.0,) * len(dims)
    return RankCurve("law", dims, ratios, still, 0, barrier_ratio(length), "theory: 1 − (1−1/n)ⁿ")
