"""What the advice rests on: curves, and statistics of the tokens where there are any."""

from __future__ import annotations

from dataclasses import dataclass

from headwise.advice.curves import RankCurve
from headwise.theory.under_mask import MaskName

#: Tokens of a longer sequence that are looked at.
MOST_LENGTH = 512


@dataclass(frozen=True)
class TokenStatistics:
    """Numbers about the tokens, before and after they are embedded.

    ``effective_dimension`` is exp of the entropy of the normalised eigenvalues of their
    covariance; ``mean_share`` how much of their mean square the common mean holds;
    ``cosine_spread`` the root mean square of the cosine between two tokens of a sequence, 0 for
    orthonormal ones; ``orthonormality`` the rank paper's ‖C − I‖_F / n². ``numbers`` is how many
    numbers a token has, where it is a vector; ``distinct`` how many different tokens were looked
    at, and ``repeated`` the share of the most frequent of them.
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
