"""Vectors far from all others: which they are, and how much of the variance goes with them."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.advice.rows import centred, from_median, scaled
from headwise.shapes import Bool, Float

#: A token is far if it lies more than this many times as far from the median as half of all do.
#: Of single Gaussian numbers 0.07% do, with 1% of the variance; of vectors of four hardly any.
FAR = 5.0

#: More of them than this share are no outliers, but how the tokens are. So of fewer than a hundred
#: tokens none is one.
FEW = 0.01


def far_rows(rows: Float[Tensor, "m c"]) -> Bool[Tensor, " m"]:
    """Which rows lie far from all others; none where that is usual.

    >>> rows = torch.linspace(-1, 1, 200)[:, None].double()
    >>> rows[7] = 100
    >>> far_rows(rows).nonzero().tolist()
    [[7]]
    """
    distances = torch.linalg.vector_norm(scaled(from_median(rows)), dim=-1)
    usual = distances.median()
    far = distances > FAR * usual
    return far & (far.sum() <= FEW * len(rows))


def share_of_variance(rows: Float[Tensor, "m c"], chosen: Bool[Tensor, " m"]) -> float:
    """How much of the summed square distance from the mean is gone without the chosen rows.

    >>> rows = torch.tensor([[1.0], [-1.0], [3.0], [-3.0]]).double()
    >>> share_of_variance(rows, rows[:, 0].abs() > 2)
    0.9
    """
    same_scale = scaled(from_median(rows))
    rest = float(centred(same_scale[~chosen]).square().sum())
    return 1 - rest / float(centred(same_scale).square().sum())
