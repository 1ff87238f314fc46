"""What the advice rests on: rank curves, and statistics of the tokens if there are any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from headwise.advice.curves.band import FIRST
from headwise.advice.curves.curve import RankCurve, law_curve
from headwise.advice.curves.measured import Sampling, measured_curve
from headwise.advice.tokens.source import MOST_LENGTH, Reading, read_tokens
from headwise.advice.tokens.statistics import TokenStatistics, token_statistics
from headwise.advice.tokens.token_set import TokenSet
from headwise.masks import MaskName, checked_mask
from headwise.progress import tracked

#: Root mean square cosines below this are those of nearly orthonormal tokens: the law applies.
NEARLY_ORTHONORMAL = 0.15


@dataclass(frozen=True)
class Evidence:
    """Rank curves at a length and width, and statistics of the tokens.

    Attributes:
        source: Name of the data; None where there are none.
        length: Tokens per sequence that were looked at.
        width: Width of the model.
        curves: Measured curves, or that of the law.
        statistics: Statistics of the tokens; None without data.
        seed: Seed of all random draws.
        mask: Mask of attention.
        vocabulary: Number of token ids, where it is known.
        full_length: Tokens that the model takes, where that is not ``length``.
        assumed_length: Whether the length is a default, since a config gives none.
        images: Whether the tokens are patches of images.
    """

    source: str | None
    length: int
    width: int
    curves: tuple[RankCurve, ...]
    statistics: TokenStatistics | None
    seed: int = 0
    mask: MaskName = "none"
    vocabulary: int | None = None
    full_length: int | None = None
    assumed_length: bool = False
    images: bool = False

    @property
    def context(self) -> int:
        """Tokens that the model takes; FLOPs are computed at this length."""
        return self.full_length or self.length

    @property
    def effective_dimension(self) -> float:
        """That of the tokens within the width; without data, the width."""
        own = self.width if self.statistics is None else self.statistics.effective_dimension
        return float(min(own, self.width))

    @property
    def directions(self) -> int:
        """In how many directions tokens can differ: the width, or fewer for narrow vectors."""
        numbers = None if self.statistics is None else self.statistics.numbers
        return self.width if numbers is None else min(self.width, numbers)

    @property
    def learned(self) -> bool:
        """Whether the tokens have no dimension of their own: ids, or no tokens at all."""
        return self.statistics is None or self.statistics.learned

    @property
    def curve(self) -> RankCurve:
        """The curve that the rule reads: default initialisation if measured, else the first."""
        return next((curve for curve in self.curves if curve.start == "model"), self.curves[0])


def law_evidence(length: int, width: int, mask: MaskName = "none") -> Evidence:
    """Evidence from a length and a width alone: the finite law.

    >>> law_evidence(128, 64).curves[0].start
    'law'
    """
    curve = law_curve(length, width, checked_mask(mask))
    return Evidence(None, length, width, (curve,), None, mask=mask)


def measured_evidence(source: Any, reading: Reading, sampling: Sampling) -> Evidence:
    """Measure tokens: their statistics, and rank curves with two initialisations.

    >>> import torch
    >>> found = measured_evidence(torch.eye(8), Reading(), Sampling())
    >>> [curve.start for curve in found.curves]
    ['model', 'paper', 'law']
    """
    tokens = read_tokens(source, reading)
    short = replace(tokens, values=tokens.values[:, :MOST_LENGTH])
    statistics = token_statistics(short, sampling.seed)
    curves = _measured(short, sampling)
    if statistics.cosine_spread < NEARLY_ORTHONORMAL:
        curves += (law_curve(short.length, short.width, sampling.mask),)
    return Evidence(
        source=tokens.name,
        length=short.length,
        width=tokens.width,
        curves=curves,
        statistics=statistics,
        seed=sampling.seed,
        mask=sampling.mask,
        vocabulary=tokens.declared,
        full_length=tokens.length,
        images=tokens.images,
    )


def _measured(tokens: TokenSet, sampling: Sampling) -> tuple[RankCurve, ...]:
    """Curves with both initialisations. With a causal mask, also the model's without it.

    A triangular matrix with a positive diagonal has full rank whatever the head can do, so
    saturation is read without the mask.
    """
    wanted = [("model", sampling.mask), ("paper", sampling.mask)]
    if sampling.mask != "none":
        wanted.insert(0, ("model", "none"))
    with tracked(sampling.progress, "measuring ranks", len(wanted) * 2 * FIRST):
        return tuple(
            measured_curve(tokens, start, replace(sampling, mask=mask))  # type: ignore[arg-type]
            for start, mask in wanted
        )
