"""Rows of numbers of any size: centred and scaled so that nothing is lost to rounding."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.shapes import Float


def from_median(rows: Float[Tensor, "m c"]) -> Float[Tensor, "m c"]:
    """Differences to the median of each column, which one far row does not move.

    >>> from_median(torch.tensor([[1.0], [3.0], [900.0]])).flatten().tolist()
    [-2.0, 0.0, 897.0]
    """
    return rows - rows.median(0).values


def centred(rows: Float[Tensor, "m c"]) -> Float[Tensor, "m c"]:
    """Differences to the mean of each column.

    >>> centred(torch.tensor([[1e30, 1.0], [1e30, 3.0]])).tolist()
    [[0.0, -1.0], [0.0, 1.0]]
    """
    # Medians first: the mean of a large constant is rounded, which would look like variance.
    shifted = from_median(rows)
    return shifted - shifted.mean(0)


def scaled(rows: Float[Tensor, "m c"]) -> Float[Tensor, "m c"]:
    """With 1 for the largest number: squares of huge or tiny ones would overflow or vanish.

    >>> scaled(torch.tensor([[2.0, -4.0]])).tolist()
    [[0.5, -1.0]]
    """
    largest = rows.abs().max()
    return rows / torch.where(largest > 0, largest, 1.0)
