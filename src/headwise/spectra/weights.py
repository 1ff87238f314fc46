"""Compute the softmax of rows of log-weights, and bound the error of its entries."""

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
    """Return the row-wise softmax in float64."""
    top = source.values.amax(-1, keepdim=True)
    refuse_bad_rows(top)
    return torch.softmax(source.values.double(), dim=-1)


def refuse_bad_rows(row_maximum: Tensor) -> None:
    """Raise on bad log-weights; NaN, +∞ and fully masked rows all show in the row maxima."""
    total = row_maximum.sum()
    if torch.isfinite(total):
        return
    refuse_not_finite(
        "the log-weights", int((row_maximum.isnan() | (row_maximum == math.inf)).sum())
    )
    refuse_fully_masked(int((row_maximum == -math.inf).sum()))


def softmax_rounding(shape: torch.Size) -> float:
    """Return the relative error of the float64 softmax of exact log-weights, row by row."""
    return (WEIGHT_ROUNDINGS + math.sqrt(shape[-1])) * unit_roundoff(torch.float64)


def log_doubt(log_weights: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch n"]:
    """Return log Σ exp(x_j − max) without the largest entry: at least log(1 − its weight).

    It stays in logarithms, since a row may be one-hot to within e^{-1000}.
    """
    top, at = log_weights.max(-1, keepdim=True)
    others = log_weights.scatter(-1, at, -math.inf)
    return others.logsumexp(-1) - top.squeeze(-1)


def weights_error(
    source: LogWeights,
    row_norm: Float[Tensor, "*batch n"],
    row_log_doubt: Float[Tensor, "*batch n"],
    eta: Float[Tensor, "*batch n"],
) -> Float[Tensor, "*batch"]:
    """Bound the Frobenius distance of the computed softmax from the exact one.

    ``row_norm`` is the Euclidean norm of each row of weights, ``row_log_doubt`` at least the
    logarithm of one minus its largest weight, and ``eta`` (η) the error of its log-weights. A
    weight w then moves by at most min(w, 1−w)(e^{2η}−1): nearly one-hot rows hardly change.

    Returns:
        One bound per matrix.
    """
    growth = torch.where(eta < 1, torch.expm1(2 * eta.clamp(max=1)).log(), 2 * eta)
    one_hot = (row_log_doubt + growth).exp() * math.sqrt(2)
    soft = growth.exp() * row_norm
    # Two rows of weights are never further apart than √2.
    moved = torch.minimum(one_hot, soft).clamp(max=math.sqrt(2))
    return torch.linalg.vector_norm(moved + softmax_rounding(source.shape) * row_norm, dim=-1)


def logit_error(
    source: LogWeights, row_reach: Float[Tensor, "*batch n"]
) -> Float[Tensor, "*batch n"]:
    """Return η: the stated error of the log-weights plus that of storing them."""
    eta = source.row_error.to(row_reach.device)
    if source.dtype != torch.float64:
        eta = eta + unit_roundoff(source.dtype) * row_reach
    return eta
