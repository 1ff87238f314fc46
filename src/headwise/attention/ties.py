"""Find tied scores of one query: those that only rounding may have separated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.shapes import Float, Int
from headwise.spectra.measuring import first_within
from headwise.spectra.sources import unit_roundoff

#: Half covers the rounding of two inner products, half the rounding of the keys.
_SAFETY = 4


@dataclass(frozen=True, eq=False)
class Ties:
    """How far below a winning score another may be and still be a tie.

    Equal keys have equal norms, so the winner's norm is enough. In 16 bits the rounding would cover
    much that is not equal: there only equal scores are ties.
    """

    slack: Float[Tensor, "*batch n"]
    sizes: Float[Tensor, "*batch m"]

    @classmethod
    def of(cls, queries: Tensor, keys: Tensor) -> Ties:
        """Make the ties of the scores q·k, computed in the dtype of queries and keys."""
        sizes = torch.linalg.vector_norm(keys, dim=-1)
        if queries.dtype not in (torch.float64, torch.float32):
            return cls(queries.new_zeros(queries.shape[:-1]), sizes)
        relative = (queries.shape[-1] + 4) * unit_roundoff(queries.dtype)
        return cls(_SAFETY * relative * torch.linalg.vector_norm(queries, dim=-1), sizes)

    def allowance(self, rows: slice, winners: Int[Tensor, "*batch r"]) -> Float[Tensor, "*batch r"]:
        """Return the tolerance of these rows; ``winners`` are the keys with the largest scores."""
        return self.slack[..., rows] * self.sizes.gather(-1, winners)


def first_best(queries: Tensor, keys: Tensor, scores: Tensor) -> Int[Tensor, "*batch n"]:
    """Return the column of each row's largest score, the first of ties; scores may be masked."""
    top, winner = scores.max(-1)
    whole = slice(0, scores.shape[-2])
    return first_within(scores, top, Ties.of(queries, keys).allowance(whole, winner))
