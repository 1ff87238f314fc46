"""Ask for a rank or a spectrum; the cheapest method that can answer is taken, and named."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.spectra.counting import count_at
from headwise.spectra.ranks import (
    Counts,
    effective_rank,
    energy_rank,
    numerical_rank,
    stable_rank,
)
from headwise.spectra.resolving import whole_spectrum
from headwise.spectra.sources import LogWeights, Source, as_source
from headwise.spectra.spectrum import Spectrum
from headwise.spectra.tolerance import (
    PAPER_TOLERANCE,
    Absolute,
    Tolerance,
    as_tolerance,
    fraction_of_largest,
    threshold,
)


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


def count(
    source: Source, tolerance: Tolerance | float = PAPER_TOLERANCE, method: str = "cheapest"
) -> Counts:
    """The numerical rank of each matrix: how many singular values are at least ε.

    ``method`` is the cheapest that can answer, or one of "near-hardmax", "dense", "svd" and
    "inertia" by name; each Count says which was taken. A tolerance relative to σ₁ needs the
    whole spectrum and takes no method.

    >>> int(count(torch.ones(5, 5, dtype=torch.float64)))
    1
    """
    given, tolerance = as_source(source), as_tolerance(tolerance)
    if isinstance(tolerance, Absolute):
        return count_at(given, tolerance.epsilon, method)
    return _rank(whole_spectrum(given), tolerance, given)[0]


def spectrum(source: Source) -> Spectrum:
    """All singular values of each matrix.

    >>> spectrum(torch.eye(2, dtype=torch.float64)).values
    tensor([1., 1.], dtype=torch.float64)
    """
    return whole_spectrum(as_source(source))


def measure(source: Source, tolerance: Tolerance | float = PAPER_TOLERANCE) -> Measurement:
    """Rank, spectrum and the numbers that follow from it, for each matrix of a batch.

    >>> int(measure(LogWeights(torch.zeros(3, 3, dtype=torch.float64))).rank)
    1
    """
    given, tolerance = as_source(source), as_tolerance(tolerance)
    found = whole_spectrum(given)
    rank, epsilon = _rank(found, tolerance, given)
    return Measurement(rank, found, tolerance, epsilon, given.shape, given.dtype)


def _rank(
    found: Spectrum, tolerance: Tolerance, given: Tensor | LogWeights
) -> tuple[Counts, Tensor]:
    epsilon = threshold(tolerance, found.largest, given.shape, given.dtype)
    delta = torch.as_tensor(found.error)
    if not isinstance(tolerance, Absolute):
        # σ₁, which ε is a share of, is known to the same accuracy as the others.
        delta = delta * (1 + fraction_of_largest(tolerance, given.shape, given.dtype))
    return numerical_rank(found, epsilon, delta), epsilon
