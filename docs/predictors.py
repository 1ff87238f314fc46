"""Whether a rule predicts where accuracy stops improving, and which predictor does better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from headwise.papers.saturation import Accuracies, Stop, pooled_spread, redrawn, too_little

#: A line through fewer points, one left out, fits anything.
FEWEST_POINTS = 4

#: "Open": the rule lies above the grid, and accuracy may improve beyond it as well.
Verdict = Literal["agrees", "differs", "open", "undecided"]


def judged(rule: float | int | None, stop: Stop) -> Verdict:
    """Judge whether a rule's head dimension lies in the interval of the accuracy's.

    ``rule`` is infinity if it lies above the grid, and None if the rule is silent.
    """
    if rule is None or not stop.decided:
        return "undecided"
    if math.isinf(rule):
        return "open" if stop.high == stop.grid[-1] else "differs"
    return "agrees" if stop.low <= rule <= stop.high else "differs"


def doublings(rule: float | int | None, stop: Stop) -> float | None:
    """Return how far a rule is above accuracy's head dimension, in doublings; None if unknown."""
    if rule is None or stop.head_dim is None or math.isinf(rule):
        return None
    return math.log2(rule / stop.head_dim)


@dataclass(frozen=True)
class Predicted:
    """How well a predictor predicts the accuracy of a head dimension left out.

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

    A predictor that never changes predicts the mean of the others. Nothing is compared if the
    seeds or the head dimensions are too few.
    """
    grid = sorted(accuracies)
    if len(grid) < FEWEST_POINTS or too_little(accuracies):
        return {}
    values = {name: np.array([own[dim] for dim in grid], float) for name, own in predictors.items()}
    means = np.array([np.mean(accuracies[dim]) for dim in grid])
    seeds = [len(accuracies[dim]) for dim in grid]
    drawn = np.array([again for again, _ in redrawn(means, seeds, pooled_spread(accuracies))])
    errors = np.array([_left_out_error(x, drawn) for x in values.values()])
    winners = errors.argmin(0)
    return {
        name: Predicted(float(_left_out_error(x, means[None])[0]), float((winners == i).mean()))
        for i, (name, x) in enumerate(values.items())
    }


def _left_out_error(x: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """The root mean square error of a line in x, each point left out once, for many y at once."""
    squares = np.zeros(len(ys))
    for i in range(len(x)):
        rest = np.arange(len(x)) != i
        centred = x[rest] - x[rest].mean()
        scale = float(centred @ centred)
        slopes = ys[:, rest] @ centred / scale if scale > 0 else np.zeros(len(ys))
        told = ys[:, rest].mean(1) + slopes * (x[i] - x[rest].mean())
        squares += (told - ys[:, i]) ** 2
    return np.sqrt(squares / len(x))
