"""Count σ ≥ ε of a dense matrix by QR: a strong leading part, and a small remainder.

With A = QR and R = [[R₁₁, R₁₂], [0, R₂₂]], where every singular value of R₁₁ is above ε,
the inertia of [[−εI, R], [Rᵀ, −εI]] (Haynsworth) gives

    #{σ(A) ≥ ε} = k + #{σ(B) ≥ ε},   B = R₂₂ (I + WᵀW)^{-1/2},   W = R₁₁^{-1} R₁₂,

up to a factor 1 + ε²‖R₁₁^{-1}‖² on WᵀW. The leading k×k block of R^{-1} is R₁₁^{-1}, so one
sweep over the columns of R^{-1} finds the largest k with ‖R₁₁^{-1}‖_F small against 1/ε. If
that is all of R, nothing lies below ε and the certificate is complete. Otherwise Rᵀ is
factored once more: as one step of subspace iteration, this gathers the strong directions in
front (W falls from thousands to below ten) without any pivoting. What ends up below ε/10⁴
at the bottom is dropped. What remains lies so near ε that squares are harmless: B has as
many σ ≥ ε as R₂₂ᵀR₂₂/ε² − (I + WᵀW) has positive eigenvalues, and its inertia tells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.shapes import Float
from headwise.spectra.inertia import positive_eigenvalues
from headwise.spectra.rounding import SAFETY, factorisation_error, unit_roundoff

#: How far above ε the singular values of the leading block must lie.
CLEARANCE = 50.0

#: What may be dropped at the bottom of R, in Frobenius norm, as a fraction of ε.
DROPPED_SHARE = 1e-4

#: Columns of the inverse taken at once.
PANEL = 256

#: δ may be at most this fraction of ε; otherwise another method must answer.
LARGEST_DELTA = 1e-3

#: What the squares and their factorisation may add to δ, as a fraction of ε.
SQUARES_SHARE = 1e-4

#: How often Rᵀ is factored again before giving up.
ROUNDS = 3


@dataclass(frozen=True)
class Deflated:
    """A certified count: σ surely ≥ ε, σ possibly ≥ ε, and the δ it rests on."""

    low: int
    high: int
    delta: float


def smallest_singular_value(matrices: Float[Tensor, "b n m"]) -> Float[Tensor, " b"]:
    """A proven lower bound of σ_min of each float64 matrix: 1/‖R^{-1}‖_F; zero if singular.

    >>> float(smallest_singular_value(torch.eye(4, dtype=torch.float64)[None])) > 0.49
    True
    """
    tall = _tall(matrices)
    triangle = torch.linalg.qr(tall, mode="r").R
    norm = torch.linalg.matrix_norm(triangle)
    eye = torch.eye(triangle.shape[-1], dtype=torch.float64, device=triangle.device)
    inverse = torch.linalg.solve_triangular(triangle, eye.expand_as(triangle), upper=True)
    bound = _least(torch.linalg.matrix_norm(inverse), norm, triangle.shape[-1])
    return (bound - factorisation_error(norm, max(tall.shape[-2:]))).clamp(min=0).nan_to_num(0)


def count_by_deflation(
    matrix: Float[Tensor, "n m"], epsilon: float, doubt: float = 0.0
) -> Deflated | None:
    """The count for one float64 matrix, or None where QR does not reveal its rank.

    ``doubt`` is how far the matrix may lie from the one meant; it enters δ.

    >>> count_by_deflation(torch.ones(5, 5, dtype=torch.float64), 1e-8).low
    1
    """
    size = min(matrix.shape)
    triangle, delta = _triangle(_tall(matrix))
    delta += doubt
    if _lead(triangle, epsilon) == size:
        return Deflated(size, size, delta)
    for _ in range(ROUNDS):
        triangle, dropped = _without_negligible_rows(triangle, epsilon)
        if len(triangle) == 0:
            return Deflated(0, 0, delta + dropped)
        triangle, more = _triangle(triangle.mT)
        delta += more + dropped
        found = _count_remainder(triangle, epsilon, delta)
        if found.delta <= LARGEST_DELTA * epsilon + doubt:
            return found
    return None


def _tall(matrices: Tensor) -> Tensor:
    return matrices if matrices.shape[-2] >= matrices.shape[-1] else matrices.mT


def _triangle(tall: Tensor) -> tuple[Tensor, float]:
    """R of A = QR, and how far its singular values may lie from those of A."""
    factored = torch.geqrf(tall)[0][: tall.shape[1]].triu_()
    norm = torch.linalg.matrix_norm(factored)
    return factored, float(factorisation_error(norm, max(tall.shape)))


def _without_negligible_rows(triangle: Tensor, epsilon: float) -> tuple[Tensor, float]:
    """Drop the bottom rows that together are far below ε; say how much they can matter."""
    behind = triangle.square().sum(1).flip(0).cumsum(0).flip(0).sqrt()
    kept = int((behind > DROPPED_SHARE * epsilon).sum())
    return triangle[:kept], 0.0 if kept == len(triangle) else float(behind[kept])


def _least(inverse_norm: Tensor, norm: Tensor, size: int) -> Tensor:
    """1/‖R^{-1}‖, less what rounding may have done to the computed inverse."""
    doubt = SAFETY * math.sqrt(size) * unit_roundoff(torch.float64) * norm * inverse_norm
    return (1 - doubt) / inverse_norm


def _lead(triangle: Tensor, epsilon: float) -> int:
    """The largest k for which every σ of the leading k×k block is above CLEARANCE·ε."""
    size, norm = triangle.shape[0], torch.linalg.matrix_norm(triangle)
    energy = torch.zeros((), dtype=torch.float64, device=triangle.device)
    for start in range(0, size, PANEL):
        end = min(start + PANEL, size)
        unit = torch.zeros(end, end - start, dtype=torch.float64, device=triangle.device)
        unit[start:].fill_diagonal_(1)
        panel = torch.linalg.solve_triangular(triangle[:end, :end], unit, upper=True)
        growing = energy + panel.square().sum(0).cumsum(0)
        # NaN (a zero on the diagonal) compares false, and everything behind it is out.
        clear = _least(growing.sqrt(), norm, end) >= CLEARANCE * epsilon
        leading = int(clear.cumprod(0).sum())
        if leading < end - start:
            return start + leading
        energy = growing[-1]
    return size


def _count_remainder(triangle: Tensor, epsilon: float, delta: float) -> Deflated:
    """k plus the count of B, with the errors of W, of the metric and of the squares in δ."""
    lead = _lead(triangle, epsilon)
    if lead == len(triangle):
        return Deflated(lead, lead, delta)
    top, inner = triangle[:lead, :lead], triangle[:lead, lead:]
    rest, dropped = _without_negligible_rows(triangle[lead:, lead:] / epsilon, 1.0)
    coupling = torch.linalg.solve_triangular(top, inner, upper=True)
    coupled, norm = (float(torch.linalg.matrix_norm(x)) for x in (coupling, triangle))
    # A residual in W acts on A only through left vectors that are ε‖R₁₁^{-1}‖ small.
    residual = float(factorisation_error(torch.tensor(norm), lead + 1)) * coupled / CLEARANCE
    delta += dropped * epsilon + residual + epsilon / (2 * CLEARANCE**2)
    metric = coupling.mT @ coupling
    metric.diagonal().add_(1)
    delta += SQUARES_SHARE * epsilon
    found = _count_pencil(rest.mT @ rest, metric, delta / epsilon)
    if found is None:
        return Deflated(lead, len(triangle), math.inf)
    return Deflated(lead + found[0], lead + found[1], delta)


def _count_pencil(square: Tensor, metric: Tensor, delta: float) -> tuple[int, int] | None:
    """How many √λ of square·x = λ·metric·x are surely ≥ 1, and how many may be, to within δ.

    The metric is at least I, so an error of norm e moves a λ near 1 by at most e. None when
    rounding could move it further than δ allows for.
    """
    norm = torch.linalg.matrix_norm(square) + torch.linalg.matrix_norm(metric)
    products = float(factorisation_error(norm, len(square)))
    low, low_error = positive_eigenvalues(square - (1 + delta) ** 2 * metric)
    high, high_error = positive_eigenvalues(square - (1 - delta) ** 2 * metric)
    if products + max(low_error, high_error) > SQUARES_SHARE:
        return None
    return low, high
