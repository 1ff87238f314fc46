"""Ask for a rank or a spectrum; the cheapest method that can answer is taken, and named."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.spectra.exact import svd_spectrum
from headwise.spectra.ranks import (
    Counts,
    effective_rank,
    energy_rank,
    numerical_rank,
    stable_rank,
)
from headwise.spectra.rounding import storage_error
from headwise.spectra.sources import LogWeights, Source, as_matrices, refuse_not_finite
from headwise.spectra.spectrum import Spectrum
from headwise.spectra.tolerance import PAPER_TOLERANCE, Tolerance, threshold
from headwise.spectra.weights import softmax_matrix, weights_error


@dataclass(frozen=True, eq=False)
class Measurement:
    """Everything headwise says of a batch of matrices, with what it rests on.

    >>> report = measure(torch.eye(4, dtype=torch.float64))
    >>> int(report.rank), float(report.stable_rank)
    (4, 4.0)
    """

    rank: Counts
    spectrum: Spectrum
    tolerance: Tolerance
    epsilon: Tensor
    shape: torch.Size
    dtype: torch.dtype

    @property
    def stable_rank(self) -> Tensor:
        """‖A‖_F² / ‖A‖₂²."""
        return stable_rank(self.spectrum)

    @property
    def effective_rank(self) -> Tensor:
        """exp of the entropy of the normalised singular values."""
        return effective_rank(self.spectrum)

    def energy_rank(self, share: float) -> Tensor:
        """How many leading singular values hold ``share`` of the squared Frobenius norm."""
        return energy_rank(self.spectrum, share)


def count(source: Source, tolerance: Tolerance = PAPER_TOLERANCE) -> Counts:
    """The numerical rank of each matrix: how many singular values are at least ε.

    >>> int(count(torch.ones(5, 5, dtype=torch.float64)))
    1
    """
    return measure(source, tolerance).rank


def spectrum(source: Source) -> Spectrum:
    """All singular values of each matrix.

    >>> spectrum(torch.eye(2, dtype=torch.float64)).values
    tensor([1., 1.], dtype=torch.float64)
    """
    return measure(source).spectrum


def measure(source: Source, tolerance: Tolerance = PAPER_TOLERANCE) -> Measurement:
    """Rank, spectrum and the numbers that follow from it, for each matrix of a batch.

    >>> measure(LogWeights(torch.zeros(3, 3))).rank[0].low
    1
    """
    matrix, delta = _matrix_and_doubt(source)
    found = svd_spectrum(matrix)
    assert found.error is not None
    delta = delta + found.error
    given = source if isinstance(source, LogWeights) else as_matrices(source)
    epsilon = threshold(tolerance, found.largest, given.shape, given.dtype)
    rank = numerical_rank(found, epsilon, delta)
    return Measurement(rank, found, tolerance, epsilon, given.shape, given.dtype)


def _matrix_and_doubt(source: Source) -> tuple[Tensor, Tensor]:
    if isinstance(source, LogWeights):
        matrix = softmax_matrix(source)
        reach = torch.where(source.values.isfinite(), source.values.abs(), 0).amax(-1).double()
        norm, doubt = torch.linalg.vector_norm(matrix, dim=-1), 1 - matrix.amax(-1)
        return matrix, weights_error(source, norm, doubt, reach)
    matrix = as_matrices(source)
    refuse_not_finite("the matrix", int((~matrix.isfinite().all(-1)).sum()))
    return matrix.double(), storage_error(matrix)
