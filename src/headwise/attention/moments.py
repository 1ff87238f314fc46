"""Row sums of attention for long sequences: norms and logit statistics, a chunk at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.attention.grid import Grid
from headwise.attention.mask_arguments import MaskLike, as_mask
from headwise.attention.masks import EVERYTHING
from headwise.attention.operator import AttentionOperator, chunks, logits_at_once
from headwise.attention.scores import checked_pair, checked_temperature
from headwise.spectra.operators import own_precision


@dataclass(frozen=True)
class Moments:
    """What one pass over the logits of one matrix gives.

    Args:
        frobenius: ‖A‖_F, exact: the squares of a row are the softmax at half the temperature.
        logit_mean: Mean of the logits that the mask leaves.
        logit_deviation: Their standard deviation.
    """

    frobenius: float
    logit_mean: float
    logit_deviation: float


@own_precision()
def moments(
    queries: Tensor, keys: Tensor, *, temperature: float | None = None, mask: MaskLike = EVERYTHING
) -> Moments:
    """Compute ‖A‖_F and the spread of the logits without the matrix, in the dtype of the input.

    Args:
        queries: (n, d_h).
        keys: (m, d_h).
        temperature: The divisor of the logits; √d_h by default.
        mask: A mask, its name or a tensor; see ``as_mask``.

    Returns:
        ‖A‖_F, and the mean and standard deviation of the logits that the mask leaves.

    Example:
        >>> round(moments(torch.zeros(4, 2), torch.zeros(4, 2)).frobenius, 6)
        1.0
    """
    queries, keys = checked_pair(queries, keys)
    rule, scale = as_mask(mask), 1 / checked_temperature(temperature, queries.shape[-1])
    grid = Grid.whole(torch.Size([len(queries), len(keys)]), queries.device)
    total = squares = count = 0.0
    # An eighth: the passes below hold several copies of the logits.
    for rows in chunks(len(queries), max(1, logits_at_once(queries.device) // len(keys) // 8)):
        logits = rule.apply(queries[rows] @ keys.mT * scale, grid.block(rows, grid.columns))
        seen = torch.where(logits.isfinite(), logits, 0.0)
        count += float(logits.isfinite().sum())
        total += float(seen.sum(dtype=torch.float64))
        squares += float(seen.square().sum(dtype=torch.float64))
    mean = total / count
    variance = max(0.0, squares - count * mean**2) / max(1.0, count - 1)
    operator = AttentionOperator(
        queries, keys, temperature=temperature, mask=rule, dtype=queries.dtype
    )
    return Moments(operator.frobenius(), mean, math.sqrt(variance))
