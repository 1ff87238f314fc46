"""Certified counts: Certificate for one matrix, Counts for a batch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.errors import BadInputError, UndecidedError
from headwise.report.results import Drawable, Tabular
from headwise.shapes import Float, Int


def reason_for_interval(
    delta: float, dtype: torch.dtype = torch.float64, *, logits: bool = False
) -> str:
    """Say in one line why a count is an interval, and what would make it a single number."""
    if not math.isfinite(delta):
        return "the numbers overflow float64; divide the matrix and the tolerance by its largest"
    if dtype == torch.float64:
        return (
            f"singular values are known to within {delta:.1g}, and some lie that close to the "
            "tolerance; try another tolerance"
        )
    hidden = f"{str(dtype).removeprefix('torch.')} hides whatever is below {delta:.1g}"
    other = "float64 numbers" if logits else "the float64 logits, or queries and keys"
    return f"{hidden}; pass {other}"


@dataclass(frozen=True, eq=False)
class Certificate:
    """The number of singular values of at least ε, as a proven interval.

    Args:
        low: The count that is certain.
        high: The largest count that is possible.
        delta: The proven bound on the error of the computed singular values. Low and high differ
            only if a singular value may lie within ``delta`` of ε.
        method: The method that counted.
        reason: Why low and high differ and what would help; None if they are equal.

    A certificate equals the number that it is certain of. A number inside an interval is neither
    equal nor different, so comparing them raises UndecidedError.

    Example:
        >>> int(Certificate(3, 3, delta=1e-12, method="svd"))
        3
        >>> Certificate(3, 3, 1e-12, "svd") == 3, Certificate(3, 5, 1e-2, "svd") == 6
        (True, False)
    """

    low: int
    high: int
    delta: float
    method: str
    reason: str | None = None

    @property
    def exact(self) -> bool:
        """Whether the interval is one number."""
        return self.low == self.high

    def __int__(self) -> int:
        if not self.exact:
            # A reason ends with what would make it a single number.
            help_ = "pass float64 logits instead of a rounded matrix, use a larger tolerance"
            raise UndecidedError(
                f"expected one number, got a rank between {self.low} and {self.high}",
                hint=f"{self.reason or help_}, or read .low and .high",
            )
        return self.low

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Certificate):
            return vars(self) == vars(other)
        if not isinstance(other, Integral):
            return NotImplemented
        return self.low <= int(other) <= self.high and int(self) == int(other)

    def __hash__(self) -> int:
        return hash(self.low)  # that of the number that it may equal

    def __str__(self) -> str:
        return str(self.low) if self.exact else f"{self.low} to {self.high}"


@dataclass(frozen=True, eq=False, repr=False)
class Counts(Tabular, Drawable):
    """The certificates of a batch of matrices, indexed like a NumPy array of the same shape.

    Args:
        low: The counts that are certain.
        high: The largest counts that are possible.
        delta: The bound on the error of the singular values of each matrix.
        methods: The method that counted each matrix, in the order of the flattened batch.
        dtype: The dtype of the input.
        logits: Whether the input was logits.

    ``to_frame`` has the columns index, low, high, delta, method and reason. ``plot`` draws the rank
    of each matrix, in the order of the flattened batch. The counts of a single matrix equal a
    number as its certificate does.

    Example:
        >>> from headwise.spectra import Certificate, Counts
        >>> counts = Counts.of([Certificate(3, 3, 0.0, "svd"), Certificate(2, 2, 0.0, "svd")])
        >>> counts.values, counts[1].low, len(counts)
        (tensor([3, 2]), 2, 2)
    """

    low: Int[Tensor, "*batch"]
    high: Int[Tensor, "*batch"]
    delta: Float[Tensor, "*batch"]
    methods: tuple[str, ...]
    dtype: torch.dtype = torch.float64
    logits: bool = False

    @classmethod
    def of(cls, counts: list[Certificate], shape: torch.Size | None = None) -> Counts:
        """Make a batch from single certificates."""
        shape = torch.Size([len(counts)]) if shape is None else shape
        return cls(
            torch.tensor([c.low for c in counts], dtype=torch.int64).reshape(shape),
            torch.tensor([c.high for c in counts], dtype=torch.int64).reshape(shape),
            torch.tensor([c.delta for c in counts], dtype=torch.float64).reshape(shape),
            tuple(c.method for c in counts),
        )

    @classmethod
    def by(cls, method: str, low: np.ndarray, high: np.ndarray, delta: np.ndarray) -> Counts:
        """Make a flat batch counted by one method; the arrays are not copied."""
        low_, high_, delta_ = (torch.from_numpy(part) for part in (low, high, delta))
        return cls(low_, high_, delta_, (method,) * len(low))

    def reshape(self, shape: torch.Size) -> Counts:
        """Return the same counts in another shape."""
        if shape == self.low.shape:
            return self
        low, high, delta = (part.reshape(shape) for part in (self.low, self.high, self.delta))
        return Counts(low, high, delta, self.methods, self.dtype, self.logits)

    def about(self, dtype: torch.dtype, *, logits: bool) -> Counts:
        """Return the same counts with the dtype and kind of their input."""
        return Counts(self.low, self.high, self.delta, self.methods, dtype, logits)

    @property
    def shape(self) -> torch.Size:
        """The shape of the batch."""
        return self.low.shape

    @property
    def exact(self) -> Tensor:
        """For each matrix, whether the interval is one number."""
        return self.low == self.high

    @property
    def values(self) -> Int[Tensor, "*batch"]:
        """The ranks as a tensor, if every one of them is certain."""
        # Nearly always all are certain, and one check is enough.
        if not torch.equal(self.low, self.high):
            undecided = int((~self.exact).sum())
            raise UndecidedError(
                f"{undecided} of {len(self.methods)} ranks are known only as intervals",
                hint="pass float64 logits instead of rounded matrices, use a larger "
                "tolerance, or read .low and .high",
            )
        return self.low

    @property
    def flat(self) -> list[Certificate]:
        """The certificates of the flattened batch."""
        rows = zip(
            self.low.flatten().tolist(),
            self.high.flatten().tolist(),
            self.delta.flatten().tolist(),
            self.methods,
            strict=True,
        )
        return [
            Certificate(low, high, delta, method, self._reason(low, high, delta))
            for low, high, delta, method in rows
        ]

    def _reason(self, low: int, high: int, delta: float) -> str | None:
        if low == high:
            return None
        return reason_for_interval(delta, self.dtype, logits=self.logits)

    def item(self) -> Certificate:
        """The certificate of a batch of one matrix."""
        if len(self.methods) != 1:
            raise BadInputError(
                f"there are {len(self.methods)} ranks, not one",
                hint="index the batch, or read .values",
            )
        return self.flat[0]

    def __len__(self) -> int:
        if self.low.ndim == 0:
            raise TypeError("len() of the count of one matrix; read it with .item()")
        return self.low.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.flat) if self.low.ndim == 1 else (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        at = np.arange(len(self.methods)).reshape(self.shape)[index]
        if np.ndim(at) == 0:
            return self.flat[int(at)]
        chosen = [self.flat[i] for i in np.ravel(at)]
        return Counts.of(chosen, torch.Size(at.shape)).about(self.dtype, logits=self.logits)

    def __int__(self) -> int:
        return int(self.item())

    def __eq__(self, other: object) -> bool:
        return self.item() == other if isinstance(other, Integral) else self is other

    __hash__ = None  # type: ignore[assignment]  # a batch may equal a number, and holds tensors

    def __repr__(self) -> str:
        open_ = int((~self.exact).sum())
        span = f"{int(self.low.min())} to {int(self.high.max())}"
        methods = ", ".join(sorted(set(self.methods))[:5])
        return (
            f"Counts(shape={tuple(self.shape)}, ranks {span}, {open_} not certain, "
            f"delta <= {float(self.delta.max()):.1e}, by {methods})"
        )

    def as_json(self) -> list[dict[str, Any]]:
        """Return one object per matrix, with values that JSON can write.

        Returns:
            The index in the batch, the rank as its low and high end, delta, method and reason.
        """
        return [
            {
                "index": list(place),
                "rank": {"low": one.low, "high": one.high},
                "method": one.method,
                "delta": one.delta,
                "reason": one.reason,
            }
            for place, one in zip(np.ndindex(*self.shape), self.flat, strict=True)
        ]

    def _rows(self) -> Iterator[dict[str, Any]]:
        for place, one in zip(np.ndindex(*self.shape), self.flat, strict=True):
            yield {"index": place} | vars(one)

    def _figure(self) -> Any:
        from headwise.spectra.figures import rank_figure

        return rank_figure(self.low.flatten().tolist(), self.high.flatten().tolist())


@dataclass(frozen=True)
class Estimate:
    """A mean from a simulation, with its standard error.

    Args:
        mean: The mean of the draws.
        stderr: The standard error of the mean.
        draws: The number of independent draws.

    Example:
        >>> print(Estimate(0.5, 0.01, 100))
        0.5000 ± 0.0100 (100 draws)
    """

    mean: float
    stderr: float
    draws: int

    @classmethod
    def of(cls, sample: Tensor) -> Estimate:
        """Estimate a mean from independent draws.

        Args:
            sample: The draws, at least two.

        Returns:
            Their mean and its standard error.

        Raises:
            BadInputError: If there are fewer than two draws.

        Example:
            >>> Estimate.of(torch.tensor([1.0, 3.0]))
            Estimate(mean=2.0, stderr=1.0, draws=2)
        """
        sample = sample.double().flatten()
        if sample.numel() < 2:
            raise BadInputError(
                f"{sample.numel()} draw gives no standard error", hint="draw at least two"
            )
        spread = float(sample.std()) / math.sqrt(sample.numel())
        return cls(float(sample.mean()), spread, sample.numel())

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.stderr:.4f} ({self.draws} draws)"
