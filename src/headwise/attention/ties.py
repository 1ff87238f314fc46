"""Which scores of one query are ties: those that rounding alone may have set apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.shapes import Float, Int
from headwise.spectra.hardmax import first_within
from headwise.spectra.rounding import unit_roundoff

#: Half of it covers the rounding of two inner products, half that of what made the keys.
_SAFETY = 4


@dataclass(frozen=True, eq=False)
class Ties:
    """How far below a winning score another may be and still be its equal.

    Equal keys have equal norms, so that of the winner serves. In 16 bits what rounding hides
    would take in much that is not equal: there only equal scores are ties.

    >>> q, k = torch.ones(1, 4, dtype=torch.float64), torch.ones(3, 4, dtype=torch.float64)
    >>> bool(0 < Ties.of(q, k).allowance(slice(0, 1), torch.tensor([2])) < 1e-13)
    True
    """

    slack: Float[Tensor, "*batch n"]
    sizes: Float[Tensor, "*batch m"]

    @classmethod
    def of(cls, queries: Tensor, keys: Tensor) -> Ties:
        """Those of the scores q·k, taken in the dtype of queries and keys."""
        sizes = torch.linalg.vector_norm(keys, dim=-1)
        if queries.dtype not in (torch.float64, torch.float32):
            return cls(queries.new_zeros(queries.shape[:-1]), sizes)
        relative = (queries.shape[-1] + 4) * unit_roundoff(queries.dtype)
        return cls(_SAFETY * relative * torch.linalg.vector_norm(queries, dim=-1), sizes)

    def allowance(self, rows: slice, winners: Int[Tensor, "*batch r"]) -> Float[Tensor, "*batch r"]:
        """For these rows, whose largest scores are those of the keys ``winners``."""
        return self.slack[..., rows] * self.sizes.gather(-1, winners)


def first_best(queries: Tensor, keys: Tensor, scores: Tensor) -> Int[Tensor, "*batch n"]:
    """The column of each row's largest score, the first of ties; scores may be masked or biased.

    >>> q, k = torch.ones(1, 2), torch.tensor([[0.0, 1.0], [2.0, 1.0], [1.0, 2.0]])
    >>> first_best(q, k, q @ k.mT)
    tensor([1])
    """
    top, winner = scores.max(-1)
    whole = slice(0, scores.shape[-2])
    return first_within(scores, top, Ties.of(queries, keys).allowance(whole, winner))
