"""The verdict: does rank at initialisation predict where accuracy saturates after training?

Everything is computed from recorded rows. A setting is one set with one family of geometries. With
the number of heads fixed the question is where accuracy stops improving; with the width fixed, at
which head dimension it is best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import torch

from headwise.advice.curves import curve_of_ratios, our_saturation
from headwise.advice.rule import SLACK
from headwise.papers.catalogue import chosen
from headwise.papers.critical import NEEDED_THRESHOLD, critical_of
from headwise.papers.exhibit import Answers, Scale
from headwise.papers.kinds.rank_rows import Coordinate, Pooled
from headwise.papers.kinds.real_ranks import READINGS, SET_NAMES
from headwise.papers.kinds.trained_rows import unstable
from headwise.papers.rank2026.accuracy_and_rank import Trained, trained_of
from headwise.papers.rank2026.accuracy_claims import CRITICAL
from headwise.papers.rank2026.recipes import HEADS, REVIEWS, WIDTHS, Family, Study
from headwise.papers.recorded import recorded, recorded_scales
from headwise.papers.saturation import MARGIN, Stop, best_head_dim, stops_improving
from headwise.runs import Row
from predictors import Predicted, Verdict, compare_predictors, doublings, judged

#: The exhibits whose rows hold every setting, and their studies.
STUDIES = {
    "rank2026/figure_3a": (REVIEWS,),
    "rank2026/table_3": tuple(Study(name, WIDTHS) for name in ("cifar10", "cifar100", "svhn")),
    "rank2026/figure_11": (Study("cifar10", HEADS),),
    "rank2026/figure_12": (Study("cifar100", HEADS),),
    "rank2026/figure_13": (Study("svhn", HEADS),),
}

#: The scales that count, the most faithful first.
SCALES = (Scale.PAPER, Scale.GPU)

PAPER_RULES = {start: f"the paper's rule, {words}" for start, words in READINGS.items()}
OUR_RULE = "our rule, the model's own initialisation"
#: Rules that measure nothing.
CONSTANT = "the median of the other settings"
PRINTED = "the published d_h, 16 on images and 8 on IMDB"


@dataclass(frozen=True)
class Choices:
    """Choices of ours that the verdict may depend on.

    Attributes:
        deviations: A gain of accuracy counts from so many standard deviations of one seed.
        points: And so much accuracy.
        threshold: A gain of rank / length that the paper's rule calls small.
        stable_only: Whether a setting with unstable training is undecided.
    """

    deviations: float = MARGIN
    points: float = 0.0
    threshold: float = NEEDED_THRESHOLD
    stable_only: bool = True


@dataclass(frozen=True)
class Setting:
    """One set with one family of geometries: what was found, and what rules said.

    Attributes:
        dataset: The set.
        name: The set and the family, in words.
        heads_fixed: Whether the heads, and not the width, are the same for all geometries.
        stop: Where accuracy stops improving, or is best.
        rules: The head dimension of each rule; infinity above the grid, None if it is silent.
        predictors: How well each predictor predicts accuracy; empty if the data are too few.
    """

    dataset: str
    name: str
    heads_fixed: bool
    stop: Stop
    rules: Mapping[str, float | None]
    predictors: Mapping[str, Predicted]

    def verdict(self, rule: str) -> Verdict:
        """Whether a rule's head dimension lies in the interval."""
        return judged(self.rules.get(rule), self.stop)

    def distance(self, rule: str) -> float | None:
        """How far a rule's head dimension is from the one found, in doublings."""
        return doublings(self.rules.get(rule), self.stop)


def paper_rule(
    points: Mapping[Coordinate, Pooled], threshold: float = NEEDED_THRESHOLD
) -> float | None:
    """The paper's critical head dimension: the last one before rank / length hardly grows."""
    if len(points) < 2:
        return None
    return float(critical_of(points, threshold) or math.inf)


def our_rule(rows: Sequence[Row]) -> float | None:
    """The head dimension that ``advise`` takes as saturated on these ranks of several seeds."""
    dims, seeds = (sorted({row[name] for row in rows}) for name in ("head_dim", "seed"))
    if len(dims) < 2 or len(seeds) < 2:
        return None
    found = {(row["seed"], row["head_dim"]): row["mean"] for row in rows}
    ratios = torch.tensor([[found[s, d] for d in dims] for s in seeds], dtype=torch.float64)
    curve = curve_of_ratios(ratios, tuple(dims), rows[0]["tokens"])
    return float(our_saturation(curve, SLACK) or math.inf)


def setting_of(found: Trained, family: Family, choices: Choices | None = None) -> Setting | None:
    """What a family's rows say; None if nothing of it is trained."""
    choices = choices or Choices()
    if not found.accuracies(family):
        return None
    ranks = {start: found.rank_points(family, start) for start in READINGS}
    rules = {
        PAPER_RULES[start]: paper_rule(points, choices.threshold) for start, points in ranks.items()
    }
    rules[OUR_RULE] = our_rule(found.rank_rows(family, "model"))
    # The paper states it for a fixed number of heads alone.
    rules[PRINTED] = None if family.heads is None else CRITICAL[found.study.dataset]
    return Setting(
        SET_NAMES[found.study.dataset],
        found.label(family),
        family.heads is not None,
        _stop(found, family, choices),
        rules,
        compare_predictors(found.accuracies(family), _predictors(found, family, ranks)),
    )


def _stop(found: Trained, family: Family, choices: Choices) -> Stop:
    """Where accuracy stops improving or is best; undecided if training is unstable."""
    accuracies = found.accuracies(family)
    if family.heads is None:
        stop = best_head_dim(accuracies)
    else:
        margin = {"deviations": choices.deviations, "points": choices.points}
        stop = stops_improving(accuracies, **margin)
    reason = unstable([row for own in found.by_dim(family).values() for row in own])
    if not (reason and choices.stable_only):
        return stop
    return Stop(None, stop.grid[0], stop.grid[-1], stop.grid, reason)


def _predictors(
    found: Trained, family: Family, ranks: Mapping[str, Mapping[Coordinate, Pooled]]
) -> dict[str, dict[int, float]]:
    """The value of each predictor at every trained head dimension; ranks if all are measured."""
    parameters = found.parameters(family)
    known: dict[str, dict[int, float]] = {
        f"rank, {READINGS[start]}": {dim: points[dim].mean for dim in parameters}
        for start, points in ranks.items()
        if parameters.keys() <= points.keys()
    }
    known["log₂ d_h"] = {dim: math.log2(dim) for dim in parameters}
    if len(set(parameters.values())) > 1:
        known["log₂ of the parameters"] = {d: math.log2(n) for d, n in parameters.items()}
    known["a constant"] = dict.fromkeys(parameters, 1.0)
    return known


def with_constant(settings: Sequence[Setting]) -> list[Setting]:
    """Add the simplest rule: the median of what was found in the other settings of its kind."""
    found = []
    for one in settings:
        others = [
            other.stop.head_dim
            for other in settings
            if other is not one
            and other.heads_fixed == one.heads_fixed
            and other.stop.head_dim is not None
        ]
        constant = float(median(others)) if others else None
        found.append(replace(one, rules={**one.rules, CONSTANT: constant}))
    return found


#: Sets and families of which something is recorded, and the names of the others.
Families = tuple[list[tuple[Trained, Family]], list[str]]


def recorded_families() -> Families:
    """Every family of which something is recorded, and the names of the others."""
    found: list[tuple[Trained, Family]] = []
    absent: list[str] = []
    for name, studies in STUDIES.items():
        (exhibit,) = chosen([name])
        scale = next((s for s in SCALES if s in recorded_scales(exhibit)), Scale.GPU)
        there = scale in recorded_scales(exhibit)
        answers = Answers(scale, tuple(recorded(exhibit, scale).values()) if there else ())
        for study in studies:
            trained = trained_of(study, answers)
            for family in study.families:
                if trained.accuracies(family):
                    found.append((trained, family))
                absent += _missing(trained, family)
    return found, absent


def _missing(trained: Trained, family: Family) -> list[str]:
    """The name of a family that is not trained, or what of it is not."""
    geometries = trained.rising(family)
    left = [str(g.qk_rank) for g in geometries if not trained.of(g)]
    if not left:
        return []
    some = "" if len(left) == len(geometries) else f": head dimension {', '.join(left)}"
    return [trained.label(family) + some]


def settings_of(
    families: Sequence[tuple[Trained, Family]], choices: Choices | None = None
) -> list[Setting]:
    """Judge families, the simplest rule included."""
    judged = [setting_of(found, family, choices) for found, family in families]
    return with_constant([one for one in judged if one is not None])
