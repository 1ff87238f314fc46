"""What the rank paper says about accuracy and rank on real data, judged from rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from scipy import special

from headwise.papers.critical import NEEDED_THRESHOLD
from headwise.papers.exhibit import Claim, Scale
from headwise.papers.kinds.rank_rows import Place, Pooled
from headwise.papers.kinds.real_ranks import READINGS, SET_NAMES
from headwise.papers.kinds.trained_rows import over_seeds
from headwise.papers.rank2026.accuracy_and_rank import Trained
from headwise.papers.rank2026.recipes import Family
from headwise.papers.saturation import Accuracies, pooled_spread, stops_improving

#: The critical head dimension that the paper prints for each set, heads fixed.
PRINTED_CRITICAL = {"imdb": 8, "cifar10": 16, "cifar100": 16, "svhn": 16}

#: Our goals at scale gpu: test accuracy with this width and number of heads.
GOALS = {("cifar10", 192, 8): 0.85, ("imdb", 128, 8): 0.84}

#: A gain of the rank over length that is small, by the printed choices of Table 1.
SMALL_GAIN = NEEDED_THRESHOLD

#: One chance in twenty that noise alone shows a difference.
CHANCE = 0.05


def width_claims(found: Trained) -> list[Claim]:
    """Widths fixed: more heads do better, and every head is saturated in rank."""
    claims = []
    for family in found.study.families:
        of_heads = {g.qk_rank: g.heads for g in family.geometries(found.scale)}
        accuracies = found.accuracies(family)
        by_heads = {of_heads[dim]: own for dim, own in accuracies.items()}
        if {1, 8} <= by_heads.keys():
            claims.append(
                Claim(
                    f"{_named(found, family)}: 8 heads do better than 1, beyond the seeds' spread.",
                    beyond_spread(by_heads, low=1, high=8),
                    "§4.2, Table 3",
                )
            )
        claims += _saturated_widths(found, family)
    return [*claims, *_goal_claims(found)]


def _saturated_widths(found: Trained, family: Family) -> list[Claim]:
    """That rank is saturated from the head dimension of 8 heads on, in each reading."""
    claims = []
    for start, words in READINGS.items():
        points = found.rank_points(family, start)
        from_dim = family.width // 8
        if from_dim in points and max(points) > from_dim:
            claims.append(
                Claim(
                    f"{_named(found, family)}, {words}: rank is saturated for 8 heads and fewer; "
                    f"from d_h = {from_dim} on no row gains more than {SMALL_GAIN}.",
                    _saturated_from(points, from_dim),
                    f"§4.2, Figure 4b; {SMALL_GAIN} is what Table 1 needs",
                )
            )
    return claims


def heads_claims(found: Trained) -> list[Claim]:
    """Heads fixed: accuracy and rank both stop improving at the printed head dimension."""
    claims = []
    for family in found.study.families:
        critical = PRINTED_CRITICAL[found.study.dataset]
        accuracies = found.accuracies(family)
        if len(accuracies) == len(family.geometries(found.scale)):
            claims.append(_plateau_claim(found, family, accuracies, critical))
        for start, words in READINGS.items():
            points = found.rank_points(family, start)
            if critical in points and max(points) > critical:
                claims.append(
                    Claim(
                        f"{_named(found, family)}, {words}: rank is saturated from d_h = "
                        f"{critical} on; no row after it gains more than {SMALL_GAIN}.",
                        _saturated_from(points, critical),
                        f"§4.1, §C.3; {SMALL_GAIN} is what Table 1 needs",
                    )
                )
    return [*claims, *_goal_claims(found)]


def _plateau_claim(found: Trained, family: Family, accuracies: Accuracies, critical: int) -> Claim:
    stop = stops_improving(accuracies)
    return Claim(
        f"{_named(found, family)}: accuracy stops improving at d_h = {critical}, "
        f"beyond the seeds' spread (found: {stop}).",
        stop.decided and stop.low <= critical <= stop.high,
        "§4.1, §C.3; the interval is ours",
    )


def _goal_claims(found: Trained) -> list[Claim]:
    """Ours: the recipe is good enough to be worth a comparison."""
    if found.scale not in (Scale.GPU, Scale.PAPER):
        return []
    return [
        Claim(
            f"{_named(found, family)}: the best with {heads} heads reaches {goal:.0%} test "
            f"accuracy (found: {best:.1%}).",
            best >= goal,
        )
        for family in found.study.families
        for (dataset, width, heads), goal in GOALS.items()
        if (dataset, width) == (found.study.dataset, family.width)
        and (best := _best_mean(found, family, heads)) is not None
    ]


def _best_mean(found: Trained, family: Family, heads: int) -> float | None:
    means = [
        one.mean
        for g in family.geometries(found.scale)
        if g.heads == heads and (one := over_seeds(found.of(g), "test_accuracy"))
    ]
    return max(means, default=None)


def beyond_spread(accuracies: Accuracies, *, low: int, high: int) -> bool:
    """Whether one mean is above another by a one-sided t test with the pooled spread of seeds.

    >>> seeds = {1: (0.80, 0.81), 8: (0.90, 0.91)}
    >>> beyond_spread(seeds, low=1, high=8), beyond_spread(seeds, low=8, high=1)
    (True, False)
    """
    spread = pooled_spread(accuracies)
    if spread.freedom == 0:
        return False
    difference = float(np.mean(accuracies[high]) - np.mean(accuracies[low]))
    shares = 1 / len(accuracies[low]) + 1 / len(accuracies[high])
    limit = float(special.stdtrit(spread.freedom, 1 - CHANCE))
    return difference > limit * spread.deviation * math.sqrt(shares)


def _saturated_from(points: Mapping[Place, Pooled], from_dim: int) -> bool:
    means = [point.mean for place, point in points.items() if place >= from_dim]
    return all(after - before <= SMALL_GAIN for before, after in pairwise(means))


def _named(found: Trained, family: Family) -> str:
    return f"{SET_NAMES[found.study.dataset]}, {family.label(found.scale)}"
