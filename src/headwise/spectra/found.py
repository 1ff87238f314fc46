"""The result of a scan: the few large entries of a batch of matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

#: Columns in a group: one line of the cache, in float64.
GROUP = 8

#: With more kept groups per row than this (on average), a matrix is treated as dense.
MOST_GROUPS = 6.0


def most_groups(n: int, m: int) -> float:
    """Return how many groups of columns may be hit in a matrix that still counts as sparse."""
    return min(MOST_GROUPS, max(2.0, -(-m // GROUP) / 2)) * n


@dataclass(frozen=True, eq=False)
class Found:
    """The kept entries row by row; rows and columns are numbered across the batch.

    ``sparse`` marks the sparse matrices; the others have no entries here.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    sparse: np.ndarray


@dataclass(frozen=True, eq=False)
class Weights:
    """Kept softmax weights, with the maximum and the sum of each row.

    ``top`` is the largest log-weight, ``total`` the sum of the kept weights with the largest taken
    as one. Both may be zero for rows of matrices that are not sparse.
    """

    found: Found
    top: Tensor | np.ndarray
    total: np.ndarray
