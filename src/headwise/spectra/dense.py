"""Count σ ≥ ε of dense float64 matrices: all above, else deflated, else all of the spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.shapes import Float
from headwise.spectra.deflation import count_by_deflation, smallest_singular_value
from headwise.spectra.exact import svd_spectrum
from headwise.spectra.ranks import Count, numerical_rank
from headwise.spectra.rounding import factorisation_error

#: Below this size a singular value decomposition is cheapest.
SMALLEST_QR = 48

#: From this size on, a matrix is deflated by itself rather than decomposed in a batch.
SMALLEST_DEFLATION = 640


@dataclass(frozen=True, eq=False)
class Thresholds:
    """ε for each matrix, and how far the matrix may lie from the one meant."""

    epsilon: Float[Tensor, " b"]
    doubt: Float[Tensor, " b"]

    def only(self, chosen: Tensor) -> Thresholds:
        """The same for the chosen matrices."""
        return Thresholds(self.epsilon[chosen], self.doubt[chosen])


def count_dense(matrices: Float[Tensor, "b n m"], at: Thresholds) -> list[Count]:
    """One certified count per float64 matrix.

    >>> eps = torch.tensor([1e-8]).double()
    >>> found = count_dense(torch.eye(3).double()[None], Thresholds(eps, 0 * eps))
    >>> int(found[0])
    3
    """
    size = min(matrices.shape[-2:])
    if size < SMALLEST_QR:
        return count_by_svd(matrices, at)
    if size >= SMALLEST_DEFLATION:
        return [
            _by_deflation(matrix, at.only(torch.tensor([i]))) for i, matrix in enumerate(matrices)
        ]
    return _all_above_or_svd(matrices, at)


def _all_above_or_svd(matrices: Tensor, at: Thresholds) -> list[Count]:
    delta = at.doubt + factorisation_error(
        torch.linalg.matrix_norm(matrices), max(matrices.shape[-2:])
    )
    # The bound already allows for rounding; only the doubt remains.
    above = smallest_singular_value(matrices) > at.epsilon + at.doubt
    size = min(matrices.shape[-2:])
    counts = [Count(size, size, float(d), "qr") for d in delta]
    open_ = torch.nonzero(~above).flatten()
    if len(open_):
        found = count_by_svd(matrices[open_], at.only(open_))
        for i, count in zip(open_.tolist(), found, strict=True):
            counts[i] = count
    return counts


def _by_deflation(matrix: Tensor, at: Thresholds) -> Count:
    epsilon, doubt = float(at.epsilon), float(at.doubt)
    found = count_by_deflation(matrix, epsilon, doubt)
    if found is None:
        return count_by_svd(matrix[None], at)[0]
    return Count(found.low, found.high, found.delta, "deflation")


def count_by_svd(matrices: Float[Tensor, "b n m"], at: Thresholds) -> list[Count]:
    """The oracle: one count per float64 matrix from its whole spectrum.

    >>> eps = torch.tensor([1e-8]).double()
    >>> count_by_svd(torch.eye(3).double()[None], Thresholds(eps, 0 * eps))[0].low
    3
    """
    found = svd_spectrum(matrices)
    return list(numerical_rank(found, at.epsilon, at.doubt + found.error))
