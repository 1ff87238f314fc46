"""Predict where learning curves end, and how likely each candidate is to be best there.

Candidates share seeds, data order and test data, so their differences are far less noisy than
their scores. The prediction therefore follows differences: each candidate's distance from the
mean of the finalists (those with the longest curves) moves as a random walk in log steps. The
walk's speed is read off the curves themselves, so the uncertainty grows with the distance that
is still to go, and short runs are not taken at face value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headwise.errors import BadInputError, ParameterError

#: Draws from which the probability of being best is counted.
DRAWS = 20_000

#: Three numbers make the probabilities hold on recorded curves, each task judged by the others
#: (``benchmarks.advice.trial_calibration``). First, a factor on the standard error of the walk:
#: curves of most families ask for none.
WALK_TEMPER = 1.0

#: Second, how much likelier than others the advised candidate is to be best before any training.
#: With its family left out the advice foretold the best no better than chance.
ADVISED_PRIOR = 1.0

#: Third, the share of probability that is spread equally until someone has trained to the end:
#: curves of geometries cross later than any walk predicts. Shares from 0.1 to 0.3 do equally well.
SURPRISE = 0.2

#: The last increments of each curve, from which the speed of the walk is read.
RECENT = 4


@dataclass(frozen=True)
class Prediction:
    """The score of one candidate at the full length of training.

    Attributes:
        score: Expected score; lower is better.
        error: Standard error of ``score``, as far as candidates are compared with each other.
        probability: Probability that this candidate is the best of all.
    """

    score: float
    error: float
    probability: float


def predict(
    curves: Mapping[str, np.ndarray],
    steps: Sequence[int],
    full: int,
    prior: Mapping[str, float] | None = None,
) -> dict[str, Prediction]:
    """Predict every candidate's score after ``full`` steps.

    Args:
        curves: For each candidate its scores, shape (steps, seeds), lower is better. A candidate
            that was stopped early has fewer rows, and not all of them none. It may also have
            fewer seeds, which are then the first ones.
        steps: The steps of the rows of the longest curve, ascending.
        full: The length of training to predict.
        prior: How much likelier than the others a candidate is to be best before any training;
            1 for those that are not named.

    Returns:
        A prediction for each candidate; the probabilities sum to one.

    Raises:
        BadInputError: If no candidate has a finite score, or there is one seed only.

    Example:
        >>> curves = {
        ...     "good": np.array([[1.0, 1.1], [0.5, 0.6]]),
        ...     "bad": np.array([[1.2, 1.3], [0.9, 1.0]]),
        ... }
        >>> predict(curves, (10, 20), full=20)["good"].probability > 0.99
        True
    """
    filled = _finite(curves)
    refuse_one_seed(max(curve.shape[1] for curve in filled.values()))
    return predicted(filled, steps, full, prior)


def predicted(
    curves: Mapping[str, np.ndarray],
    steps: Sequence[int],
    full: int,
    prior: Mapping[str, float] | None = None,
) -> dict[str, Prediction]:
    """Predict as ``predict`` does, also from one seed: the first stage of a race has no more."""
    filled = _finite(curves)
    longest = max(map(len, filled.values()))
    finalists = [name for name, curve in filled.items() if len(curve) == longest]
    common = _common([filled[name] for name in finalists])
    apart = {name: _distance(curve, common) for name, curve in filled.items()}
    walked, runs = _walked(apart, finalists, steps, full), _run_noise(apart, finalists)
    names = list(filled)
    means = np.array([apart[name][-1].mean() for name in names])
    noise = np.array([runs.variance / apart[name].shape[1] for name in names])
    left = np.array([walked[len(apart[name]) - 1] for name in names])
    walk = WALK_TEMPER**2 * left
    errors = np.sqrt(noise + walk)
    level = _extrapolated(common.mean(axis=1), steps[:longest], full)
    weights = np.array([1.0 if prior is None else prior.get(name, 1.0) for name in names])
    shares = _best_shares(means, noise, walk, runs.freedom) * weights
    shares /= shares.sum()
    if steps[longest - 1] < full:
        shares = (1 - SURPRISE) * shares + SURPRISE / len(shares)
    return {
        name: Prediction(level + float(means[k]), float(errors[k]), float(shares[k]))
        for k, name in enumerate(names)
    }


def most_stated(count: int) -> float:
    """The largest probability that is stated before the end of the training.

    Returns:
        What one candidate of ``count`` has if no other wins in any draw.

    Example:
        >>> most_stated(2)
        0.9
    """
    return 1 - SURPRISE + SURPRISE / count


def refuse_one_seed(count: int) -> None:
    """Refuse a single seed, which cannot tell a better geometry from a lucky start."""
    if count < 2:
        raise ParameterError(
            f"expected at least 2 different seeds, got {count}",
            hint="pass two or more: one seed cannot tell a difference from noise",
        )


def _finite(curves: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Replace scores that are not finite by the worst that anyone had: a run that diverged."""
    known = [curve[np.isfinite(curve)] for curve in curves.values()]
    if not any(len(scores) for scores in known):
        raise BadInputError(
            f"expected a finite score from at least one of {len(curves)} candidates, got none",
            hint="lower the learning rate, or check the data for NaN",
        )
    worst = max(float(scores.max()) for scores in known if len(scores))
    return {name: np.where(np.isfinite(c), c, worst) for name, c in curves.items()}


def _walked(
    apart: Mapping[str, np.ndarray], finalists: Sequence[str], steps: Sequence[int], full: int
) -> np.ndarray:
    """How far a distance walks, as a variance, from each look to the full length."""
    # Up to the last look this is what those who went on did walk; after it, the recent speed times
    # what is left in log steps.
    longest = max(map(len, apart.values()))
    logs = np.log(np.asarray(steps[:longest], dtype=float))
    # Distances of the few finalists are from their own mean, which hides a part of the walk.
    hidden = len(finalists) / max(1, len(finalists) - 1)
    squares: list[list[float]] = [[] for _ in range(longest - 1)]
    for name, curve in apart.items():
        factor = hidden if name in finalists else 1.0
        for look, change in enumerate(np.diff(curve.mean(axis=1))):
            squares[look].append(factor * float(change) ** 2)
    seen = np.array([np.mean(own) for own in squares])
    recent = slice(max(0, longest - 1 - RECENT), None)
    speed = float(np.mean(seen[recent] / np.diff(logs)[recent])) if longest > 1 else 0.0
    after = np.append(np.cumsum(seen[::-1])[::-1], 0.0)
    return after + speed * math.log(full / steps[longest - 1])


def _common(finalists: Sequence[np.ndarray]) -> np.ndarray:
    """The mean curve of the finalists, for each seed that all of them have."""
    seeds = min(curve.shape[1] for curve in finalists)
    return np.mean([curve[:, :seeds] for curve in finalists], axis=0)


def _distance(curve: np.ndarray, common: np.ndarray) -> np.ndarray:
    """The distance from the finalists' mean in the seeds that both have."""
    seeds = min(curve.shape[1], common.shape[1])
    return curve[:, :seeds] - common[: len(curve), :seeds]


@dataclass(frozen=True)
class _RunNoise:
    """The variance of the score of a single run, and the degrees of freedom of its estimate."""

    variance: float
    freedom: float


def _run_noise(apart: Mapping[str, np.ndarray], finalists: Sequence[str]) -> _RunNoise:
    """Estimate the noise of a run from how distances differ between seeds, over all candidates."""
    between = {name: curve[-1:] for name, curve in apart.items() if curve.shape[1] > 1}
    if between:
        return _pooled({n: last - last.mean() for n, last in between.items()}, finalists, spent=1)
    # With one seed the noise shows in how curves jump from look to look. On recorded curves half
    # of the squared jump is within a factor of about two of what seeds say.
    jumps = {
        name: np.diff(curve[-RECENT - 1 :], axis=0) / math.sqrt(2)
        for name, curve in apart.items()
        if len(curve) > 1
    }
    if jumps:
        return _pooled(jumps, finalists)
    # One look at one seed: all that tells candidates apart may be noise.
    return _pooled({name: curve[-1:] for name, curve in apart.items()}, finalists)


def _pooled(
    deviations: Mapping[str, np.ndarray], finalists: Sequence[str], spent: int = 0
) -> _RunNoise:
    """Pool squared deviations of distances, of which each candidate has ``spent`` on its mean."""
    squares = {name: float(np.square(own).sum()) for name, own in deviations.items()}
    told = {name: own.size - spent for name, own in deviations.items()}
    others = [name for name in deviations if name not in finalists]
    # A finalist's distance from their mean lacks a share of its noise: k of them are k - 1 runs.
    # For the others the mean adds that share.
    share = 1 / len(finalists)
    energy = sum(squares[name] for name in deviations if name in finalists)
    energy += sum(squares[name] for name in others) / (1 + share)
    freedom = (1 - share) * sum(told[name] for name in deviations if name in finalists)
    freedom += sum(told[name] for name in others)
    return _RunNoise(energy / freedom if freedom else 0.0, max(1.0, freedom))


def _extrapolated(scores: np.ndarray, steps: Sequence[int], full: int) -> float:
    """Continue the finalists' mean curve as a + b·steps^-c, with a limit not above its end."""
    if steps[-1] >= full or len(steps) < 3:
        return float(scores[-1])
    recent = np.asarray(steps[-2 * RECENT :], dtype=float)
    found = []
    for power in np.linspace(0.1, 1.0, 10):
        basis = np.stack([np.ones_like(recent), (recent / recent[-1]) ** -power], axis=1)
        (limit, fall), *_ = np.linalg.lstsq(basis, scores[-len(recent) :], rcond=None)
        left = float(np.square(basis @ [limit, fall] - scores[-len(recent) :]).sum())
        found.append((left, limit + max(fall, 0.0) * (full / recent[-1]) ** -power))
    best = min(found)[1]
    return float(np.clip(best, min(0.0, float(scores.min())), scores[-1]))


def _best_shares(
    means: np.ndarray, noise: np.ndarray, walk: np.ndarray, freedom: float
) -> np.ndarray:
    """How often each candidate is lowest; ties without any spread are shared."""
    if not (noise + walk).any():
        lowest = means == means.min()
        return lowest / lowest.sum()
    # The variance of the noise is estimated from few seeds. Each draw has its own, so differences
    # follow Student's t.
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((DRAWS, len(means)))
    scale = freedom / rng.chisquare(freedom, (DRAWS, 1))
    winners = (means + np.sqrt(noise * scale + walk) * drawn).argmin(axis=1)
    return np.bincount(winners, minlength=len(means)) / DRAWS
