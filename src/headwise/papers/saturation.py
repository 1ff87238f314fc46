"""Where accuracy stops improving, with an interval.

Seeds are few, so their spread is pooled over all head dimensions, and intervals come from a
parametric bootstrap: means are redrawn with the noise of their seeds, and the question is asked
again. What the data cannot tell is "undecided".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from headwise.errors import BadInputError
from headwise.randomness import stream_seed

#: The accuracy of every seed, for each head dimension.
Accuracies = Mapping[int, Sequence[float]]

#: How sure an interval, or a best predictor, must be.
CONFIDENCE = 0.9

#: A gain counts if it exceeds this many standard deviations of one seed: a pair of runs shows it.
MARGIN = 2.0

#: The fewest seeds of a head dimension, and the fewest head dimensions, that decide anything.
FEWEST_SEEDS, FEWEST_DIMS = 2, 3

_DRAWS = 4000
_ROUNDING = 1e-12


class Spread(NamedTuple):
    """The standard deviation of one seed, pooled over head dimensions, and its freedom."""

    deviation: float
    freedom: int


@dataclass(frozen=True)
class Stop:
    """A head dimension read off accuracies, with its interval on the grid that was trained.

    Attributes:
        head_dim: The estimate; None if the data cannot tell.
        low: The lower end of the interval.
        high: The upper end of the interval.
        grid: The head dimensions that were trained.
        reason: Why it is undecided; empty if it is not.
    """

    head_dim: int | None
    low: int
    high: int
    grid: tuple[int, ...]
    reason: str = ""

    @property
    def decided(self) -> bool:
        """Whether the data can tell."""
        return self.head_dim is not None

    def __str__(self) -> str:
        if self.head_dim is None:
            return f"undecided: {self.reason}"
        return f"{self.head_dim} ({self.low} to {self.high})"


def pooled_spread(accuracies: Accuracies) -> Spread:
    """Return the spread of one seed about the mean of its head dimension."""
    freedom = sum(len(own) - 1 for own in accuracies.values())
    squares = sum(float(np.var(own)) * len(own) for own in accuracies.values() if len(own))
    return Spread(math.sqrt(squares / freedom) if freedom > 0 else 0.0, freedom)


def stops_improving(
    accuracies: Accuracies,
    confidence: float = CONFIDENCE,
    *,
    deviations: float = MARGIN,
    points: float = 0.0,
) -> Stop:
    """Find the head dimension where accuracy stops improving beyond the seeds' spread.

    It is the smallest one that all larger ones, on average, exceed by at most ``deviations``
    standard deviations of one seed and ``points`` of accuracy. Undecided if the seeds are too few,
    if head dimensions differ no more than seeds do, or if the interval, which holds ``confidence``
    of the answers, is the whole grid.

    >>> seeds = {2: (0.70, 0.71), 4: (0.80, 0.81), 8: (0.90, 0.91), 16: (0.90, 0.91)}
    >>> str(stops_improving(seeds))
    '8 (8 to 8)'
    >>> str(stops_improving({2: (0.7,), 4: (0.8,), 8: (0.9,)}))
    'undecided: expected at least 2 seeds for each head dimension, got 1'
    """

    def index(means: np.ndarray, spread: float) -> int:
        return _first_enough(means, deviations * spread + points)

    return _bootstrapped(accuracies, index, confidence)


def best_head_dim(accuracies: Accuracies, confidence: float = CONFIDENCE) -> Stop:
    """Find the head dimension with the best accuracy; undecided as for ``stops_improving``.

    >>> str(best_head_dim({12: (0.85, 0.86), 24: (0.90, 0.91), 48: (0.80, 0.81)}))
    '24 (24 to 24)'
    """
    return _bootstrapped(accuracies, lambda means, spread: int(np.argmax(means)), confidence)


def _first_enough(means: np.ndarray, margin: float) -> int:
    """The index of the first mean that larger ones exceed, on average, by the margin or less."""
    for i in range(len(means) - 1):
        if means[i + 1 :].mean() - means[i] <= margin:
            return i
    return len(means) - 1


def _bootstrapped(
    accuracies: Accuracies, index: Callable[[np.ndarray, float], int], confidence: float
) -> Stop:
    grid = tuple(sorted(accuracies))
    if not grid:
        raise BadInputError("expected accuracies, got none", hint="train something first")
    reason = too_little(accuracies) or _alike(accuracies)
    if reason:
        return Stop(None, grid[0], grid[-1], grid, reason)
    spread = pooled_spread(accuracies)
    means = np.array([np.mean(accuracies[dim]) for dim in grid])
    drawn = sorted(
        index(*again) for again in redrawn(means, [len(accuracies[d]) for d in grid], spread)
    )
    tail = (1 - confidence) / 2
    low, high = (grid[drawn[round(share * (_DRAWS - 1))]] for share in (tail, 1 - tail))
    if (low, high) == (grid[0], grid[-1]):
        return Stop(None, low, high, grid, f"the interval is the whole grid, {low} to {high}")
    found = grid[index(means, spread.deviation)]
    # A skew bootstrap may leave its own estimate outside; the interval must hold it.
    return Stop(found, min(low, found), max(high, found), grid)


def too_little(accuracies: Accuracies) -> str:
    """Say why there are too few seeds or head dimensions; empty if there are enough."""
    fewest = min(map(len, accuracies.values()))
    if fewest < FEWEST_SEEDS:
        return f"expected at least {FEWEST_SEEDS} seeds for each head dimension, got {fewest}"
    if len(accuracies) < FEWEST_DIMS:
        return f"expected at least {FEWEST_DIMS} head dimensions, got {len(accuracies)}"
    return ""


def _alike(accuracies: Accuracies) -> str:
    """Refuse to tell if head dimensions differ no more than seeds do: the F test of their means."""
    spread = pooled_spread(accuracies)
    means = np.array([np.mean(own) for own in accuracies.values()])
    seeds = np.array([len(own) for own in accuracies.values()])
    grand = float(seeds @ means) / seeds.sum()
    between = float(seeds @ (means - grand) ** 2) / (len(means) - 1)
    # Rounding in the mean of equal numbers is no difference.
    if between <= (_ROUNDING * abs(grand)) ** 2:
        chance = 1.0
    elif spread.deviation == 0:
        chance = 0.0
    else:
        ratio = between / spread.deviation**2
        chance = float(special.fdtrc(len(means) - 1, spread.freedom, ratio))
    if chance <= (1 - CONFIDENCE) / 2:
        return ""
    return f"head dimensions differ no more than seeds do (p = {chance:.2g})"


def redrawn(
    means: np.ndarray, seeds: Sequence[int], spread: Spread
) -> list[tuple[np.ndarray, float]]:
    """Means with the noise of their seeds again, each with a spread that the data allow."""
    generator = np.random.default_rng(stream_seed(0, "accuracy", len(means)))
    scale = np.sqrt(spread.freedom / generator.chisquare(spread.freedom, _DRAWS))
    deviations = spread.deviation * scale
    noise = generator.standard_normal((_DRAWS, len(means))) / np.sqrt(seeds)
    return [
        (means + deviation * own, float(deviation))
        for deviation, own in zip(deviations, noise, strict=True)
    ]
