"""Hardmax: each row keeps only its largest entry, so the rank is a count of columns.

Equal keys have equal scores, but a matrix product may round them differently, depending on
position and processor. So scores within rounding of the largest count as equal to it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.shapes import Float, Int
from headwise.spectra.sources import LogWeights
from headwise.spectra.weights import refuse_bad_rows


def distinct_columns(winners: Int[Tensor, "*batch n"], columns: int) -> Int[Tensor, "*batch"]:
    """Count the different columns among the winners of the rows."""
    seen = torch.zeros(*winners.shape[:-1], columns, dtype=torch.bool, device=winners.device)
    seen.scatter_(-1, winners, torch.ones_like(winners, dtype=torch.bool))
    return seen.sum(-1)


def first_within(
    scores: Float[Tensor, "*batch n m"], top: Float[Tensor, "*batch n"], allowance: Tensor | float
) -> Int[Tensor, "*batch n"]:
    """Return the first column of each row that scores within ``allowance`` of its ``top``."""
    near = scores >= (top - allowance).unsqueeze(-1)
    # argmax over bytes finds the first of equal values, faster than over 8-byte numbers.
    return near.view(torch.uint8).argmax(-1)


def hardmax_rank(source: LogWeights) -> Int[Tensor, "*batch"]:
    """Return the exact rank of the row-wise hardmax; a tie goes to the first column.

    Scores are tied if their errors do not separate them. Hardmax is the limit T → 0, so the
    temperature does not matter.

    Returns:
        One rank per matrix.
    """
    top = source.values.amax(-1)
    refuse_bad_rows(top)
    winners = first_within(source.values, top, 2 * source.row_error)
    return distinct_columns(winners, source.shape[-1])
