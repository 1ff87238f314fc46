"""What the tokens are like: effective dimension, mean, distance from orthonormal."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.advice.embedding import TokenSet
from headwise.advice.evidence import TokenStatistics
from headwise.shapes import Float

#: Tokens beyond this number add nothing to the statistics.
MOST_TOKENS = 20_000


def token_statistics(tokens: TokenSet, seed: int) -> TokenStatistics:
    """Statistics of tokens, in one drawn embedding where they need one.

    Vectors keep the dimension they came with; of ids only the embedding has one.

    >>> white = torch.randn(64, 32, 8, generator=torch.Generator().manual_seed(0))
    >>> 7.8 < token_statistics(TokenSet(white, 8, "given"), 0).effective_dimension < 8
    True
    """
    few = tokens.chosen(torch.arange(min(tokens.sequences, max(1, MOST_TOKENS // tokens.length))))
    embedded = few.embedded(seed)
    own = embedded if tokens.learned else few.values.double()
    cosines = _cosines(embedded[:64])
    off = cosines - torch.eye(tokens.length, dtype=torch.float64)
    pairs = tokens.length * (tokens.length - 1)
    counts = _counts(few)
    return TokenStatistics(
        tokens.sequences,
        tokens.length,
        tokens.width,
        effective_dimension(own.flatten(0, 1)),
        _mean_share(embedded.flatten(0, 1)),
        math.sqrt(float(off.square().sum((-2, -1)).mean()) / pairs),
        float(off.square().sum((-2, -1)).sqrt().mean()) / tokens.length**2,
        tokens.learned,
        None if tokens.learned else tokens.values.shape[-1],
        len(counts),
        int(counts.max()) / int(counts.sum()),
    )


def effective_dimension(rows: Float[Tensor, "m c"]) -> float:
    """exp of the entropy of the eigenvalues of the covariance of the rows.

    >>> round(effective_dimension(torch.eye(5).double()), 9)
    4.0
    """
    # Medians first: the mean of a large constant is rounded, which would look like variance.
    shifted = rows - rows.median(0).values
    centred = shifted - shifted.mean(0)
    # Scaled first: squares of huge or tiny numbers would overflow or vanish.
    largest = centred.abs().max()
    centred = centred / torch.where(largest > 0, largest, 1.0)
    eigenvalues = torch.linalg.eigvalsh(centred.mT @ centred).clamp(min=0)
    shares = eigenvalues / eigenvalues.sum().clamp(min=1e-300)
    return float(torch.special.entr(shares).sum().exp())


def _counts(tokens: TokenSet) -> Tensor:
    """How often each different token is there."""
    if tokens.learned:
        return tokens.values.unique(return_counts=True)[1]
    return tokens.values.flatten(0, 1).unique(dim=0, return_counts=True)[1]


def _mean_share(rows: Float[Tensor, "m c"]) -> float:
    largest = rows.abs().max()
    rows = rows / torch.where(largest > 0, largest, 1.0)
    total = float(rows.square().sum(-1).mean())
    return float(rows.mean(0).square().sum()) / total if total else 0.0


def _cosines(tokens: Float[Tensor, "b n d"]) -> Float[Tensor, "b n n"]:
    # Scaled first: a token so short that its squares vanish has a direction all the same.
    largest = tokens.abs().amax(-1, keepdim=True)
    unit = torch.nn.functional.normalize(tokens / torch.where(largest > 0, largest, 1.0), dim=-1)
    return unit @ unit.mT
