"""Where accuracy stops improving, with an interval; whether a rule foretold it; what does better.

Seeds are few, so their spread is pooled over all head dimensions, and intervals come from a
parametric bootstrap: means are redrawn with the noise of their seeds, and the question is asked
again. What the data cannot tell is "undecided".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

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

#: A line through fewer points, one left out, fits anything.
FEWEST_POINTS = 4

_DRAWS = 4000
_ROUNDING = 1e-12

Verdict = Literal["agrees", "differs", "undecided"]


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


def stops_improving(accuracies: Accuracies, confidence: float = CONFIDENCE) -> Stop:
    """Find the head dimension where accuracy stops improving beyond the seeds' spread.

    It is the smallest one that all larger ones, on average, exceed by at most two standard
    deviations of one seed.

    Args:
        accuracies: The accuracy of every seed, for each head dimension.
        confidence: The share of redrawn answers that the interval holds.

    Returns:
        The head dimension and its interval. Undecided if the seeds are too few, if head dimensions
        differ no more than seeds do, or if the interval is the whole grid.

    Raises:
        BadInputError: There are no accuracies.

    Example:
        >>> seeds = {2: (0.70, 0.71), 4: (0.80, 0.81), 8: (0.90, 0.91), 16: (0.90, 0.91)}
        >>> str(stops_improving(seeds))
        '8 (8 to 8)'
        >>> str(stops_improving({2: (0.7,), 4: (0.8,), 8: (0.9,)}))
        'undecided: expected at least 2 seeds for each head dimension, got 1'
    """
    return _bootstrapped(accuracies, _first_enough, confidence)


def best_head_dim(accuracies: Accuracies, confidence: float = CONFIDENCE) -> Stop:
    """Find the head dimension with the best accuracy, for geometries of one width.

    Args:
        accuracies: The accuracy of every seed, for each head dimension.
        confidence: The share of redrawn answers that the interval holds.

    Returns:
        The head dimension and its interval; undecided as for ``stops_improving``.

    Raises:
        BadInputError: There are no accuracies.

    Example:
        >>> str(best_head_dim({12: (0.85, 0.86), 24: (0.90, 0.91), 48: (0.80, 0.81)}))
        '24 (24 to 24)'
    """
    return _bootstrapped(accuracies, lambda means, spread: int(np.argmax(means)), confidence)


def _first_enough(means: np.ndarray, spread: float) -> int:
    """The place of the first mean that larger ones exceed, on average, by the margin or less."""
    for place in range(len(means) - 1):
        if means[place + 1 :].mean() - means[place] <= MARGIN * spread:
            return place
    return len(means) - 1


def _bootstrapped(
    accuracies: Accuracies, place: Callable[[np.ndarray, float], int], confidence: float
) -> Stop:
    grid = tuple(sorted(accuracies))
    if not grid:
        raise BadInputError("expected accuracies, got none", hint="train something first")
    reason = _too_little(accuracies) or _alike(accuracies)
    if reason:
        return Stop(None, grid[0], grid[-1], grid, reason)
    spread = pooled_spread(accuracies)
    means = np.array([np.mean(accuracies[dim]) for dim in grid])
    drawn = sorted(
        place(*again) for again in _redrawn(means, [len(accuracies[d]) for d in grid], spread)
    )
    tail = (1 - confidence) / 2
    low, high = (grid[drawn[round(share * (_DRAWS - 1))]] for share in (tail, 1 - tail))
    if (low, high) == (grid[0], grid[-1]):
        return Stop(None, low, high, grid, f"the interval is the whole grid, {low} to {high}")
    found = grid[place(means, spread.deviation)]
    # A skew bootstrap may leave its own estimate outside; the interval must hold it.
    return Stop(found, min(low, found), max(high, found), grid)


def _too_little(accuracies: Accuracies) -> str:
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


def _redrawn(
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


def judged(rule: float | int | None, stop: Stop) -> Verdict:
    """Judge whether a rule's head dimension lies in the interval of the accuracy's.

    Args:
        rule: What the rule says; infinity if it lies above the grid, None if the rule is silent.
        stop: Where accuracy stops improving, or is best.

    Returns:
        ``"agrees"``, ``"differs"``, or ``"undecided"`` if either side cannot tell.

    Example:
        >>> judged(8, Stop(8, 4, 16, (2, 4, 8, 16, 32))), judged(2, Stop(8, 4, 16, (2, 4, 8, 16)))
        ('agrees', 'differs')
    """
    if rule is None or not stop.decided:
        return "undecided"
    # Above the grid means at least its end: accuracy that improves to the end agrees with it.
    return "agrees" if stop.low <= min(rule, stop.grid[-1]) <= stop.high else "differs"


def doublings(rule: float | int | None, stop: Stop) -> float | None:
    """Return the distance from accuracy's head dimension to a rule's, in doublings.

    Args:
        rule: What the rule says.
        stop: Where accuracy stops improving, or is best.

    Returns:
        Above 0 if the rule asks for more; None if either side cannot tell.

    Example:
        >>> doublings(2, Stop(8, 4, 16, (2, 4, 8, 16)))
        -2.0
    """
    if rule is None or stop.head_dim is None or math.isinf(rule):
        return None
    return math.log2(rule / stop.head_dim)


@dataclass(frozen=True)
class Predicted:
    """How well a predictor tells the accuracy of a head dimension left out.

    Attributes:
        error: The root mean square error, in accuracy.
        best: The share of redrawn accuracies for which it is the best of all.
    """

    error: float
    best: float


def compare_predictors(
    accuracies: Accuracies, predictors: Mapping[str, Mapping[int, float | int]]
) -> dict[str, Predicted]:
    """Compare predictors of accuracy: a line in each, one head dimension left out at a time.

    Args:
        accuracies: The accuracy of every seed, for each head dimension.
        predictors: The value of each predictor at every head dimension. One that never changes
            predicts the mean of the others.

    Returns:
        The error of each predictor, and how often it is the best when accuracies are redrawn;
        nothing if the seeds or the head dimensions are too few.

    Example:
        >>> seeds = {2: (0.2, 0.21), 4: (0.4, 0.41), 8: (0.8, 0.81), 16: (1.6, 1.61)}
        >>> known = {"d_h": {d: d for d in seeds}, "none": dict.fromkeys(seeds, 1)}
        >>> found = compare_predictors(seeds, known)
        >>> max(found, key=lambda name: found[name].best)
        'd_h'
    """
    grid = sorted(accuracies)
    if len(grid) < FEWEST_POINTS or _too_little(accuracies):
        return {}
    values = {name: np.array([own[dim] for dim in grid], float) for name, own in predictors.items()}
    means = np.array([np.mean(accuracies[dim]) for dim in grid])
    seeds = [len(accuracies[dim]) for dim in grid]
    drawn = np.array([again for again, _ in _redrawn(means, seeds, pooled_spread(accuracies))])
    errors = np.array([_left_out_error(x, drawn) for x in values.values()])
    winners = errors.argmin(0)
    return {
        name: Predicted(float(_left_out_error(x, means[None])[0]), float((winners == i).mean()))
        for i, (name, x) in enumerate(values.items())
    }


def _left_out_error(x: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """The root mean square error of a line in x, each point left out once, for many y at once."""
    squares = np.zeros(len(ys))
    for place in range(len(x)):
        rest = np.arange(len(x)) != place
        centred = x[rest] - x[rest].mean()
        scale = float(centred @ centred)
        slopes = ys[:, rest] @ centred / scale if scale > 0 else np.zeros(len(ys))
        told = ys[:, rest].mean(1) + slopes * (x[place] - x[rest].mean())
        squares += (told - ys[:, place]) ** 2
    return np.sqrt(squares / len(x))
