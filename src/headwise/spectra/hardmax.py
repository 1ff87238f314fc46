"""Hardmax: each row keeps its largest entry alone, so the rank is a count of columns."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.shapes import Int
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


def hardmax_rank(source: LogWeights) -> Int[Tensor, "*batch"]:
    """The rank of the row-wise hardmax, exactly; a tie goes to the first column.

    Temperature does not matter: hardmax is the limit T → 0, and scaling leaves it as it is.

    >>> hardmax_rank(LogWeights(torch.tensor([[3.0, 1.0], [2.0, 0.0]])))
    tensor(1)
    """
    top, winners = source.values.max(-1)
    refuse_bad_rows(top)
    return distinct_columns(winners, source.shape[-1])
