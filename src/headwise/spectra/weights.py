"""From rows of log-weights to the matrix of weights, and how sure its entries are."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.shapes import Float
from headwise.spectra.rounding import unit_roundoff
from headwise.spectra.sources import LogWeights, refuse_fully_masked, refuse_not_finite

#: Relative error of one softmax weight in float64: exponential, sum and division, in units
#: of u, beside what the size of the row adds.
WEIGHT_ROUNDINGS = 8.0


def softmax_matrix(source: LogWeights) -> Float[Tensor, "*batch n m"]:
    """The row-wise softmax in float64.

    >>> softmax_matrix(LogWeights(torch.zeros(1, 2)))
    tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    top = source.values.amax(-1, keepdim=True)
    refuse_bad_rows(top)
    return torch.softmax(source.values.double(), dim=-1)


def refuse_bad_rows(row_maximum: Tensor) -> None:
    """Refuse log-weights by their row maxima: NaN and +∞ show there, and so do masked rows."""
    total = row_maximum.sum()
    if torch.isfinite(total):
        return
    refuse_not_finite(
        "the log-weights", int((row_maximum.isnan() | (row_maximum == math.inf)).sum())
    )
    refuse_fully_masked(int((row_maximum == -math.inf).sum()))


def softmax_rounding(shape: torch.Size) -> float:
    """Relative error of the float64 softmax of given log-weights, row by row.

    >>> softmax_rounding(torch.Size([100, 100])) < 1e-14
    True
    """
    return (WEIGHT_ROUNDINGS + math.sqrt(shape[-1])) * unit_roundoff(torch.float64)


def weights_error(
    source: LogWeights,
    row_norm: Float[Tensor, "*batch n"],
    row_doubt: Float[Tensor, "*batch n"],
    row_reach: Float[Tensor, "*batch n"],
) -> Float[Tensor, "*batch"]:
    """How far the computed softmax may lie, in Frobenius norm, from the one that was meant.

    ``row_norm`` is the Euclidean norm of each row of weights, ``row_doubt`` one minus its
    largest weight, ``row_reach`` the largest magnitude among its log-weights. If every
    log-weight moves by at most η, a weight w moves by at most min(w, 1−w)(e^{2η}−1): rows
    that are nearly one-hot hardly feel it.

    >>> logits = LogWeights(torch.zeros(1, 2), error=1e-9)
    >>> norm, doubt, reach = (torch.tensor([x]).double() for x in (0.5**0.5, 0.5, 0.0))
    >>> 1e-9 < float(weights_error(logits, norm, doubt, reach)) < 2e-9
    True
    """
    eta = source.row_error.to(row_norm.device)
    if source.dtype != torch.float64:
        eta = eta + unit_roundoff(source.dtype) * row_reach
    spread = torch.minimum(row_norm, math.sqrt(2) * row_doubt)
    # Two rows of weights are never further apart than √2.
    moved = (torch.expm1(2 * eta) * spread).nan_to_num(0.0).clamp(max=math.sqrt(2))
    return torch.linalg.vector_norm(moved + softmax_rounding(source.shape) * row_norm, dim=-1)
