"""Measure a rank or a spectrum with the cheapest method that can answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.report.results import Drawable, Tabular
from headwise.shapes import Float, Int
from headwise.spectra.certificate import Counts
from headwise.spectra.counting import SMALLEST_SPARSE, count_at
from headwise.spectra.dense import dense_chunks, flat_batch
from headwise.spectra.dominant import DominantEntries, dominant_entries, dominant_weights
from headwise.spectra.near_hardmax import block_rounding, spectrum_near_hardmax
from headwise.spectra.ranks import (
    PAPER_TOLERANCE,
    Absolute,
    Spectrum,
    Tolerance,
    as_tolerance,
    effective_rank,
    energy_rank,
    fraction_of_largest,
    numerical_rank,
    stable_rank,
    svd_spectrum,
    threshold,
)
from headwise.spectra.sources import (
    LogWeights,
    Source,
    as_source,
    made_on_cpu,
    neglected_couplings,
    refuse_bad_rows,
    refuse_flushed,
)

#: The smallest singular value of interest when entries are dropped.
FINEST = 1e-9

#: Entries are dropped only where the largest singular value lies in this range.
SMALLEST_LARGEST, LARGEST = 1e-3, 1e100


def whole_spectrum(source: Tensor | LogWeights) -> Spectrum:
    """Return all singular values of each matrix, with a bound on their error."""
    flat = flat_batch(source)
    batch, size = flat.shape[0], min(flat.shape[-2:])
    values = torch.zeros(batch, size, dtype=torch.float64)
    error = torch.zeros(batch, dtype=torch.float64)
    sparse = np.zeros(batch, dtype=bool)
    if size >= SMALLEST_SPARSE:
        sparse = _fill_sparse(flat, values, error)
    for chunk in dense_chunks(flat, torch.from_numpy(np.flatnonzero(~sparse))):
        found = svd_spectrum(chunk.fresh())
        values[chunk.numbers] = found.values.cpu()
        off = found.error + chunk.doubt() + chunk.scaling * found.largest
        error[chunk.numbers] = off.cpu()
    methods = tuple("near-hardmax" if s else "svd" for s in sparse.tolist())
    shape = source.shape[:-2]
    return Spectrum(values.reshape(*shape, size), error.reshape(shape), methods)


def _fill_sparse(flat: Tensor | LogWeights, values: Tensor, error: Tensor) -> np.ndarray:
    """Fill in the rows of the matrices that are nearly one-hot; return which those are."""
    find = dominant_weights if isinstance(flat, LogWeights) else dominant_entries
    entries = find(flat, FINEST)  # type: ignore[arg-type]
    sparse: np.ndarray = entries.sparse
    if sparse.any():
        found = torch.from_numpy(_of_entries(entries))
        largest = found[:, 0].numpy()
        # Of small matrices too much was dropped, and squares of huge numbers are infinite.
        sparse = np.asarray(sparse & (largest >= SMALLEST_LARGEST) & (largest < LARGEST))
        doubt = torch.from_numpy(entries.doubt + entries.moved(largest) + block_rounding(entries))
        values[sparse], error[sparse] = found[sparse], doubt[sparse]
    return sparse


def _of_entries(entries: DominantEntries) -> np.ndarray:
    """Return the singular values of the entries; none where one of these is huge."""
    huge = np.zeros(entries.batch, dtype=bool)
    huge[entries.matrix_of_entry[np.abs(entries.values) >= LARGEST]] = True
    return spectrum_near_hardmax(entries.only(~huge) if huge.any() else entries)


def distinct_columns(winners: Int[Tensor, "*batch n"], columns: int) -> Int[Tensor, "*batch"]:
    """Count the different columns among the winners of the rows."""
    seen = torch.zeros(*winners.shape[:-1], columns, dtype=torch.bool, device=winners.device)
    seen.scatter_(-1, winners, torch.ones_like(winners, dtype=torch.bool))
    return seen.sum(-1)


def first_within(
    scores: Float[Tensor, "*batch n m"], top: Float[Tensor, "*batch n"], allowance: Tensor | float
) -> Int[Tensor, "*batch n"]:
    """Return the first column of each row that scores within ``allowance`` of its ``top``."""
    near = scores >= (top - allowance).unsqueeze(-1)
    # argmax over bytes finds the first of equal values, faster than over 8-byte numbers.
    return near.view(torch.uint8).argmax(-1)


def hardmax_rank(source: LogWeights) -> Int[Tensor, "*batch"]:
    """Return the exact rank of the row-wise hardmax; a tie goes to the first column.

    Scores are tied if their errors do not separate them: equal keys have equal scores, but a
    matrix product may round them differently. The temperature does not matter (T → 0).

    Raises:
        BadInputError: The error of a row is infinite, so any of its columns may be the largest.
    """
    top = source.values.amax(-1)
    refuse_bad_rows(top)
    unknown = int((source.row_error == torch.inf).sum())
    if unknown:
        raise BadInputError(
            f"the log-weights of {unknown} rows are known to within infinity only",
            hint="pass smaller log-weights",
        )
    winners = first_within(source.values, top, 2 * source.row_error)
    return distinct_columns(winners, source.shape[-1])


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Tabular, Drawable):
    """The ranks and the spectrum of a batch of matrices.

    Args:
        rank: The certified numerical ranks.
        spectrum: The singular values.
        tolerance: The rule that says which singular values count.
        epsilon: The ε that the rule gave for each matrix.
        shape: The shape of the input.
        dtype: The dtype of the input.

    ``to_frame`` has the columns of ``rank.to_frame()``, then epsilon, stable_rank and
    effective_rank. ``plot`` draws the singular values of the first eight matrices, and ε.

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

    def as_json(self) -> list[dict[str, Any]]:
        """Return one object per matrix, with values that JSON can write.

        Returns:
            The objects of ``rank.as_json()``, with tolerance, stable_rank and effective_rank.
        """
        numbers = {
            "tolerance": self.epsilon,
            "stable_rank": self.stable_rank,
            "effective_rank": self.effective_rank,
        }
        listed = {name: each.flatten().tolist() for name, each in numbers.items()}
        return [
            one | {name: each[place] for name, each in listed.items()}
            for place, one in enumerate(self.rank.as_json())
        ]

    def _rows(self) -> Iterator[dict[str, Any]]:
        numbers = (self.epsilon, self.stable_rank, self.effective_rank)
        columns = zip(*(each.flatten().tolist() for each in numbers), strict=True)
        for row, (epsilon, stable, effective) in zip(self.rank._rows(), columns, strict=True):
            others = {"epsilon": epsilon, "stable_rank": stable, "effective_rank": effective}
            yield row | others

    def _figure(self) -> Any:
        from headwise.spectra.figures import spectrum_figure

        values = self.spectrum.values
        flat = values.reshape(-1, values.shape[-1]).tolist()
        rows = zip(np.ndindex(*self.rank.shape), flat, strict=True)
        return spectrum_figure(rows, float(self.epsilon.flatten()[0]))

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
    with made_on_cpu():
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
    with made_on_cpu():
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
    with made_on_cpu():
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
    if isinstance(rule, Absolute):
        refuse_flushed(rule.epsilon)
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
    delta, moved = torch.as_tensor(found.error), neglected_couplings(epsilon)
    if not isinstance(tolerance, Absolute):
        # ε is a share of σ₁, which is known to the same accuracy as the others.
        delta = delta * (1 + fraction_of_largest(tolerance, given.shape, given.dtype))
        moved = 2 * moved
    rank = numerical_rank(found, epsilon, delta + moved)
    return rank.about(given.dtype, logits=isinstance(given, LogWeights)), epsilon


def _narrower(one: Counts, other: Counts) -> Counts:
    """Take for each matrix the certificate with the shorter interval; the first on a tie."""
    pairs = zip(one.flat, other.flat, strict=True)
    better = [b if b.high - b.low < a.high - a.low else a for a, b in pairs]
    return Counts.of(better, one.shape).about(one.dtype, logits=one.logits)
