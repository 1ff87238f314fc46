"""Hardmax: each row keeps its largest entry alone, so the rank is a count of columns.

Equal keys have equal scores, but a matrix product may round them differently, by where in the
matrix they stand and by processor. So scores within rounding of the largest count as equal to it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.shapes import Float, Int
from headwise.spectra.sources import LogWeights
from headwise.spectra.weights import refuse_bad_rows


def distinct_columns(winners: Int[Tensor, "*batch n"], columns: int) -> Int[Tensor, "*batch"]:
    """How many different columns occur among the winners of the rows.

    >>> distinct_columns(torch.tensor([[0, 0, 2], [1, 1, 1]]), 3)
    tensor([2, 1])
    """
    seen = torch.zeros(*winners.shape[:-1], columns, dtype=torch.bool, device=winners.device)
    seen.scatter_(-1, winners, torch.ones_like(winners, dtype=torch.bool))
    return seen.sum(-1)


def first_within(
    scores: Float[Tensor, "*batch n m"], top: Float[Tensor, "*batch n"], allowance: Tensor | float
) -> Int[Tensor, "*batch n"]:
    """The first column of each row whose score is at most ``allowance`` below the row's ``top``.

    >>> scores = torch.tensor([[0.0, 1.0 - 1e-7, 1.0]])
    >>> first_within(scores, scores.amax(-1), 1e-6)
    tensor([1])
    """
    near = scores >= (top - allowance).unsqueeze(-1)
    # As bytes: of equal ones the first is found, and quicker than among numbers of eight bytes.
    return near.view(torch.uint8).argmax(-1)


def hardmax_rank(source: LogWeights) -> Int[Tensor, "*batch"]:
    """The rank of the row-wise hardmax, exactly; a tie goes to the first column.

    Scores are tied if their errors do not tell them apart. Temperature does not matter: hardmax
    is the limit T → 0, and scaling leaves it as it is.

    >>> hardmax_rank(LogWeights(torch.tensor([[3.0, 1.0], [2.0, 0.0]])))
    tensor(1)
    """
    top = source.values.amax(-1)
    refuse_bad_rows(top)
    winners = first_within(source.values, top, 2 * source.row_error)
    return distinct_columns(winners, source.shape[-1])
