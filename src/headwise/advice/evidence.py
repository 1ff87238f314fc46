"""What the advice rests on: curves, and statistics of the tokens where there are any."""

from __future__ import annotations

from dataclasses import dataclass

from headwise.advice.curves import RankCurve
from headwise.masks import MaskName

#: Tokens of a longer sequence that are looked at.
MOST_LENGTH = 512

#: Tokens beyond this number add nothing to the statistics.
MOST_TOKENS = 20_000

#: Outliers that hold more than this share of the variance decide what the statistics are.
MUCH_VARIANCE = 0.25

#: Spread of learned positions at the start, as ``headwise.attention.LearnedAdditive`` draws.
POSITION_SPREAD = 0.02


def few_sequences(sequences: int, length: int) -> int:
    """How many of the sequences statistics are taken of.

    >>> few_sequences(100, 16), few_sequences(10_000, 16)
    (100, 1250)
    """
    return min(sequences, max(1, MOST_TOKENS // length))


@dataclass(frozen=True)
class TokenStatistics:
    """Numbers about the tokens, before and after they are embedded.

    ``effective_dimension`` is exp of the entropy of the normalised eigenvalues of their
    covariance; ``mean_share`` how much of their mean square the common mean holds;
    ``cosine_spread`` the root mean square of the cosine between two tokens of a sequence, 0 for
    orthonormal ones; ``orthonormality`` the rank paper's ‖C − I‖_F / n². ``numbers`` is how many
    numbers a token has, where it is a vector; ``distinct`` how many different tokens were looked
    at, and ``repeated`` the share of the most frequent of them. ``returning`` is the share of
    tokens that occurred before in their sequence, ``returning_by_chance`` what it would be of
    tokens drawn at random from all of them; ``spread`` the root mean square distance of the
    numbers of embedded tokens from their means. ``outliers`` is how many vectors lie far from all
    others, ``outlier_share`` how much of the variance goes with them. Where that is much they
    count in neither the effective dimension nor the share of the mean: the last two are with them.
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
    distinct: int | None = None
    repeated: float = 0.0
    returning: float = 0.0
    returning_by_chance: float = 0.0
    spread: float | None = None
    outliers: int = 0
    outlier_share: float = 0.0
    dimension_with_outliers: float | None = None
    mean_share_with_outliers: float | None = None

    @property
    def looked_at(self) -> int:
        """How many tokens these numbers are of."""
        return few_sequences(self.sequences, self.length) * self.length


@dataclass(frozen=True)
class Evidence:
    """The rank curves at a length and width, and what is known of the tokens.

    ``vocabulary`` is how many ids there are, where that was told; ``full_length`` how many tokens
    a model takes, where that is not the length that was looked at.
    """

    words: str
    length: int
    width: int
    curves: tuple[RankCurve, ...]
    statistics: TokenStatistics | None
    seed: int
    mask: MaskName = "none"
    vocabulary: int | None = None
    full_length: int | None = None

    @property
    def context(self) -> int:
        """How many tokens a model takes: FLOPs are those at this length."""
        return self.full_length or self.length

    @property
    def effective_dimension(self) -> float:
        """That of the tokens in the width; isotropic ones, where nothing is known, fill it."""
        own = self.width if self.statistics is None else self.statistics.effective_dimension
        return float(min(own, self.width))

    @property
    def directions(self) -> int:
        """How many directions tokens can differ in: the width's, or those of a narrower vector."""
        numbers = None if self.statistics is None else self.statistics.numbers
        return self.width if numbers is None else min(self.width, numbers)

    @property
    def learned(self) -> bool:
        """Whether the tokens have no dimension of their own: ids, or none at all."""
        return self.statistics is None or self.statistics.learned
