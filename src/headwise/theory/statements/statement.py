"""Statement: a bound to evaluate, a simulation that obeys it, a violator that does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import Estimate

#: Standard errors by which a simulated mean may overstep a bound before it counts as broken.
ALLOWANCE = 4.0

# Rounding that exact comparisons (an equality, a zero) are allowed.
_ROUNDING = 1e-9


class Sense(Enum):
    """On which side of the bound the observed value must lie."""

    AT_MOST = "≤"
    AT_LEAST = "≥"


@dataclass(frozen=True)
class Evidence:
    """What a simulation saw, and the arguments at which the bound is to be evaluated."""

    observed: Estimate
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Verdict:
    """Whether the evidence obeys the bound, and how close it came: 1 is at the bound."""

    accepted: bool
    observed: Estimate
    bound: float

    @property
    def closeness(self) -> float:
        """Smaller over larger of the two; 1 when they are equal."""
        low, high = sorted((abs(self.observed.mean), abs(self.bound)))
        return 1.0 if high == 0 else low / high


@dataclass(frozen=True)
class Statement:
    """One theorem, lemma or remark, in a form that can fail."""

    label: str
    printed: str
    words: str
    bound: Callable[..., float]
    sense: Sense
    simulate: Callable[[int], Evidence]
    violate: Callable[[int], Evidence]

    def check(self, evidence: Evidence) -> Verdict:
        """Accept evidence that lies on the right side of the bound, within its error bar."""
        seen, bound = evidence.observed, float(self.bound(*evidence.arguments))
        slack = ALLOWANCE * seen.stderr + _ROUNDING
        excess = seen.mean - bound if self.sense is Sense.AT_MOST else bound - seen.mean
        return Verdict(excess <= slack, seen, bound)


def exactly(value: int | float) -> Estimate:
    """An observation without noise.

    >>> exactly(2.0).stderr
    0.0
    """
    return Estimate(float(value), 0.0, 1)


def nothing() -> float:
    """The bound of statements that allow no change at all.

    >>> nothing()
    0.0
    """
    return 0.0


def gaussian(seed: int, name: str, *shape: int) -> Tensor:
    """Independent N(0, 1) entries of a stream of their own.

    >>> gaussian(0, "keys", 2, 3).shape
    torch.Size([2, 3])
    """
    return torch.randn(*shape, generator=stream(seed, name), dtype=torch.float64)
