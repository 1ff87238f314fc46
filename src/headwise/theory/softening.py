"""The ε-rank of a softmax head: hardmax, plus what the runners-up add.

A weight of the softmax at temperature T is at least ε times the largest in its row when its
score lies within g = T·ln(1/ε) of the top. Keep those entries only. Their values are generic, so
the rank is the size of the largest matching between rows and columns; and for a wide head the
rows choose columns almost independently, so the graph is locally a tree and the matching has a
closed form. With m the number of kept entries in a row, ψ(x) = E[x^m], μ = E[m], and p(ρ) how
often a key of norm ρ is picked, χ(x) = E_ρ (1 − p(1−x))^(nμ) describes a column, and

    rank/n = min over 0 ≤ t ≤ 1 of  2 − ψ(1 − b) − χ(1 − t) − μ t b,   b = χ'(1−t)/χ'(1).

At T → 0 only the top is left, ψ(x) = x, and the minimum, at t = 1, is the law L(n, d_h).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from headwise.checks import fraction, positive, whole
from headwise.theory.law_formula import ACCURATE_FROM
from headwise.theory.number_types import Real, Whole
from headwise.theory.numerics import rule_between
from headwise.theory.picking import KeyNorms, key_norms, score_at

# Nodes of the top score, of the query's norm and of the message t.
_SCORES, _QUERY_NORMS, _MESSAGES = 120, 32, 801


@dataclass(frozen=True)
class SoftmaxPrediction:
    """ε-rank/n of a random softmax head, and where the prediction is reliable.

    ``kept`` is the mean number of weights per row that are at least ε times the largest.
    ``valid`` says whether this size lies in the range described by ``range``, and ``error``
    how far simulation was from the prediction, at most, inside or outside it.
    """

    length: int
    head_dim: int
    temperature: float
    epsilon: float
    ratio: float
    hardmax_ratio: float
    kept: float
    error: float
    valid: bool
    range: str


#: Up to this many kept weights per row the prediction is near simulation.
KEPT_LIMIT = 2.0

#: The largest distance from simulation seen inside the range of validity, and outside it.
ERROR_INSIDE, ERROR_OUTSIDE = 0.025, 0.08


def softmax_ratio(
    length: Whole, head_dim: Whole, temperature: Real, epsilon: Real = 1e-8
) -> SoftmaxPrediction:
    """The share of singular values ≥ ε of softmax(q·kᵀ/T), q and k independent N(0, I).

    Inputs of another scale are a change of temperature: scores divided by T are all that
    counts. With N(0, 1) inputs and weights of width d, pass T = √d_h / d.

    >>> cold = softmax_ratio(1024, 64, temperature=1e-9)
    >>> round(cold.ratio, 4), cold.valid
    (0.5213, True)
    """
    n, d = whole("`length`", length, 2), whole("`head_dim`", head_dim)
    heat = positive("`temperature`", temperature)
    reach = heat * math.log(1 / fraction("`epsilon`", epsilon, example=1e-8))
    rule = key_norms(np.array([float(n)]), np.array([float(d)]))
    rows = _RowEntries.of(n, d, reach)
    ratio, hard = _matching(n, rows, rule), _matching(n, _RowEntries.of(n, d, 0.0), rule)
    valid = d >= ACCURATE_FROM and rows.mean <= KEPT_LIMIT
    words = f"checked for head dimension ≥ {ACCURATE_FROM} and at most {KEPT_LIMIT} kept per row"
    error = ERROR_INSIDE if valid else ERROR_OUTSIDE
    return SoftmaxPrediction(
        n, d, heat, float(epsilon), ratio, hard, rows.mean, error, valid, words
    )


@dataclass(frozen=True, eq=False)
class _RowEntries:
    """How many entries a row keeps: 1 + Binomial(n−1, near), ``near`` random with ``weight``."""

    others: int
    near: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, n: int, d: int, reach: float) -> _RowEntries:
        """Given the top score s and the query's norm, each other score lies within reach/norm."""
        low = float(score_at(60.0, n))
        high = float(score_at(1e-12, n))
        top, top_weight = rule_between(low, high, _SCORES)
        top_density = n * np.exp((n - 1) * special.log_ndtr(top) - top**2 / 2)
        norm, norm_weight = _query_norms(d)
        gap = reach / norm[:, None]
        share = special.ndtr(top - gap) / special.ndtr(top)
        # 1 − Φ(s−g)/Φ(s) from tails, so that a tiny gap is not rounded away.
        near = np.where(
            share > 0.5,
            (special.ndtr(gap - top) - special.ndtr(-top)) / special.ndtr(top),
            1 - share,
        )
        weight = norm_weight[:, None] * top_weight * top_density / math.sqrt(2 * math.pi)
        return cls(n - 1, near, weight / weight.sum())

    @property
    def mean(self) -> float:
        """μ, the mean number of kept entries."""
        return 1 + self.others * float((self.weight * self.near).sum())

    def generating(self, x: np.ndarray) -> np.ndarray:
        """ψ(x) = E[x^m]."""
        with np.errstate(divide="ignore"):
            missed = self.others * np.log1p(-np.multiply.outer(1 - x, self.near))
        return x * (np.exp(missed) * self.weight).sum((1, 2))


def _query_norms(d: int) -> tuple[np.ndarray, np.ndarray]:
    """The norm of a query: χ with d degrees of freedom, by equal parts of probability."""
    middle = (np.arange(_QUERY_NORMS) + 0.5) / _QUERY_NORMS
    norm = np.sqrt(special.chdtri(d, 1 - middle))
    return norm, np.full(_QUERY_NORMS, 1 / _QUERY_NORMS)


def _matching(n: int, rows: _RowEntries, rule: KeyNorms) -> float:
    """The largest matching over n: the least value of the functional over all messages t."""
    odds, weight = rule.odds[0], rule.weight[0]
    message, mean = np.linspace(0, 1, _MESSAGES), rows.mean
    log_missed = np.log1p(-np.minimum(np.multiply.outer(message, odds), 1 - 1e-16))
    # Norms outside the rule's window are never picked: they weigh 1 in χ and 0 in χ'.
    column = 1 - (weight * -np.expm1(n * mean * log_missed)).sum(1)
    back = (weight * n * odds * np.exp((n * mean - 1) * log_missed)).sum(1)
    value = 2 - rows.generating(1 - back.clip(0, 1)) - column - mean * message * back
    return float(value.min())
