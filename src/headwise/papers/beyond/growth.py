"""The head dimension at which a curve reaches a share of the barrier, and how it grows with n."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator

from headwise.papers.beyond.random_heads import Point
from headwise.theory.numerics import crossing
from headwise.theory.scaling import quantile


@dataclass(frozen=True)
class Crossing:
    """The head dimension that reaches a share of the barrier: simulated, and by the law L."""

    tokens: int
    head_dim: float
    stderr: float
    by_law: float


@dataclass(frozen=True)
class Form:
    """A way for head dimensions to grow with n: a sum of terms with free constants."""

    name: str
    terms: tuple[Callable[[int], float], ...]


@dataclass(frozen=True)
class Fit:
    """A form with its constants, and what it leaves: (fit − measured) / measured."""

    form: Form
    constants: tuple[float, ...]
    residuals: tuple[float, ...]

    @property
    def rms(self) -> float:
        """The root mean square of the residuals."""
        return math.sqrt(sum(left**2 for left in self.residuals) / len(self.residuals))

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(map(abs, self.residuals))


#: The forms that are compared.
FITS = (
    Form("a ln n + b", (math.log, lambda _: 1.0)),
    Form("a (ln n)²", (lambda n: math.log(n) ** 2,)),
    Form("a (ln n)² + b", (lambda n: math.log(n) ** 2, lambda _: 1.0)),
    Form("a t⁴/4", (lambda n: quantile(n) ** 4 / 4,)),
)


def crossings(points: Mapping[int, Sequence[Point]], share: float) -> list[Crossing]:
    """Where the points of each length reach a share of the barrier, if they do."""
    found = (_crossing(own, share) for own in points.values())
    return [one for one in found if one is not None]


def _crossing(points: Sequence[Point], share: float) -> Crossing | None:
    goal = share * points[0].barrier
    measured = _reached([p.head_dim for p in points], [p.mean for p in points], goal)
    by_law = _reached([p.head_dim for p in points], [p.law for p in points], goal)
    if measured is None or by_law is None:
        return None
    head_dim, slope = measured
    near = min(points, key=lambda p: abs(math.log(p.head_dim / head_dim)))
    return Crossing(points[0].tokens, head_dim, near.stderr / slope, by_law[0])


def _reached(
    head_dims: Sequence[int], values: Sequence[float], goal: float
) -> tuple[float, float] | None:
    """Where a monotone curve through the points meets the goal, and its slope there."""
    if not min(values) <= goal <= max(values):
        return None
    curve = PchipInterpolator(np.log(head_dims), values)
    ends = math.log(head_dims[0]), math.log(head_dims[-1])
    log_dim = crossing(lambda x: float(curve(x)) - goal, *ends)
    head_dim = math.exp(log_dim)
    return head_dim, float(curve.derivative()(log_dim)) / head_dim


def fitted(form: Form, crossed: Sequence[Crossing]) -> Fit:
    """The constants that make the relative residuals smallest in square."""
    measured = np.array([one.head_dim for one in crossed])
    terms = np.array([[term(one.tokens) for term in form.terms] for one in crossed])
    relative = terms / measured[:, None]
    constants = np.linalg.lstsq(relative, np.ones(len(crossed)), rcond=None)[0]
    residuals = relative @ constants - 1
    return Fit(form, tuple(map(float, constants)), tuple(map(float, residuals)))
