"""The rank paper's statements as functions, each with the constants that make it computable.

``theorems`` is the index: which are published, which are ours, and what simulation says of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import special
from torch import Tensor

from headwise.checks import fraction, positive, whole
from headwise.errors import BadInputError
from headwise.shapes import Float
from headwise.theory.number_types import Real, Whole
from headwise.theory.numerics import crossing, rule_between
from headwise.theory.picking import score_at


def softmax_to_hardmax(length: Whole, gap: Real, temperature: Real) -> float:
    """Lemma 1: 2(n−1)e^(−gap/T) bounds the 1-norm between a softmax row and its hardmax."""
    n, heat = whole("the length", length), positive("the temperature", temperature)
    return min(2.0, 2 * (n - 1) * math.exp(-float(gap) / heat))


def exponential_excess(length: Whole, p: Real) -> float:
    """Lemma 2: δ_n(p) = e^(−pn) − (1−p)^n."""
    n, p = whole("the length", length), float(p)
    return math.exp(-p * n) - (1 - p) ** n


def exponential_excess_bounds(length: Whole, p: Real) -> tuple[float, float]:
    """Lemma 2: ½p²n·e^(−p(n−1)), and the second bound, which for n ≥ 2 does not depend on p."""
    n, p = whole("the length", length), float(p)
    first = p**2 * n * math.exp(-p * (n - 1)) / 2
    second = p**2 / 2 if n == 1 else 2 * math.exp(-2) * (1 / (n - 1) + 1 / (n - 1) ** 2)
    return first, second


def empty_columns(probabilities: Float[Tensor, "rows columns"]) -> float:
    """Lemma 3: Σ_j Π_i (1 − p_ij), the expected number of columns that no row chooses.

    ``probabilities[i, j]`` is the chance that row i chooses column j. Rows choose independently
    and may differ.
    """
    return float((1 - probabilities).prod(0).sum())


def rank_barrier(length: Whole) -> float:
    """Theorem 2: E rank ≤ (1 − 1/e)n + 2e⁻²(1 + 1/(n−1))² for orthonormal inputs."""
    n = whole("the length", length, 2)
    return -math.expm1(-1) * n + 2 * math.exp(-2) * (1 + 1 / (n - 1)) ** 2


def orthonormality_scale(length: Whole, width: Whole, head_dim: Whole, coherence: Real) -> float:
    """Theorem 1 and Lemma 6: ε·n^(3/2)·(d + d_h), which their hypothesis sends to zero."""
    n, d = whole("the length", length), whole("the width", width)
    return float(coherence) * n**1.5 * (d + whole("the head dimension", head_dim))


def variation_excess(length: Whole, head_dim: Whole, distance: Real) -> float:
    """Ours: by how much E rank can change when XXᵀ = I + E instead of I, ‖E‖_F = ``distance``.

    The 2d_h columns of queries and keys are N(0, I + E). Their divergence from N(0, I) is at most
    d_h‖E‖_F² for ‖E‖_F ≤ ½, so by Pinsker the laws differ by ‖E‖_F·√(d_h/2) in total variation, and
    a rank lies between 1 and n. Continuity is not needed; docs/theorems.md has the whole proof.
    """
    n, d = whole("the length", length), whole("the head dimension", head_dim)
    return (n - 1) * float(distance) * math.sqrt(d / 2)


def nearest_orthonormal(matrix: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Lemma 5: VU₁ᵀ, the matrix with orthonormal rows nearest in Frobenius norm (n ≤ d)."""
    rows, columns = matrix.shape
    if rows > columns:
        raise BadInputError(
            f"expected at most as many rows as columns, got {rows} rows and {columns} columns",
            hint="rows cannot be orthonormal in fewer dimensions; pass fewer rows",
        )
    left, _, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    return left @ right


def orthonormal_distance(length: Whole, coherence: Real) -> float:
    """Lemma 5: ε·n^(3/2), how far inputs of coherence ε are from orthonormal ones.

    ε·n holds as well, since |σ − 1| ≤ |σ² − 1| and ‖XXᵀ − I‖_F ≤ ε·n.
    """
    return float(coherence) * whole("the length", length) ** 1.5


def score_shift(
    length: Whole, width: Whole, head_dim: Whole, coherence: Real, deviation: Real = 0.0
) -> float:
    """Lemma 6 with its constant: (2a + a²)(√d + √d_h + √2·t)², a = ε·n^(3/2), t = ``deviation``.

    At t = 0 it bounds the mean of ‖XWX'ᵀ − X̃WX̃'ᵀ‖₂, at t > 0 the norm itself with probability
    (1 − e^(−t²))², because a Gaussian matrix exceeds √d + √d_h + s with chance e^(−s²/2).
    """
    a = orthonormal_distance(length, coherence)
    sides = math.sqrt(whole("the width", width)) + math.sqrt(whole("the head dimension", head_dim))
    return (2 * a + a**2) * (sides + math.sqrt(2) * float(deviation)) ** 2


def score_shift_probability(deviation: Real) -> float:
    """Lemma 6: the published (1 − 2e^(−t²))², read as max(0, 1 − 2e^(−t²))² for small t."""
    return max(0.0, 1 - 2 * math.exp(-(float(deviation) ** 2))) ** 2


def stable_tolerances(least: Real) -> tuple[float, float]:
    """Proposition 1: the interval (σ/3, 2σ/3] of tolerances, σ the least non-zero value."""
    value = positive("the least singular value", least)
    return value / 3, 2 * value / 3


@dataclass(frozen=True)
class StableRange:
    """The perturbations δ = ‖P‖₂ that cannot change a numerical rank: [0, limit] or [0, limit)."""

    rank: int
    limit: float
    closed: bool

    def __contains__(self, delta: float) -> bool:
        return 0 <= delta < self.limit or (self.closed and delta == self.limit)


def stable_range(values: Float[Tensor, " k"], epsilon: Real) -> StableRange:
    """Ours, the sharp form of Proposition 1: how far a matrix can move and keep its ε-rank.

    A counted value may fall to ε itself, an uncounted one may not reach it: the range is
    half-open when the first uncounted value is the nearer one.
    """
    eps = positive("the tolerance", epsilon)
    counted = values >= eps
    above = float((values[counted] - eps).min()) if counted.any() else math.inf
    below = float((eps - values[~counted]).min()) if (~counted).any() else math.inf
    return StableRange(int(counted.sum()), min(above, below), closed=above < below)


def bottleneck(target: Float[Tensor, "n m"], rank: Whole) -> float:
    """Section 3.1 (Eckart–Young): no matrix of this rank comes nearer to ``target``, squared."""
    values = torch.linalg.svdvals(target.double())
    return float(values[whole("the rank", rank, 0) :].square().sum())


def barrier_bottleneck(target: Float[Tensor, "n n"]) -> float:
    """Section 3.1: E‖hardmax − target‖_F² is at least this.

    The squared distance to rank k is convex in k, so Jensen allows the mean rank of Theorem 2,
    interpolated between whole numbers.
    """
    rank = rank_barrier(target.shape[-1])
    whole_part = int(rank)
    here, next_ = bottleneck(target, whole_part), bottleneck(target, whole_part + 1)
    return here + (rank - whole_part) * (next_ - here)


def coherence_probability(length: Whole, head_dim: Whole, coherence: Real) -> float:
    """Equations 66–69: P(max |k_iᵀk_j/d_h − x_iᵀx_j| > ε) ≤ 2n²e^(−d_h(ε²/2 − ε³/3)/2)."""
    n, d = whole("the length", length), whole("the head dimension", head_dim)
    epsilon = fraction("the coherence", coherence)
    return min(1.0, 2 * n**2 * math.exp(-d * _chernoff(epsilon) / 2))


def log_constant(coherence: Real) -> float:
    """Remark 5: the factor before log n in d_h = Ω(log n); 8/ε² for small ε."""
    return 4 / _chernoff(fraction("the coherence", coherence))


def _chernoff(epsilon: float) -> float:
    return epsilon**2 / 2 - epsilon**3 / 3


def gap_below(length: Whole, gap: Real) -> float:
    """The chance that the two largest of n independent N(0, 1) scores lie within ``gap``.

    1 − n ∫ φ(s) Φ(s − gap)^(n−1) ds.
    """
    n = whole("the length", length, 2)
    reach = float(gap)
    low = float(score_at(45.0, n - 1.0)) + reach
    s, weight = rule_between(low, max(low, 0.0) + 10.0, 400)
    log_apart = (n - 1) * special.log_ndtr(s - reach) - s**2 / 2
    apart = n * float((weight * np.exp(log_apart)).sum()) / math.sqrt(2 * math.pi)
    return max(0.0, 1 - apart)


def smallest_gap(length: Whole, doubt: Real = 0.05) -> float:
    """Ours: the gap that every one of n rows exceeds with probability 1 − ``doubt``.

    The union bound over rows: n · P(gap ≤ δ) = doubt.
    """
    n, share = whole("the length", length, 2), fraction("the doubt", doubt)
    return crossing(lambda gap: gap_below(n, gap) - share / n, 0.0, 20.0)


def independence_limit(columns: Whole, doubt: Real = 1e-6) -> float:
    """The chi-square that two independent choices exceed with chance ``doubt``."""
    c = whole("the number of columns", columns, 2)
    return float(special.chdtri((c - 1) ** 2, fraction("the doubt", doubt)))
