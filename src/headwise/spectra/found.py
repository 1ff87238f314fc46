"""What a scan finds: the few entries of a batch of matrices that stand out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

#: Columns in a group: one line of the cache, in float64.
GROUP = 8

#: Above so many kept groups a row (on average) a matrix is not worth treating as sparse.
MOST_GROUPS = 6.0


def most_groups(n: int, m: int) -> float:
    """How many groups of columns may be hit in a matrix that is still sparse.

    >>> most_groups(100, 1000)
    600.0
    """
    return min(MOST_GROUPS, max(2.0, -(-m // GROUP) / 2)) * n


@dataclass(frozen=True, eq=False)
class Found:
    """The kept entries row by row, rows and columns numbered across the batch.

    ``sparse`` says which matrices are sparse; those that are not have no entries here.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    sparse: np.ndarray


@dataclass(frozen=True, eq=False)
class Weights:
    """Kept softmax weights, and of each row of the batch what they were made from.

    ``top`` is the largest log-weight, ``total`` the sum of the kept weights, the largest taken
    as one. Rows of matrices that are not sparse may have zeros there.
    """

    found: Found
    top: Tensor | np.ndarray
    total: np.ndarray
