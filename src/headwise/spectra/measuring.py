"""Measure a rank or a spectrum with the cheapest method that can answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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

    Args:
        rank: The certified numerical ranks.
        spectrum: The singular values.
        tolerance: The rule that says which singular values count.
        epsilon: The ε that the rule gave for each matrix.
        shape: The shape of the input.
        dtype: The dtype of the input.

    Example:
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

    def plot(self, file: str | Path | None = None) -> Any:
        """Draw the singular values of the first eight matrices, and ε as a dashed line.

        Args:
            file: Where to save the figure, if anywhere.

        Returns:
            The matplotlib figure.
        """
        from headwise.spectra.figures import spectrum_figure

        values = self.spectrum.values
        flat = values.reshape(-1, values.shape[-1]).tolist()
        rows = zip(np.ndindex(*self.rank.shape), flat, strict=True)
        return spectrum_figure(rows, float(self.epsilon.flatten()[0]), file)

    @property
    def stable_rank(self) -> Tensor:
        """The stable rank ‖A‖_F² / ‖A‖₂²."""
        return stable_rank(self.spectrum)

    @property
    def effective_rank(self) -> Tensor:
        """The effective rank: exp of the entropy of the normalised singular values."""
        return effective_rank(self.spectrum)

    def energy_rank(self, share: float) -> Tensor:
        """Count the leading singular values that hold ``share`` of the squared Frobenius norm."""
        return energy_rank(self.spectrum, share)


def count(
    source: Source, tolerance: Tolerance | float = PAPER_TOLERANCE, method: str = "cheapest"
) -> Counts:
    """Count the singular values of at least ε of each matrix, without computing all of them.

    Args:
        source: Matrices (..., rows, columns), or ``LogWeights`` whose softmax is the matrix.
        tolerance: The rule for ε, or ε itself.
        method: "cheapest", or one of "near-hardmax", "dense", "svd" and "inertia". A tolerance
            relative to σ₁ needs all singular values and ignores the method.

    Returns:
        One certificate per matrix; each names the method that counted.

    Raises:
        BadInputError: If the input is not a matrix of finite numbers, or the method is unknown.

    Example:
        >>> int(count(torch.ones(5, 5, dtype=torch.float64)))
        1
    """
    given, rule = as_source(source), as_tolerance(tolerance)
    return _certified(given, rule, method=method)[0]


def spectrum(source: Source) -> Spectrum:
    """Compute all singular values of each matrix.

    Args:
        source: Matrices (..., rows, columns), or ``LogWeights`` whose softmax is the matrix.

    Returns:
        The singular values, largest first, with a bound on their error.

    Raises:
        BadInputError: If the input is not a matrix of finite numbers.

    Example:
        >>> spectrum(torch.eye(2, dtype=torch.float64)).values
        tensor([1., 1.], dtype=torch.float64)
    """
    return whole_spectrum(as_source(source))


def measure(source: Source, tolerance: Tolerance | float = PAPER_TOLERANCE) -> Measurement:
    """Measure the rank, the singular values and what follows from them, for each matrix.

    If you need only the rank, call ``count``: it is faster and gives the same interval.

    Args:
        source: Matrices (..., rows, columns), or ``LogWeights`` whose softmax is the matrix.
        tolerance: The rule for ε, or ε itself.

    Returns:
        The certified ranks, and the spectrum.

    Raises:
        BadInputError: If the input is not a matrix of finite numbers.

    Example:
        >>> int(measure(LogWeights(torch.zeros(3, 3, dtype=torch.float64))).rank)
        1
    """
    given, rule = as_source(source), as_tolerance(tolerance)
    found = whole_spectrum(given)
    rank, epsilon = _certified(given, rule, found=found)
    return Measurement(rank, found, rule, epsilon, given.shape, given.dtype)


def _certified(
    given: Tensor | LogWeights,
    rule: Tolerance,
    *,
    found: Spectrum | None = None,
    method: str = "cheapest",
) -> tuple[Counts, Tensor]:
    """Return the counts and ε: the only place that chooses between counting and a known spectrum.

    A known spectrum gives the count at no cost. If it leaves a count open, count the matrix.
    """
    if found is None and isinstance(rule, Absolute):
        rank = count_at(given, rule.epsilon, method)
        return rank, torch.full_like(rank.delta, rule.epsilon)
    rank, epsilon = _rank(whole_spectrum(given) if found is None else found, rule, given)
    exact = given.is_exact if isinstance(given, LogWeights) else given.dtype == torch.float64
    if isinstance(rule, Absolute) and exact and not bool(rank.exact.all()):
        # Rounded input stays uncertain; for exact input a method that drops nothing may decide.
        rank = _narrower(rank, count_at(given, rule.epsilon, "dense"))
    return rank, epsilon


def _rank(
    found: Spectrum, tolerance: Tolerance, given: Tensor | LogWeights
) -> tuple[Counts, Tensor]:
    epsilon = threshold(tolerance, found.largest, given.shape, given.dtype)
    delta = torch.as_tensor(found.error)
    if not isinstance(tolerance, Absolute):
        # ε is a share of σ₁, which is known to the same accuracy as the others.
        delta = delta * (1 + fraction_of_largest(tolerance, given.shape, given.dtype))
    rank = numerical_rank(found, epsilon, delta)
    return rank.about(given.dtype, logits=isinstance(given, LogWeights)), epsilon


def _narrower(one: Counts, other: Counts) -> Counts:
    """Take for each matrix the certificate with the shorter interval; the first on a tie."""
    pairs = zip(one.flat, other.flat, strict=True)
    better = [b if b.high - b.low < a.high - a.low else a for a, b in pairs]
    return Counts.of(better, one.shape).about(one.dtype, logits=one.logits)
