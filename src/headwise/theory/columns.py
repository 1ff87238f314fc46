"""The share of columns that the hardmax of a random head uses, in plain numpy.

The mathematics of ``headwise.law``, without torch: a command that needs the law alone
starts in a fraction of a second.
"""

from __future__ import annotations

import numpy as np

from headwise.theory.picking import key_norms
from headwise.theory.sizes import Wholes, wholes

MAX_LENGTH = 10**12
MAX_HEAD_DIM = 10**5

#: From this head dimension on the law is an estimate; below it is only a bound.
ACCURATE_FROM = 16

# Cells computed together: enough to amortise each call, few enough to stay in cache.
_CELLS = 64


def column_share(length: Wholes, head_dim: Wholes) -> np.ndarray:
    """L(n, d_h) for one or many lengths and head dimensions, broadcast against each other."""
    n, d = cells(length, head_dim, least=2)
    flat_n, flat_d = n.reshape(-1), d.reshape(-1)
    parts = [slice(start, start + _CELLS) for start in range(0, n.size, _CELLS)]
    found = [_share_of_cells(flat_n[part], flat_d[part]) for part in parts]
    return np.concatenate([np.empty(0), *found]).reshape(n.shape)


def cells(length: Wholes, head_dim: Wholes, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths from ``least`` on and head dimensions, in range and of one shape."""
    n = wholes("`length`", length, least, MAX_LENGTH)
    d = wholes("`head_dims`", head_dim, 1, MAX_HEAD_DIM)
    n, d = np.broadcast_arrays(n, d)
    return n, d


def _share_of_cells(n: np.ndarray, d: np.ndarray) -> np.ndarray:
    rule = key_norms(n, d)
    # Interpolation may overshoot p = 1 by a rounding, where log1p would be NaN.
    with np.errstate(divide="ignore"):
        never_picked = n[:, None] * np.log1p(-rule.odds.clip(max=1.0))
    return rule.mean(-np.expm1(never_picked))
