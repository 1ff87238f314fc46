"""What the rank paper says about accuracy and rank on real data, judged from rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from scipy import special

from headwise.papers.critical import NEEDED_THRESHOLD
from headwise.papers.exhibit import Claim, Scale
from headwise.papers.kinds.rank_rows import Coordinate, Pooled
from headwise.papers.kinds.real_ranks import READINGS
from headwise.papers.kinds.trained_rows import over_seeds
from headwise.papers.rank2026.accuracy_and_rank import Trained
from headwise.papers.rank2026.recipes import Family
from headwise.papers.saturation import Accuracies, pooled_spread, stops_improving

#: The head dimension at which accuracy and rank should stop improving, heads fixed.
CRITICAL = {"imdb": 8, "cifar10": 16, "cifar100": 16, "svhn": 16}

#: Where the paper has it, by set and number of heads. For other images it has curves alone.
CRITICAL_AT: dict[tuple[str, int | None], str] = {
    ("imdb", 8): "§4.1, Figures 3a and 3b; width 128 and 8 heads are ours",
    ("cifar10", 8): "§C.3, Figure 10; width 192 is ours",
}

#: Where the paper says that ranks are saturated with the width fixed, by set and width.
SATURATED_AT = {("cifar10", 384): "§4.2, Figure 4b"}

#: Our goals at scale gpu: test accuracy with this width and number of heads.
GOALS = {("cifar10", 192, 8): 0.85, ("imdb", 128, 8): 0.84}

#: A gain of the rank over length that is small, by the published choices of Table 1.
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
                    f"{found.label(family)}: 8 heads do better than 1, beyond the seeds' spread.",
                    beyond_spread(by_heads, low=1, high=8),
                    f"{_more_heads_at(found, family)}; the seeds' spread chosen by us",
                )
            )
        printed = SATURATED_AT.get((found.study.dataset, family.width))
        words = "rank is saturated for 8 heads and fewer; from d_h = {} on no row"
        claims += _saturated_claims(found, family, family.width // 8, words, printed)
    return [*claims, *_goal_claims(found)]


def _more_heads_at(found: Trained, family: Family) -> str:
    """Where the paper says that more heads do better: the main text has one set and width."""
    main_text = (found.study.dataset, family.width) in SATURATED_AT
    return "§4.2, Figure 4a, Table 3" if main_text else "§C.2, Table 3"


def _saturated_claims(
    found: Trained, family: Family, from_dim: int, words: str, printed: str | None
) -> list[Claim]:
    """That rank is saturated from a head dimension on, in each reading."""
    points = {start: found.rank_points(family, start) for start in READINGS}
    return [
        Claim(
            f"{found.label(family)}, {READINGS[start]}: {words.format(from_dim)} gains more than "
            f"{SMALL_GAIN}.",
            _saturated_from(own, from_dim),
            _source(printed, f"{SMALL_GAIN} is what Table 1 needs"),
        )
        for start, own in points.items()
        if from_dim in own and max(own) > from_dim
    ]


def heads_claims(found: Trained) -> list[Claim]:
    """Heads fixed: accuracy and rank both stop improving at the published head dimension."""
    claims = []
    for family in found.study.families:
        critical = CRITICAL[found.study.dataset]
        printed = CRITICAL_AT.get((found.study.dataset, family.heads))
        accuracies = found.accuracies(family)
        if len(accuracies) == len(family.geometries(found.scale)):
            stop = stops_improving(accuracies)
            claims.append(
                Claim(
                    f"{found.label(family)}: accuracy stops improving at d_h = {critical}, "
                    f"beyond the seeds' spread (found: {stop}).",
                    stop.decided and stop.low <= critical <= stop.high,
                    _source(printed, "the interval is ours"),
                )
            )
        words = "rank is saturated from d_h = {} on; no row after it"
        claims += _saturated_claims(found, family, critical, words, printed)
    return [*claims, *_goal_claims(found)]


def _source(printed: str | None, ours: str) -> str:
    """Return the source of a claim: empty, which means ours, if the paper does not make it."""
    return f"{printed}; {ours}" if printed else ""


def _goal_claims(found: Trained) -> list[Claim]:
    """Ours: the recipe is good enough to be worth a comparison."""
    if found.scale not in (Scale.GPU, Scale.PAPER):
        return []
    return [
        Claim(
            f"{found.label(family)}: the best with {heads} heads reaches {goal:.0%} test "
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


def _saturated_from(points: Mapping[Coordinate, Pooled], from_dim: int) -> bool:
    means = [point.mean for dim, point in points.items() if dim >= from_dim]
    return all(after - before <= SMALL_GAIN for before, after in pairwise(means))
