"""Count σ > ε by inertia: the signs of the pivots of one symmetric factorisation.

The positive eigenvalues of [[−εI, A], [Aᵀ, −εI]] are as many as the σ > ε of A, and
Sylvester's law reads them off LDLᵀ. The factorisation is that of a nearby matrix; how near
is bounded afterwards from the factors themselves, since pivoting lets them grow.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.shapes import Float, Int
from headwise.spectra.certificate import Certificate
from headwise.spectra.sources import decomposition_error, roundings, unit_roundoff

#: Columns looked at together.
PANEL = 256

#: Distance of the first factorisation from ε, in units of the rounding of the matrix.
#: If elements grow by more, the count is repeated further away.
FIRST_GUESS = 30.0

#: Shifts that are tried on each side of ε.
ATTEMPTS = 4


def positive_eigenvalues(symmetric: Float[Tensor, "n n"]) -> tuple[int, float]:
    """Count positive eigenvalues, and bound the smallest change that could alter the count.

    The matrix is overwritten. An infinite bound means that the factorisation broke down (a zero
    pivot or an overflow), and the count is void.

    Returns:
        The count and the norm of such a change.
    """
    if symmetric.is_cuda:
        # The GPU's symmetric eigensolver is faster than its LDLᵀ at every size tried.
        values = torch.linalg.eigvalsh(symmetric)
        error = float(decomposition_error(values.abs().max(), len(symmetric), symmetric.device))
        return int((values > 0).sum()), _finite_or_infinite(error)
    # A symmetric matrix is its own transpose, so LAPACK can work in place.
    factors = symmetric.mT
    pivots, info = (torch.empty(k, dtype=torch.int32) for k in (symmetric.shape[:1], ()))
    torch.linalg.ldl_factor_ex(factors, out=(factors, pivots, info))
    starts = _two_by_two(pivots)
    growth = _growth(factors, starts)
    error = roundings(len(symmetric)) * unit_roundoff(torch.float64) * growth
    return _positive_pivots(factors, starts), _finite_or_infinite(error)


def count_by_inertia(
    matrix: Float[Tensor, "n m"], epsilon: float, doubt: float = 0.0
) -> Certificate | None:
    """Count σ ≥ ε of one float64 matrix, certified by a factorisation on each side of ε.

    It allocates a matrix of size n + m: four times a square input. ``doubt`` bounds the distance
    from the exact input and is added to δ.

    Returns:
        The certificate, or None if no factorisation certifies itself.
    """
    norm = float(torch.linalg.matrix_norm(matrix))
    rounding = roundings(sum(matrix.shape)) * unit_roundoff(torch.float64)
    guess = FIRST_GUESS * rounding * max(norm, epsilon)
    low = _count_beyond(matrix, epsilon, guess, doubt, side=1)
    high = low and _count_beyond(matrix, epsilon, low[1] - doubt, doubt, side=-1)
    if low is None or high is None:
        return None
    return Certificate(low[0], high[0], max(low[1], high[1]), "inertia")


def _count_beyond(
    matrix: Tensor, epsilon: float, guess: float, doubt: float, *, side: int
) -> tuple[int, float] | None:
    """Count at ε + side·δ, with a δ that exceeds ``doubt`` plus the factorisation's own error.

    A factorisation with error e at the shift s counts at least the σ > s + e and at most the
    σ > s − e. So the count at ε + δ is at most that of the σ ≥ ε as soon as δ ≥ e + doubt, and
    the count at ε − δ is at least that.

    Returns:
        The count and δ, or None if no shift that was tried certifies itself.
    """
    for _ in range(ATTEMPTS):
        delta = doubt + guess
        if side < 0 and delta >= epsilon:
            return min(matrix.shape), delta
        if not math.isfinite(delta):
            return None
        count, error = positive_eigenvalues(_augmented(matrix, epsilon + side * delta))
        if error <= guess:
            return count, delta
        # A zero pivot or an unlucky order of pivots: try another shift.
        guess = 2 * error if math.isfinite(error) else 16 * guess
    return None


def _finite_or_infinite(error: float) -> float:
    return error if math.isfinite(error) else math.inf


def _augmented(matrix: Tensor, shift: float) -> Tensor:
    n, m = matrix.shape
    whole = torch.zeros(n + m, n + m, dtype=torch.float64, device=matrix.device)
    whole[:n, n:], whole[n:, :n] = matrix, matrix.mT
    whole.diagonal().fill_(-shift)
    return whole


def _two_by_two(pivots: Int[Tensor, " n"]) -> Tensor:
    """Find where 2×2 pivots start: LAPACK marks both of their rows with a negative number."""
    negative = (pivots < 0).tolist()
    starts = torch.zeros(len(negative), dtype=torch.bool)
    at = 0
    while at < len(negative):
        starts[at] = negative[at]
        at += 2 if negative[at] else 1
    return starts


def _positive_pivots(factors: Tensor, starts: Tensor) -> int:
    """Count positive pivots; Bunch and Kaufman's 2×2 pivots have one eigenvalue of each sign."""
    singles = factors.diagonal()[~(starts | torch.roll(starts, 1))]
    return int((singles > 0).sum() + starts.sum())


def _growth(factors: Tensor, starts: Tensor) -> float:
    """Bound ‖|L||D||Lᵀ|‖_F column by column, overwriting the pivots below the diagonal with 0."""
    seconds = torch.roll(starts, 1)
    below = torch.cat((factors.diagonal(-1), factors.new_zeros(1)))
    # The subdiagonal entry of a 2×2 pivot belongs to D, not to L. Subtracting its square
    # afterwards would leave nothing of a column of L that is small beside it.
    off = torch.where(starts, below, 0.0)
    factors.diagonal(-1).masked_fill_(starts[:-1], 0.0)
    length = 1 + _squared_columns_below(factors)
    size = factors.diagonal().abs() + off.abs() + torch.roll(off.abs(), 1) * seconds
    paired = length + torch.where(starts, torch.roll(length, -1), 0.0)
    paired = torch.where(seconds, torch.roll(paired, 1), paired)
    return float((paired * size).sum())


def _squared_columns_below(factors: Tensor) -> Tensor:
    """Return the squared column norms of the strict lower triangle, without copying it."""
    panels = range(0, len(factors), PANEL)
    parts = [factors[i:, i : i + PANEL].tril(-1).square().sum(0) for i in panels]
    return torch.cat(parts)
