"""Four numbers called rank, and the certified count: Count(low, high)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.errors import BadInputError, UndecidedError
from headwise.shapes import Float, Int
from headwise.spectra.spectrum import Spectrum


@dataclass(frozen=True)
class Count:
    """How many singular values are at least ε: certainly ``low``, at most ``high``.

    ``delta`` is the proven perturbation: the two differ only if a singular value may lie
    within ``delta`` of ε.

    >>> int(Count(3, 3, delta=1e-12, method="svd"))
    3
    """

    low: int
    high: int
    delta: float
    method: str

    @property
    def exact(self) -> bool:
        """Whether the interval is one number."""
        return self.low == self.high

    def __int__(self) -> int:
        if not self.exact:
            raise UndecidedError(
                f"the rank is between {self.low} and {self.high}: "
                f"the input is known only to within {self.delta:.1e} in norm",
                hint="pass float64 logits instead of a rounded matrix, use a larger "
                "tolerance, or read .low and .high",
            )
        return self.low

    __index__ = __int__

    def __str__(self) -> str:
        return str(self.low) if self.exact else f"{self.low} to {self.high}"


@dataclass(frozen=True, eq=False)
class Counts:
    """One Count per matrix of a batch.

    >>> counts = Counts.of([Count(3, 3, 0.0, "svd"), Count(2, 2, 0.0, "svd")])
    >>> counts.values
    tensor([3, 2])
    """

    low: Int[Tensor, "*batch"]
    high: Int[Tensor, "*batch"]
    delta: Float[Tensor, "*batch"]
    methods: tuple[str, ...]

    @classmethod
    def of(cls, counts: list[Count], shape: torch.Size | None = None) -> Counts:
        """A batch of counts from single ones."""
        shape = torch.Size([len(counts)]) if shape is None else shape
        return cls(
            torch.tensor([c.low for c in counts], dtype=torch.int64).reshape(shape),
            torch.tensor([c.high for c in counts], dtype=torch.int64).reshape(shape),
            torch.tensor([c.delta for c in counts], dtype=torch.float64).reshape(shape),
            tuple(c.method for c in counts),
        )

    @classmethod
    def by(cls, method: str, low: np.ndarray, high: np.ndarray, delta: np.ndarray) -> Counts:
        """A flat batch of counts, all by one method, from arrays that are given away.

        >>> import numpy as np
        >>> Counts.by("svd", *np.array([[3, 2], [3, 2]]), np.zeros(2)).values
        tensor([3, 2])
        """
        low_, high_, delta_ = (torch.from_numpy(part) for part in (low, high, delta))
        return cls(low_, high_, delta_, (method,) * len(low))

    def reshape(self, shape: torch.Size) -> Counts:
        """The same counts in another shape.

        >>> Counts.of([Count(3, 3, 0.0, "svd")]).reshape(torch.Size([1, 1])).values
        tensor([[3]])
        """
        if shape == self.low.shape:
            return self
        low, high, delta = (part.reshape(shape) for part in (self.low, self.high, self.delta))
        return Counts(low, high, delta, self.methods)

    @property
    def exact(self) -> Tensor:
        """Which of the intervals are one number."""
        return self.low == self.high

    @property
    def values(self) -> Int[Tensor, "*batch"]:
        """The ranks, if every one of them is certain."""
        # One question is enough where all are certain, as they are nearly always.
        if not torch.equal(self.low, self.high):
            undecided = int((~self.exact).sum())
            raise UndecidedError(
                f"{undecided} of {len(self)} ranks are known only as intervals",
                hint="pass float64 logits instead of rounded matrices, use a larger "
                "tolerance, or read .low and .high",
            )
        return self.low

    def __len__(self) -> int:
        return len(self.methods)

    def __iter__(self) -> Iterator[Count]:
        rows = zip(
            self.low.flatten().tolist(),
            self.high.flatten().tolist(),
            self.delta.flatten().tolist(),
            self.methods,
            strict=True,
        )
        return (Count(*row) for row in rows)

    def __getitem__(self, index: int) -> Count:
        return list(self)[index]

    def __int__(self) -> int:
        if len(self) != 1:
            raise BadInputError(
                f"there are {len(self)} ranks, not one",
                hint="index the batch, or read .values",
            )
        return int(self[0])


def numerical_rank(
    spectrum: Spectrum, epsilon: Float[Tensor, "*batch"], delta: Float[Tensor, "*batch"]
) -> Counts:
    """How many singular values are at least ε, given that each is known to within δ.

    >>> s = Spectrum(torch.tensor([1.0, 0.5, 0.1], dtype=torch.float64))
    >>> eps, delta = torch.tensor(0.2).double(), torch.tensor(1e-12).double()
    >>> int(numerical_rank(s, eps, delta))
    2
    """
    values = spectrum.whole()
    # What overflowed is known to no accuracy: no σ is sure, and each may count.
    delta = torch.where(delta.isfinite(), delta, torch.inf)
    low = (values >= (epsilon + delta).unsqueeze(-1)).sum(-1)
    high = (~(values < (epsilon - delta).unsqueeze(-1))).sum(-1)
    low = torch.where(delta.isfinite(), low, 0)
    methods = spectrum.methods or ("given",) * low.numel()
    return Counts(low.cpu(), high.cpu(), delta.cpu(), methods)


def stable_rank(spectrum: Spectrum) -> Float[Tensor, "*batch"]:
    """‖A‖_F² / ‖A‖₂²: at most the rank, and untouched by small singular values; 0 for zero.

    >>> float(stable_rank(Spectrum(torch.tensor([2.0, 2.0, 0.0], dtype=torch.float64))))
    2.0
    """
    top = spectrum.largest
    # Scale first: squares of values below 1e-154 would underflow.
    shares = spectrum.values / torch.where(top > 0, top, 1.0).unsqueeze(-1)
    rank = shares.square().sum(-1)
    if spectrum.unseen_energy is not None:
        rank = rank + spectrum.unseen_energy / torch.where(top > 0, top, 1.0).square()
    return rank


def effective_rank(spectrum: Spectrum) -> Float[Tensor, "*batch"]:
    """exp of the entropy of the singular values normalised to sum to one; 0 for zero.

    >>> round(float(effective_rank(Spectrum(torch.ones(5, dtype=torch.float64)))), 12)
    5.0
    """
    values = spectrum.whole()
    total = values.sum(-1, keepdim=True)
    shares = values / torch.where(total > 0, total, 1.0)
    entropy = torch.special.entr(shares).sum(-1)
    return torch.where(total.squeeze(-1) > 0, entropy.exp(), 0.0)


def energy_rank(spectrum: Spectrum, share: float) -> Int[Tensor, "*batch"]:
    """How many leading singular values hold ``share`` of the squared Frobenius norm.

    >>> int(energy_rank(Spectrum(torch.tensor([3.0, 1.0, 0.0], dtype=torch.float64)), 0.9))
    1
    """
    if not 0 < share < 1:
        raise BadInputError(
            f"an energy share must lie between 0 and 1, got {share!r}",
            hint="pass for example 0.9 or 0.99",
        )
    values = spectrum.whole()
    held = (values / torch.where(values[..., :1] > 0, values[..., :1], 1.0)).square().cumsum(-1)
    reached = held >= share * held[..., -1:]
    return torch.where(values[..., 0] > 0, (~reached).sum(-1) + 1, 0)
