"""Describe the query-key forms M = W_Qᵀ W_K of a trained layer: angle to the identity, size."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.runs import Row
from headwise.shapes import Float


def form_angles(
    queries: Float[Tensor, "h r d"], keys: Float[Tensor, "h r d"]
) -> tuple[Float[Tensor, " h"], Float[Tensor, " h"]]:
    """Return for each head the angle of M to the identity, in degrees, and ‖M‖_F / √d.

    No d × d matrix is formed: tr M = Σ W_Q∘W_K and ‖M‖² = Σ (W_Q W_Qᵀ)∘(W_K W_Kᵀ).
    """
    width = queries.shape[-1]
    trace = (queries * keys).sum((-2, -1))
    square = ((queries @ queries.mT) * (keys @ keys.mT)).sum((-2, -1))
    size = square.clamp(min=torch.finfo(square.dtype).tiny).sqrt()
    cosine = (trace / (size * math.sqrt(width))).clamp(-1, 1)
    return torch.rad2deg(torch.acos(cosine)), size / math.sqrt(width)


def form_row(queries: Float[Tensor, "h r d"], keys: Float[Tensor, "h r d"]) -> Row:
    """Return median and quartiles of the angle over heads, and the median size."""
    angle, size = form_angles(queries.double(), keys.double())
    low, middle, high = torch.quantile(angle, torch.tensor([0.25, 0.5, 0.75]).double()).tolist()
    return {
        "angle": middle,
        "angle_low": low,
        "angle_high": high,
        "form_size": float(torch.quantile(size, 0.5)),
    }
