"""Statement: a hypothesis, a conclusion, a simulation of both, and a violator of both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory.number_types import Real

#: Standard errors by which a simulated mean may miss a bound before it counts as broken.
ALLOWANCE = 4.0

# Rounding that exact comparisons (an equality, a zero) are allowed.
_ROUNDING = 1e-9


class Sense(Enum):
    """On which side of the bound the observed value must lie."""

    AT_MOST = "≤"
    AT_LEAST = "≥"
    EQUAL = "="


class Source(StrEnum):
    """Who states it."""

    RANK_PAPER = "rank paper"
    HEADS_PAPER = "heads paper"
    OURS = "ours"


@dataclass(frozen=True)
class Check:
    """One comparison: an observed value, the side it must lie on, and the bound."""

    name: str
    observed: Estimate
    sense: Sense
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the observed value lies on the right side, within its error bar."""
        excess = self.observed.mean - self.bound
        if self.sense is Sense.AT_LEAST:
            excess = -excess
        elif self.sense is Sense.EQUAL:
            excess = abs(excess)
        return excess <= ALLOWANCE * self.observed.stderr + _ROUNDING


@dataclass(frozen=True)
class Evidence:
    """What a simulation measured: checks of the hypothesis and checks of the conclusion."""

    hypothesis: tuple[Check, ...]
    conclusion: tuple[Check, ...]

    @property
    def meets_hypothesis(self) -> bool:
        """Whether every check of the hypothesis holds."""
        return all(check.holds for check in self.hypothesis)

    @property
    def meets_conclusion(self) -> bool:
        """Whether every check of the conclusion holds."""
        return all(check.holds for check in self.conclusion)

    @property
    def headline(self) -> Check:
        """The check of the conclusion that decides: the first broken one, or the first."""
        broken = [check for check in self.conclusion if not check.holds]
        return (broken or list(self.conclusion))[0]


@dataclass(frozen=True)
class Statement:
    """One theorem, lemma or remark, in a form that can fail.

    Attributes:
        label: Its name.
        source: Who states it.
        where: Section of the paper, or of our pages.
        hypothesis: What it assumes, in words.
        conclusion: What it concludes, in words.
        evidence: Draws objects with a seed, and measures hypothesis and conclusion on them.
        meets: Arguments of ``evidence`` with which both must hold.
        breaks: Arguments with which both must fail: the conclusion needs the hypothesis.
        finding: Where the published form errs, or how far it reaches.
        proof: Why it is true, in Markdown, where no paper has the proof.
        bound_only: Whether the violator breaks only the bound that implies the conclusion, so that
            the conclusion itself may still hold.
    """

    label: str
    source: Source
    where: str
    hypothesis: str
    conclusion: str
    evidence: Callable[..., Evidence]
    meets: Mapping[str, Any]
    breaks: Mapping[str, Any]
    finding: str = ""
    proof: str = ""
    bound_only: bool = False

    def simulate(self, seed: int) -> Evidence:
        """Measure objects that satisfy the hypothesis."""
        return self.evidence(seed, **self.meets)

    def violate(self, seed: int) -> Evidence:
        """Measure objects that break it."""
        return self.evidence(seed, **self.breaks)

    @property
    def slug(self) -> str:
        """The label as a name: the test of this statement is ``test_`` and this."""
        return re.sub(r"[^a-z0-9]+", "_", self.label.lower()).strip("_")


def at_most(name: str, observed: Real | Estimate, bound: Real) -> Check:
    """The check that a value does not exceed a bound."""
    return Check(name, _estimate(observed), Sense.AT_MOST, float(bound))


def at_least(name: str, observed: Real | Estimate, bound: Real) -> Check:
    """The check that a value reaches a bound."""
    return Check(name, _estimate(observed), Sense.AT_LEAST, float(bound))


def equal(name: str, observed: Real | Estimate, bound: Real) -> Check:
    """The check that a value is another, on both sides."""
    return Check(name, _estimate(observed), Sense.EQUAL, float(bound))


def _estimate(value: Real | Estimate) -> Estimate:
    return value if isinstance(value, Estimate) else Estimate(float(value), 0.0, 1)


def gaussian(seed: int, name: str, *shape: int) -> Tensor:
    """Independent N(0, 1) entries of their own stream."""
    return torch.randn(*shape, generator=stream(seed, name), dtype=torch.float64)


def gaussian_weights(
    seed: int, draws: int, width: int, head_dim: int, tied: bool = False
) -> tuple[Tensor, Tensor]:
    """N(0, 1) query and key weights, one pair per draw: independent, or the same twice."""
    shape = (draws, width, head_dim)
    query = gaussian(seed, "query weights", *shape)
    return query, query if tied else gaussian(seed, "key weights", *shape)


def unlinked(one: Tensor, two: Tensor, name: str = "W_q and W_k") -> Check:
    """The check that two arrays of N(0, 1) entries are not correlated entry by entry."""
    size = float((one * two).mean().abs()) * one.numel() ** 0.5
    return at_most(f"correlation of {name}, standard errors", size, 5.0)


def off_identity(matrix: Tensor) -> float:
    """The largest entry of a square matrix less the identity, in absolute value."""
    return float((matrix - torch.eye(len(matrix), dtype=matrix.dtype)).abs().max())


def largest_rank(matrices: Tensor) -> int:
    """The largest rank of a batch of matrices."""
    return int(torch.linalg.matrix_rank(matrices).max())


def distinct(choices: Tensor) -> Estimate:
    """The mean number of distinct columns that the rows of each matrix choose."""
    used = [len(torch.unique(row)) for row in choices]
    return Estimate.of(torch.tensor(used, dtype=torch.float64))


def columns_used(inputs: Tensor, query: Tensor, key: Tensor) -> Estimate:
    """The mean rank of hardmax(XW_q W_kᵀXᵀ)."""
    return distinct((inputs @ query @ (inputs @ key).mT).argmax(-1))
