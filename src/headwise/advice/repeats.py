"""How often tokens are the same: in all, and within their sequences."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.advice.embedding import TokenSet
from headwise.shapes import Int


@dataclass(frozen=True)
class Repeats:
    """How many different tokens there are, and what shares of them come again.

    ``repeated`` is the share of the most frequent one; ``returning`` that of tokens which occurred
    before in their sequence; ``by_chance`` what ``returning`` would be of tokens drawn at random
    from all of them: words and letters return often, whatever the sequence.

    >>> from headwise.advice.embedding import token_set
    >>> Repeats.among(token_set(torch.tensor([[1, 2, 1, 2], [3, 4, 3, 4]]), 8))
    Repeats(distinct=4, repeated=0.25, returning=0.5, by_chance=0.31640625)
    """

    distinct: int
    repeated: float
    returning: float
    by_chance: float

    @classmethod
    def among(cls, tokens: TokenSet) -> Repeats:
        """Those of these tokens, be they ids or vectors."""
        ids, counts = _numbered(tokens)
        shares = counts.double() / ids.numel()
        # Of n tokens drawn at random, one of share p is missing with chance (1 - p)^n.
        met = float((1 - (1 - shares) ** tokens.length).sum())
        by_chance = max(0.0, 1 - met / tokens.length)
        return cls(len(counts), float(shares.max()), _returning(ids), by_chance)


def _numbered(tokens: TokenSet) -> tuple[Int[Tensor, "b n"], Int[Tensor, " k"]]:
    """Each token as the number of its kind, and how many there are of each kind."""
    if tokens.learned:
        _, ids, counts = torch.unique(tokens.values, return_inverse=True, return_counts=True)
    else:
        rows = tokens.values.flatten(0, 1)
        _, ids, counts = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    return ids.reshape(tokens.sequences, tokens.length), counts


def _returning(ids: Int[Tensor, "b n"]) -> float:
    """In a sorted sequence a token that occurred before is equal to its neighbour."""
    return float((ids.sort(-1).values.diff(dim=-1) == 0).sum()) / ids.numel()
