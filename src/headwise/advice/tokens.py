"""What the tokens are like: effective dimension, mean, distance from orthonormal."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from headwise.advice.embedding import TokenSet
from headwise.advice.evidence import MUCH_VARIANCE, TokenStatistics, few_sequences
from headwise.advice.outliers import far_rows, share_of_variance
from headwise.advice.repeats import Repeats
from headwise.advice.rows import centred, scaled
from headwise.shapes import Float


def token_statistics(tokens: TokenSet, seed: int) -> TokenStatistics:
    """Statistics of tokens, in one drawn embedding where they need one.

    Vectors keep the dimension they came with; of ids only the embedding has one.

    >>> white = torch.randn(64, 32, 8, generator=torch.Generator().manual_seed(0))
    >>> 7.8 < token_statistics(TokenSet(white, 8, "given"), 0).effective_dimension < 8
    True
    """
    few = tokens.chosen(torch.arange(few_sequences(tokens.sequences, tokens.length)))
    embedded = few.embedded(seed)
    own = (embedded if tokens.learned else few.values.double()).flatten(0, 1)
    cosines = _cosines(embedded[:64])
    off = cosines - torch.eye(tokens.length, dtype=torch.float64)
    pairs = tokens.length * (tokens.length - 1)
    same = Repeats.among(few)
    found = TokenStatistics(
        tokens.sequences,
        tokens.length,
        tokens.width,
        effective_dimension(own),
        _mean_share(embedded.flatten(0, 1)),
        math.sqrt(float(off.square().sum((-2, -1)).mean()) / pairs),
        float(off.square().sum((-2, -1)).sqrt().mean()) / tokens.length**2,
        tokens.learned,
        None if tokens.learned else tokens.values.shape[-1],
        same.distinct,
        same.repeated,
        same.returning,
        same.by_chance,
        _spread(embedded.flatten(0, 1)),
    )
    # The rows of a table drawn at random have no outliers.
    return found if tokens.learned else _without_outliers(found, own, embedded.flatten(0, 1))


def effective_dimension(rows: Float[Tensor, "m c"]) -> float:
    """exp of the entropy of the eigenvalues of the covariance of the rows.

    >>> round(effective_dimension(torch.eye(5).double()), 9)
    4.0
    """
    deviations = scaled(centred(rows))
    eigenvalues = torch.linalg.eigvalsh(deviations.mT @ deviations).clamp(min=0)
    shares = eigenvalues / eigenvalues.sum().clamp(min=1e-300)
    return float(torch.special.entr(shares).sum().exp())


def _without_outliers(
    found: TokenStatistics, own: Float[Tensor, "m c"], embedded: Float[Tensor, "m d"]
) -> TokenStatistics:
    """The same, less the tokens far from all others where they hold much of the variance.

    A layer norm makes such a token one like any other, so it says nothing of what heads need.
    """
    far = far_rows(own)
    if not bool(far.any()):
        return found
    found = replace(found, outliers=int(far.sum()), outlier_share=share_of_variance(own, far))
    if found.outlier_share <= MUCH_VARIANCE:
        return found
    return replace(
        found,
        effective_dimension=effective_dimension(own[~far]),
        mean_share=_mean_share(embedded[~far]),
        dimension_with_outliers=found.effective_dimension,
        mean_share_with_outliers=found.mean_share,
    )


def _mean_share(rows: Float[Tensor, "m c"]) -> float:
    rows = scaled(rows)
    total = float(rows.square().sum(-1).mean())
    return float(rows.mean(0).square().sum()) / total if total else 0.0


def _spread(rows: Float[Tensor, "m d"]) -> float:
    """The root mean square distance of numbers from the means of their columns."""
    deviations = centred(rows)
    return float(scaled(deviations).square().mean().sqrt() * deviations.abs().max())


def _cosines(tokens: Float[Tensor, "b n d"]) -> Float[Tensor, "b n n"]:
    # Scaled first: a token so short that its squares vanish has a direction all the same.
    largest = tokens.abs().amax(-1, keepdim=True)
    unit = torch.nn.functional.normalize(tokens / torch.where(largest > 0, largest, 1.0), dim=-1)
    return unit @ unit.mT
