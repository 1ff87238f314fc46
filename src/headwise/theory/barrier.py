"""The rank paper's statements as functions: each bound can be evaluated, and so attacked.

The wording is ours, in the form that can be computed; ``theorems`` is the index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import special
from torch import Tensor

from headwise.errors import BadInputError
from headwise.shapes import Float
from headwise.theory.picking import score_at
from headwise.theory.quadrature import rule_between
from headwise.theory.roots import crossing
from headwise.theory.sizes import Real, Whole, fraction, positive, whole


def softmax_to_hardmax(length: Whole, gap: Real, temperature: Real) -> float:
    """Lemma 1: how far, in the 1-norm, a softmax row can be from its hardmax.

    2(n−1)e^(−gap/T), gap being the distance from the largest score to the next.

    >>> softmax_to_hardmax(11, gap=1.0, temperature=0.1) < 1e-3
    True
    """
    n, heat = whole("the length", length), positive("the temperature", temperature)
    return min(2.0, 2 * (n - 1) * math.exp(-float(gap) / heat))


def gap_below(length: Whole, gap: Real) -> float:
    """The chance that the two largest of n independent N(0, 1) scores lie within ``gap``.

    1 − n ∫ φ(s) Φ(s − gap)^(n−1) ds.

    >>> round(gap_below(2, 0.0), 9), round(gap_below(2, 1.0), 6)
    (0.0, 0.5205)
    """
    n = whole("the length", length, 2)
    reach = float(gap)
    low = float(score_at(45.0, n - 1.0)) + reach
    s, weight = rule_between(low, max(low, 0.0) + 10.0, 400)
    log_apart = (n - 1) * special.log_ndtr(s - reach) - s**2 / 2
    apart = n * float((weight * np.exp(log_apart)).sum()) / math.sqrt(2 * math.pi)
    return max(0.0, 1 - apart)


def smallest_gap(length: Whole, doubt: Real = 0.05) -> float:
    """Lemma 2, δ_n: with probability 1 − ``doubt`` the gap of every one of n rows exceeds this.

    The union bound over rows: n · P(gap ≤ δ_n) = doubt.

    >>> 0 < smallest_gap(100) < smallest_gap(10)
    True
    """
    n, share = whole("the length", length, 2), fraction("the doubt", doubt)
    return crossing(lambda gap: gap_below(n, gap) - share / n, 0.0, 20.0)


def hardmax_temperature(length: Whole, error: Real, doubt: Real = 0.05) -> float:
    """Lemmas 1 and 2 together: the temperature at which every row is within ``error`` of hardmax.

    >>> heat = hardmax_temperature(50, 1e-3)
    >>> softmax_to_hardmax(50, smallest_gap(50), heat) <= 1.001e-3
    True
    """
    n, goal = whole("the length", length, 2), positive("the error", error)
    return smallest_gap(n, doubt) / math.log(2 * (n - 1) / min(goal, 1.0))


def empty_columns(length: Whole) -> float:
    """Lemma 3: n rows that choose alike and independently leave at least n(1−1/n)^n columns empty.

    Equality when every column is equally likely.

    >>> empty_columns(2)
    0.5
    """
    n = whole("the length", length)
    return 0.0 if n == 1 else n * math.exp(n * math.log1p(-1 / n))


def rank_barrier(length: Whole) -> float:
    """Theorems 1 and 2: E rank ≤ (1 − 1/e)n + 2e⁻²(1 + 1/(n−1))², with the finite-n constant.

    >>> round(rank_barrier(100), 2)
    63.49
    """
    n = whole("the length", length, 2)
    return -math.expm1(-1) * n + 2 * math.exp(-2) * (1 + 1 / (n - 1)) ** 2


def independence_limit(columns: Whole, doubt: Real = 1e-6) -> float:
    """Lemma 4: the chi-square that two independent rows' choices exceed with chance ``doubt``.

    >>> independence_limit(2) > 20
    True
    """
    c = whole("the number of columns", columns, 2)
    return float(special.chdtri((c - 1) ** 2, fraction("the doubt", doubt)))


def nearest_orthonormal(matrix: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Lemma 5: the matrix with orthonormal rows that is nearest in Frobenius norm (n ≤ d).

    >>> nearest_orthonormal(2 * torch.eye(3).double())
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]], dtype=torch.float64)
    """
    rows, columns = matrix.shape
    if rows > columns:
        raise BadInputError(
            f"{rows} rows in {columns} dimensions cannot be orthonormal",
            hint="pass at most as many rows as columns",
        )
    left, _, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    return left @ right


def orthonormal_distance(length: Whole, coherence: Real) -> float:
    """Lemma 5: if no entry of XXᵀ − I exceeds ``coherence``, X is this near to orthonormal.

    The printed estimate, coherence · n^(3/2); coherence · n holds as well, since
    |σ − 1| ≤ |σ² − 1| and ‖XXᵀ − I‖_F ≤ coherence · n.

    >>> orthonormal_distance(100, 0.001)
    1.0
    """
    return float(coherence) * whole("the length", length) ** 1.5


def coherence_probability(length: Whole, head_dim: Whole, coherence: Real) -> float:
    """Lemma 6: the chance that projected orthonormal inputs have coherence above this.

    With k = x·W, W Gaussian: P(max |k_iᵀk_j/d_h − δ_ij| > ε) ≤ 2n² e^(−d_h(ε²/2 − ε³/3)/2).

    >>> coherence_probability(100, 10_000, 0.1) < 1e-3
    True
    """
    n, d = whole("the length", length), whole("the head dimension", head_dim)
    epsilon = fraction("the coherence", coherence)
    return min(1.0, 2 * n**2 * math.exp(-d * _chernoff(epsilon) / 2))


def coherent_head_dim(length: Whole, coherence: Real, doubt: Real = 0.05) -> int:
    """The head dimension from which Lemma 6 gives ``coherence`` with probability 1 − ``doubt``.

    >>> coherent_head_dim(100, 0.5) < coherent_head_dim(100, 0.1)
    True
    """
    n, epsilon = whole("the length", length), fraction("the coherence", coherence)
    return math.ceil(2 * math.log(2 * n**2 / fraction("the doubt", doubt)) / _chernoff(epsilon))


def log_constant(coherence: Real) -> float:
    """Remark 5: the factor before log n in d_h = Ω(log n); of order 8/ε².

    >>> round(log_constant(0.1) * 0.1**2, 1)
    8.6
    """
    return 4 / _chernoff(fraction("the coherence", coherence))


@dataclass(frozen=True)
class StableRange:
    """The perturbations δ = ‖E‖₂ that cannot change a numerical rank: [0, limit] or [0, limit)."""

    rank: int
    limit: float
    closed: bool

    def __contains__(self, delta: float) -> bool:
        return 0 <= delta < self.limit or (self.closed and delta == self.limit)


def stable_range(values: Float[Tensor, " k"], epsilon: Real) -> StableRange:
    """Proposition 1: how far a matrix with these singular values can move and keep its ε-rank.

    A counted value may fall to ε itself, an uncounted one may not reach it: so the range is
    half-open when the first uncounted value is the nearer one.

    >>> stable_range(torch.tensor([3.0, 0.25]).double(), 1.0)
    StableRange(rank=1, limit=0.75, closed=False)
    """
    eps = positive("the tolerance", epsilon)
    counted = values >= eps
    above = float((values[counted] - eps).min()) if counted.any() else math.inf
    below = float((eps - values[~counted]).min()) if (~counted).any() else math.inf
    return StableRange(int(counted.sum()), min(above, below), closed=above < below)


def bottleneck(target: Float[Tensor, "n m"], rank: Whole) -> float:
    """Eckart–Young: no matrix of this rank comes nearer to ``target`` than this, squared.

    >>> bottleneck(torch.eye(10).double(), 6)
    4.0
    """
    values = torch.linalg.svdvals(target.double())
    return float(values[whole("the rank", rank, 0) :].square().sum())


def barrier_bottleneck(target: Float[Tensor, "n n"]) -> float:
    """What the barrier costs on average: E‖hardmax − target‖_F² is at least this.

    The squared distance to rank k is convex in k, so Jensen allows the mean rank of Theorem 1,
    interpolated between whole numbers.

    >>> round(barrier_bottleneck(torch.eye(100).double()), 2)
    36.51
    """
    rank = rank_barrier(target.shape[-1])
    whole_part = int(rank)
    here, next_ = bottleneck(target, whole_part), bottleneck(target, whole_part + 1)
    return here + (rank - whole_part) * (next_ - here)


def _chernoff(epsilon: float) -> float:
    return epsilon**2 / 2 - epsilon**3 / 3
