"""Ask for a rank or a spectrum; the cheapest method that can answer is taken, and named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.spectra.certificate import Counts
from headwise.spectra.counting import count_at
from headwise.spectra.ranks import (
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


@dataclass(frozen=True, eq=False, repr=False)
class Measurement:
    """The ranks and the spectrum of a batch of matrices.

    Attributes:
        rank: The certified numerical ranks.
        spectrum: The singular values.
        tolerance: The rule that says which singular values count.
        epsilon: The tolerance that the rule gave for each matrix.
        shape: The shape of the input.
        dtype: The dtype of the input.

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

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"Measurement(shape={tuple(self.shape)}, dtype={dtype}, rank={self.rank!r})"

    def to_frame(self) -> Any:
        """The ranks as a pandas DataFrame, one row per matrix.

        Returns:
            The columns of ``rank.to_frame()``, then epsilon, stable_rank and effective_rank.

        Raises:
            MissingExtraError: If pandas is not installed.
        """
        columns = ("epsilon", "stable_rank", "effective_rank")
        return self.rank.to_frame().assign(
            **{name: getattr(self, name).flatten().tolist() for name in columns}
        )

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
    "inertia" by name; each Certificate says which was taken. A tolerance relative to σ₁ needs the
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
    exact = given.is_exact if isinstance(given, LogWeights) else given.dtype == torch.float64
    if isinstance(tolerance, Absolute) and exact and not bool(rank.exact.all()):
        # Input that was rounded stays in doubt; a method that drops nothing can settle the rest.
        rank = _narrower(rank, count_at(given, tolerance.epsilon, "dense"))
    return Measurement(rank, found, tolerance, epsilon, given.shape, given.dtype)


def _rank(
    found: Spectrum, tolerance: Tolerance, given: Tensor | LogWeights
) -> tuple[Counts, Tensor]:
    epsilon = threshold(tolerance, found.largest, given.shape, given.dtype)
    delta = torch.as_tensor(found.error)
    if not isinstance(tolerance, Absolute):
        # σ₁, which ε is a share of, is known to the same accuracy as the others.
        delta = delta * (1 + fraction_of_largest(tolerance, given.shape, given.dtype))
    rank = numerical_rank(found, epsilon, delta)
    return rank.about(given.dtype, logits=isinstance(given, LogWeights)), epsilon


def _narrower(one: Counts, other: Counts) -> Counts:
    """For each matrix the certificate whose interval is shorter; the first where both are."""
    pairs = zip(one.flat, other.flat, strict=True)
    better = [b if b.high - b.low < a.high - a.low else a for a, b in pairs]
    return Counts.of(better, one.shape).about(one.dtype, logits=one.logits)
