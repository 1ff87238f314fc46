"""Count σ ≥ ε of a dense matrix by QR: a strong leading part, and a small remainder.

With A = QR and R = [[R₁₁, R₁₂], [0, R₂₂]], where every singular value of R₁₁ is above ε,
the inertia of [[−εI, R], [Rᵀ, −εI]] (Haynsworth) gives

    #{σ(A) ≥ ε} = k + #{σ(B) ≥ ε},   B = R₂₂ (I + WᵀW)^{-1/2},   W = R₁₁^{-1} R₁₂,

up to a factor 1 + ε²‖R₁₁^{-1}‖² on WᵀW. The leading k×k block of R^{-1} is R₁₁^{-1}, so one
sweep over the columns of R^{-1} finds the largest k with ‖R₁₁^{-1}‖_F small against 1/ε. If
that is all of R, nothing lies below ε and the certificate is complete. Where few columns are
left, B is taken in an orthonormal basis of [−W; I], however large W is. Otherwise Rᵀ is
factored once more: as one step of subspace iteration, this gathers the strong directions in
front (W falls from thousands to below ten) without any pivoting. What ends up below ε/10⁴
at the bottom is dropped. What remains lies so near ε that squares are harmless: B has as
many σ ≥ ε as R₂₂ᵀR₂₂/ε² − (I + WᵀW) has positive eigenvalues, and its inertia tells. Where
it does not lie so near, the singular values of B are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.shapes import Float
from headwise.spectra.inertia import positive_eigenvalues
from headwise.spectra.sources import (
    NEGLECTED,
    decomposition_error,
    factorisation_error,
    unit_roundoff,
)

#: What the iteration of a decomposition adds to the error of a singular value, relative to it.
_COUPLINGS = NEGLECTED * unit_roundoff(torch.float64)

#: How far above ε the singular values of the leading block must lie.
CLEARANCE = 50.0

#: What may be dropped at the bottom of R, in Frobenius norm, as a fraction of ε.
DROPPED_SHARE = 1e-4

#: Columns of the inverse taken at once, for triangles below LARGE rows and for others.
SMALL_PANEL, LARGE_PANEL, LARGE = 128, 256, 1024

#: δ may be at most this fraction of ε; otherwise another method must answer.
LARGEST_DELTA = 1e-3

#: What the squares and their factorisation may add to δ, as a fraction of ε.
SQUARES_SHARE = 1e-4

#: How often Rᵀ is factored again before giving up.
ROUNDS = 3

#: Counting before Rᵀ is factored, or in a basis of [−W; I], pays up to so many columns outside
#: R₁₁, as a share of those inside.
LARGEST_BASIS = 1.0

#: Another factorisation pays if it leaves no more than this share of the rows.
WORTH_A_TURN = 0.75


@dataclass(frozen=True)
class Deflated:
    """A certified count: σ certainly ≥ ε, σ possibly ≥ ε, and the δ of that count."""

    low: int
    high: int
    delta: float


def count_by_deflation(
    matrix: Float[Tensor, "1 n m"], epsilon: float, doubt: float = 0.0, rounds: int = ROUNDS
) -> Deflated | None:
    """Return the count of σ ≥ ε of one float64 matrix, or None if QR does not reveal its rank.

    The matrix may be overwritten. ``doubt`` bounds its distance from the exact input and is added
    to δ. Rᵀ is factored again up to ``rounds`` times.
    """
    triangle, error = _first_triangle(matrix)
    del matrix  # so that its memory is freed as soon as R is transposed
    triangle, delta, size = triangle[0], doubt + float(error), triangle.shape[-1]
    lead, largest = _lead(triangle, epsilon), LARGEST_DELTA * epsilon + doubt
    # Every σ of R is above CLEARANCE·ε, so those of A are above ε while δ stays below the rest.
    if lead == size and delta < (CLEARANCE - 1) * epsilon:
        return Deflated(size, size, delta)
    found = None
    if size - lead <= LARGEST_BASIS * lead:
        found = _count_remainder(triangle, lead, epsilon, delta, largest)
    if found is not None:
        return found
    for _ in range(rounds):
        triangle, dropped = _without_negligible_rows(triangle, epsilon)
        if len(triangle) == 0 and delta + dropped <= largest:
            return Deflated(0, 0, delta + dropped)
        # Further factorisations only add to δ, and a value that is not finite stays so.
        if len(triangle) == 0 or not delta + dropped <= largest:
            return None
        triangle, more = (x[0] for x in triangles(triangle.mT[None]))
        delta += float(more) + dropped
        if _shrinks(triangle, epsilon):
            continue
        found = _count_remainder(triangle, _lead(triangle, epsilon), epsilon, delta, largest)
        if found is not None:
            return found
    return None


def _first_triangle(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return R of A = QR and its error; a causal matrix is a triangle as it stands."""
    if _is_lower_triangle(matrix[0]):
        return matrix.mT, torch.zeros(1, dtype=torch.float64, device=matrix.device)
    return triangles_in_place(matrix)


def _is_lower_triangle(matrix: Tensor) -> bool:
    # The first row alone excludes most matrices; looking at all entries takes a copy.
    square = matrix.shape[0] == matrix.shape[1]
    return square and not bool(matrix[:1, 1:].any()) and not bool(matrix.triu(1).any())


def triangles_in_place(
    matrices: Float[Tensor, "b n m"],
) -> tuple[Float[Tensor, "b k k"], Float[Tensor, " b"]]:
    """Compute ``triangles``, overwriting the matrices if their layout allows it."""
    b, n, m = matrices.shape
    if n != m or not matrices.is_contiguous():
        return triangles(matrices)
    # Stored by rows, a square matrix is its transpose stored by columns, as LAPACK wants it.
    factored = matrices.mT
    torch.geqrf(factored, out=(factored, matrices.new_empty(b, n)))
    matrices.tril_()  # the upper triangle of the transpose, where triu_ would copy
    return factored, factorisation_error(torch.linalg.matrix_norm(matrices), n)


def triangles(
    matrices: Float[Tensor, "b n m"],
) -> tuple[Float[Tensor, "b k k"], Float[Tensor, " b"]]:
    """Return R of A = QR for each matrix (its transpose if wide), and the error of its σ."""
    tall = matrices if matrices.shape[-2] >= matrices.shape[-1] else matrices.mT
    by_columns = torch.geqrf(tall)[0].mT[..., : tall.shape[-1]]
    triangle = by_columns.tril_().mT
    norm = torch.linalg.matrix_norm(triangle)
    return triangle, factorisation_error(norm, max(tall.shape[-2:]))


def smallest_singular_value(triangle: Float[Tensor, "b k k"]) -> Float[Tensor, " b"]:
    """Return a proven lower bound on σ_min of each triangle, 1/‖R^{-1}‖_F; zero if singular."""
    eye = torch.eye(triangle.shape[-1], dtype=torch.float64, device=triangle.device)
    inverse = torch.linalg.solve_triangular(triangle, eye.expand_as(triangle), upper=True)
    inverse_norm, norm = torch.linalg.matrix_norm(inverse), torch.linalg.matrix_norm(triangle)
    return _least(inverse_norm, norm, triangle.shape[-1]).clamp(min=0).nan_to_num(0)


def _solve(triangle: Tensor, right: Tensor) -> Tensor:
    """Overwrite ``right`` with R^{-1}·right, by blocks: torch would copy a part of R."""
    size, panel = len(triangle), _panel(triangle)
    for start in reversed(range(0, size, panel)):
        here, below = slice(start, start + panel), slice(min(start + panel, size), size)
        right[here] -= triangle[here, below] @ right[below]
        right[here] = torch.linalg.solve_triangular(triangle[here, here], right[here], upper=True)
    return right


def _panel(triangle: Tensor) -> int:
    return SMALL_PANEL if len(triangle) < LARGE else LARGE_PANEL


def _shrinks(triangle: Tensor, epsilon: float) -> bool:
    """Whether enough rows have become negligible for another factorisation to pay."""
    return len(_without_negligible_rows(triangle, epsilon)[0]) < WORTH_A_TURN * len(triangle)


def _without_negligible_rows(triangle: Tensor, epsilon: float) -> tuple[Tensor, float]:
    """Drop bottom rows that together are far below ε, and bound their effect."""
    behind = torch.linalg.vector_norm(triangle, dim=1).square().flip(0).cumsum(0).flip(0).sqrt()
    kept = int((behind > DROPPED_SHARE * epsilon).sum())
    return triangle[:kept], 0.0 if kept == len(triangle) else float(behind[kept])


def _least(inverse_norm: Tensor, norm: Tensor, size: int) -> Tensor:
    """Return 1/‖R^{-1}‖ minus the rounding error of the computed inverse."""
    return (1 - factorisation_error(norm * inverse_norm, size)) / inverse_norm


def _lead(triangle: Tensor, epsilon: float) -> int:
    """Return the largest k for which every σ of the leading k×k block is above CLEARANCE·ε."""
    size, norm = triangle.shape[0], torch.linalg.matrix_norm(triangle)
    energy = torch.zeros((), dtype=torch.float64, device=triangle.device)
    width = _panel(triangle)
    for start in range(0, size, width):
        end = min(start + width, size)
        unit = torch.zeros(end, end - start, dtype=torch.float64, device=triangle.device)
        unit[start:].fill_diagonal_(1)
        panel = _solve(triangle[:end, :end], unit)
        growing = energy + panel.square().sum(0).cumsum(0)
        # NaN (a zero on the diagonal) compares false and excludes everything behind it.
        clear = _least(growing.sqrt(), norm, end) >= CLEARANCE * epsilon
        leading = int(clear.cumprod(0).sum())
        if leading < end - start:
            return start + leading
        energy = growing[-1]
    return size


def _count_remainder(
    triangle: Tensor, lead: int, epsilon: float, delta: float, largest: float
) -> Deflated | None:
    """Return k plus the count of B, or None if δ would exceed ``largest``."""
    if not delta <= largest:
        return None
    if lead == len(triangle):
        return Deflated(lead, lead, delta)
    top, inner, corner = triangle[:lead, :lead], triangle[:lead, lead:], triangle[lead:, lead:]
    coupling = _solve(top, inner.clone())
    coupled, norm = (float(torch.linalg.matrix_norm(x)) for x in (coupling, triangle))
    # A residual in W acts on A only through left vectors that are ε‖R₁₁^{-1}‖ small.
    residual = float(factorisation_error(torch.tensor(norm), lead + 1)) * coupled / CLEARANCE
    rest, dropped = _without_negligible_rows(corner, epsilon)
    # The factor on WᵀW is ε²‖R₁₁^{-1}‖² at ε ± δ too, hence a little more than half of it.
    delta += epsilon * (0.51 / CLEARANCE**2 + SQUARES_SHARE)
    if not delta + residual + dropped <= largest:
        return _count_in_basis(triangle, coupling, epsilon, delta, largest)
    delta += residual + dropped
    metric = coupling.mT @ coupling
    metric.diagonal().add_(1)
    del coupling
    rest = rest / epsilon
    found = _count_by_squares(rest, metric, delta / epsilon, lead)
    if found is None:
        found = _count_whitened(rest, metric, delta / epsilon, lead)
    return None if found is None else Deflated(lead + found[0], lead + found[1], delta)


def _count_in_basis(
    triangle: Tensor, coupling: Tensor, epsilon: float, delta: float, largest: float
) -> Deflated | None:
    """Count the σ of B in an orthonormal basis V of [−W; I], so that a large W adds no error.

    RV is B (up to a rotation) under zeros. What is computed instead of the zeros, and its rounding,
    is a change E of R for which W is exact; ‖E‖ is part of δ.

    Returns:
        The count, or None if δ would exceed ``largest``.
    """
    lead, few = coupling.shape
    if few > LARGEST_BASIS * lead:
        return None
    eye = torch.eye(few, dtype=torch.float64, device=triangle.device)
    basis = torch.linalg.qr(torch.cat((-coupling, eye))).Q
    # Refined once, since columns of W that are nearly parallel leave more than rounding.
    above = _mapped(triangle, basis)[:lead]
    basis[:lead] -= _solve(triangle[:lead, :lead], above)
    basis = torch.linalg.qr(basis).Q
    mapped = _mapped(triangle, basis)
    sizes = torch.linalg.matrix_norm(_mapped(triangle.abs(), basis.abs()))
    slip = 2 * float(factorisation_error(sizes, len(triangle)))
    values = torch.linalg.svdvals(mapped[lead:])
    error = float(decomposition_error(values.max(), few, triangle.device))
    delta += float(torch.linalg.matrix_norm(mapped[:lead])) + slip + error
    delta += _COUPLINGS * epsilon
    if not delta <= largest:
        return None
    low, high = (int((values >= epsilon + side).sum()) for side in (delta, -delta))
    return Deflated(lead + low, lead + high, delta)


def _mapped(triangle: Tensor, basis: Tensor) -> Tensor:
    """Return R·V; in this order, MKL is up to thirty times as fast on some processors."""
    return (basis.mT @ triangle.mT).mT.contiguous()


def _count_by_squares(
    rest: Tensor, metric: Tensor, delta: float, summed: int
) -> tuple[int, int] | None:
    """Count the √λ of RᵀR·x = λ·metric·x that are ≥ 1 within δ, certain and possible.

    The metric is at least I, so an error of norm e moves a λ near 1 by at most e. Its entries are
    sums of ``summed`` terms, whose squares add up to its trace.

    Returns:
        Both counts, or None if rounding could move λ by more than SQUARES_SHARE.
    """
    size = torch.linalg.matrix_norm(rest).square() + metric.trace()
    products = float(factorisation_error(size, max(len(metric), summed)))
    counts = []
    for threshold in (1 + delta, 1 - delta):
        if products > SQUARES_SHARE:
            return None
        pencil = (rest.mT @ rest).sub_(metric, alpha=threshold**2)
        count, error = positive_eigenvalues(pencil)
        counts.append(count)
        products += error
    return (counts[0], counts[1]) if products <= SQUARES_SHARE else None


def _count_whitened(
    rest: Tensor, metric: Tensor, delta: float, summed: int
) -> tuple[int, int] | None:
    """Count the same from the singular values of B = R·metric^{-1/2}, without squaring.

    Returns:
        Both counts, or None if rounding could move a value near 1 by more than SQUARES_SHARE. Both
        arguments are overwritten.
    """
    trace = float(metric.trace())
    root, info = torch.linalg.cholesky_ex(metric, upper=True)
    if int(info):
        return None
    # The decomposition copies its argument, so no second copy is held beside it.
    rest.copy_(torch.linalg.solve_triangular(root, rest, upper=True, left=False))
    # Solving changes R by at most the rounding of |B||root|, and a value by as much.
    sizes = torch.linalg.vector_norm(rest, dim=0) @ torch.linalg.vector_norm(root, dim=1)
    values = torch.linalg.svdvals(rest)
    # Cholesky changes a metric ≥ I by at most this much of its trace, and a value near 1 by half.
    size = max(*rest.shape, summed)
    error = float(decomposition_error(trace + values.max(), size, rest.device))
    error += float(factorisation_error(sizes, len(root))) + _COUPLINGS
    if not error <= SQUARES_SHARE:
        return None
    return int((values >= 1 + delta).sum()), int((values >= 1 - delta).sum())
