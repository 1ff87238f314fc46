"""Statistics of tokens: effective dimension, mean, repeats, outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from headwise.advice.tokens.token_set import TokenSet
from headwise.report.results import short_repr
from headwise.shapes import Bool, Float, Int

#: Statistics use at most this many tokens.
MOST_TOKENS = 20_000

#: Outliers that hold more than this share of the variance are left out.
MUCH_VARIANCE = 0.25

#: An outlier lies more than this many times as far from the median as half of all tokens do.
#: Of single Gaussian numbers 0.07 % do, with 1 % of the variance; of vectors of four hardly any.
FAR = 5.0

#: If more than this share of the tokens lie that far out, they are not outliers.
FEW = 0.01


@dataclass(frozen=True)
class TokenStatistics:
    """Statistics of the tokens, before and after they are embedded.

    Attributes:
        sequences: Number of sequences given.
        length: Tokens per sequence.
        width: Width of the model.
        effective_dimension: exp of the entropy of the normalised eigenvalues of the covariance.
        mean_share: Share of the mean square that the common mean holds.
        cosine_spread: Root mean square cosine between two tokens of a sequence; 0 if orthonormal.
        orthonormality: The rank paper's ‖C − I‖_F / n².
        learned: Whether the tokens are ids, whose embedding is learned.
        numbers: Numbers per token, for vectors.
        whole: Whether these are one sequence of vectors in which all numbers are whole, as a table
            of token ids that is stored as floats is read.
        distinct: Number of different tokens.
        repeated: Share of the most frequent token.
        returning: Share of tokens that occurred before in their sequence.
        returning_by_chance: The same for tokens drawn at random from all sequences.
        spread: Root mean square distance of the embedded numbers from their means.
        outliers: Number of vectors far from all others.
        outlier_share: Share of the variance that they hold.
        dimension_with_outliers: The effective dimension with outliers, where they are left out.
        mean_share_with_outliers: The share of the mean with outliers, where they are left out.
    """

    sequences: int
    length: int
    width: int
    effective_dimension: float
    mean_share: float
    cosine_spread: float
    orthonormality: float
    learned: bool
    numbers: int | None = None
    whole: bool = False
    distinct: int | None = None
    repeated: float = 0.0
    returning: float = 0.0
    returning_by_chance: float = 0.0
    spread: float | None = None
    outliers: int = 0
    outlier_share: float = 0.0
    dimension_with_outliers: float | None = None
    mean_share_with_outliers: float | None = None

    __repr__ = short_repr

    @property
    def looked_at(self) -> int:
        """Number of tokens that these statistics use."""
        return used_sequences(self.sequences, self.length) * self.length


def used_sequences(sequences: int, length: int) -> int:
    """How many of the sequences the statistics use."""
    return min(sequences, max(1, MOST_TOKENS // length))


def token_statistics(tokens: TokenSet, seed: int) -> TokenStatistics:
    """Return a description of tokens, in one random embedding if they need one.

    Vectors keep their own dimension; ids only have that of their embedding.
    """
    few = tokens.chosen(torch.arange(used_sequences(tokens.sequences, tokens.length)))
    embedded = few.embedded(seed)
    rows = embedded.flatten(0, 1)
    own = rows if tokens.learned else few.values.double().flatten(0, 1)
    off = _cosines(embedded[:64]) - torch.eye(tokens.length, dtype=torch.float64)
    squares = off.square().sum((-2, -1))
    same = Repeats.among(few)
    found = TokenStatistics(
        sequences=tokens.sequences,
        length=tokens.length,
        width=tokens.width,
        effective_dimension=effective_dimension(own),
        mean_share=_mean_share(rows),
        cosine_spread=math.sqrt(float(squares.mean()) / (tokens.length * (tokens.length - 1))),
        orthonormality=float(squares.sqrt().mean()) / tokens.length**2,
        learned=tokens.learned,
        numbers=None if tokens.learned else tokens.values.shape[-1],
        whole=not tokens.learned and _look_like_ids(tokens.values),
        distinct=same.distinct,
        repeated=same.repeated,
        returning=same.returning,
        returning_by_chance=same.by_chance,
        spread=_spread(rows),
    )
    # The rows of a random embedding table have no outliers.
    return found if tokens.learned else _without_outliers(found, own, rows)


def effective_dimension(rows: Float[Tensor, "m c"]) -> float:
    """exp of the entropy of the eigenvalues of the covariance of the rows."""
    deviations = _scaled(_centred(rows))
    # The smaller of both products has all eigenvalues that are not zero.
    wide = rows.shape[1] > rows.shape[0]
    product = deviations @ deviations.mT if wide else deviations.mT @ deviations
    eigenvalues = torch.linalg.eigvalsh(product).clamp(min=0)
    shares = eigenvalues / eigenvalues.sum().clamp(min=1e-300)
    return float(torch.special.entr(shares).sum().exp())


@dataclass(frozen=True)
class Repeats:
    """How many different tokens there are, and how often they repeat.

    >>> from headwise.advice.tokens.token_set import token_set
    >>> Repeats.among(token_set(torch.tensor([[1, 2, 1, 2], [3, 4, 3, 4]]), 8))
    Repeats(distinct=4, repeated=0.25, returning=0.5, by_chance=0.31640625)
    """

    distinct: int
    repeated: float
    returning: float
    by_chance: float

    @classmethod
    def among(cls, tokens: TokenSet) -> Repeats:
        """Count repeats of ids or of vectors."""
        ids, counts = _numbered(tokens)
        shares = counts.double() / ids.numel()
        # Of n tokens drawn at random, one of share p is missing with probability (1 - p)^n.
        met = float((1 - (1 - shares) ** tokens.length).sum())
        # In a sorted sequence a token that occurred before equals its neighbour.
        returning = float((ids.sort(-1).values.diff(dim=-1) == 0).sum()) / ids.numel()
        by_chance = max(0.0, 1 - met / tokens.length)
        return cls(len(counts), float(shares.max()), returning, by_chance)


def far_rows(rows: Float[Tensor, "m c"]) -> Bool[Tensor, " m"]:
    """Return which rows lie far from all others; none if many do."""
    distances = torch.linalg.vector_norm(_scaled(_from_median(rows)), dim=-1)
    far = distances > FAR * distances.median()
    return far & (far.sum() <= FEW * len(rows))


def share_of_variance(rows: Float[Tensor, "m c"], chosen: Bool[Tensor, " m"]) -> float:
    """Return the share of the summed square distance from the mean that the chosen rows hold."""
    same_scale = _scaled(_from_median(rows))
    rest = float(_centred(same_scale[~chosen]).square().sum())
    return 1 - rest / float(_centred(same_scale).square().sum())


def _without_outliers(
    found: TokenStatistics, own: Float[Tensor, "m c"], embedded: Float[Tensor, "m d"]
) -> TokenStatistics:
    """Leave out outliers if they hold much of the variance.

    A layer norm turns such a token into one like any other, so it says nothing about heads.

    Returns:
        The statistics, with and without outliers.
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


def _numbered(tokens: TokenSet) -> tuple[Int[Tensor, "b n"], Int[Tensor, " k"]]:
    """Each token as the number of its kind, and how many there are of each kind."""
    rows = tokens.values if tokens.learned else tokens.values.flatten(0, 1)
    dim = None if tokens.learned else 0
    _, ids, counts = torch.unique(rows, dim=dim, return_inverse=True, return_counts=True)
    return ids.reshape(tokens.sequences, tokens.length), counts


def _look_like_ids(vectors: Float[Tensor, "b n c"]) -> bool:
    """Whether one sequence has whole numbers from 0 on; zeros and ones alone are features."""
    if len(vectors) > 1 or float(vectors.min()) < 0 or float(vectors.max()) <= 1:
        return False
    return bool((vectors == vectors.round()).all())


def _mean_share(rows: Float[Tensor, "m c"]) -> float:
    rows = _scaled(rows)
    total = float(rows.square().sum(-1).mean())
    return float(rows.mean(0).square().sum()) / total if total else 0.0


def _spread(rows: Float[Tensor, "m d"]) -> float:
    deviations = _centred(rows)
    return float(_scaled(deviations).square().mean().sqrt() * deviations.abs().max())


def _cosines(tokens: Float[Tensor, "b n d"]) -> Float[Tensor, "b n n"]:
    # Scaled first: a token whose squares would underflow still has a direction.
    largest = tokens.abs().amax(-1, keepdim=True)
    unit = torch.nn.functional.normalize(tokens / torch.where(largest > 0, largest, 1.0), dim=-1)
    return unit @ unit.mT


def _from_median(rows: Float[Tensor, "m c"]) -> Float[Tensor, "m c"]:
    """Differences to the median of each column, which one far row does not move."""
    return rows - rows.median(0).values


def _centred(rows: Float[Tensor, "m c"]) -> Float[Tensor, "m c"]:
    """Return differences to the mean of each column.

    Medians go first: the mean of a large constant is rounded, which would look like variance.
    """
    shifted = _from_median(rows)
    return shifted - shifted.mean(0)


def _scaled(rows: Float[Tensor, "m c"]) -> Float[Tensor, "m c"]:
    """Rows whose largest number is 1, so that squares neither overflow nor vanish."""
    largest = rows.abs().max()
    return rows / torch.where(largest > 0, largest, 1.0)
