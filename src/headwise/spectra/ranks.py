"""A spectrum, the rules for which singular values count, and four definitions of rank."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.checks import fraction, positive
from headwise.errors import ParameterError, UndecidedError
from headwise.rank_arguments import tolerance_parts
from headwise.shapes import Float, Int
from headwise.spectra.certificate import Counts
from headwise.spectra.sources import decomposition_error


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """Singular values of a batch of matrices, largest first.

    Args:
        values: The singular values (..., k).
        error: The bound on the error of each value.
        methods: The method that measured each matrix, in the order of the flattened batch.
        unseen: How many more singular values there are; each is at most the last one listed.
        unseen_energy: The sum of their squares.

    Example:
        >>> s = Spectrum(torch.tensor([3.0, 0.0], dtype=torch.float64))
        >>> float(s.largest), float(s.energy)
        (3.0, 9.0)
    """

    values: Float[Tensor, "*batch k"]
    error: Tensor | float = 0.0
    methods: tuple[str, ...] = ()
    unseen: int = 0
    unseen_energy: Tensor | None = None

    @property
    def largest(self) -> Float[Tensor, "*batch"]:
        """σ₁, the spectral norm."""
        return self.values[..., 0]

    @property
    def energy(self) -> Float[Tensor, "*batch"]:
        """The squared Frobenius norm: the sum of the squares of all singular values."""
        seen = self.values.square().sum(-1)
        return seen if self.unseen_energy is None else seen + self.unseen_energy

    def __repr__(self) -> str:
        *batch, known = self.values.shape
        return (
            f"Spectrum(shape={tuple(batch)}, {known} singular values, {self.unseen} not known, "
            f"largest {float(self.largest.max()):.4g}, by {', '.join(sorted(set(self.methods)))})"
        )

    def whole(self) -> Float[Tensor, "*batch k"]:
        """The values, if none is missing."""
        if self.unseen:
            raise UndecidedError(
                f"only {self.values.shape[-1]} leading singular values are known, "
                f"{self.unseen} are not",
                hint="take the whole spectrum, or ask for the stable rank",
            )
        return self.values


def svd_spectrum(matrix: Float[Tensor, "*batch n m"]) -> Spectrum:
    """Return all singular values by a float64 decomposition, the reference for other methods."""
    values = torch.linalg.svdvals(matrix.double())
    error = decomposition_error(values[..., 0], max(matrix.shape[-2:]), values.device)
    return Spectrum(values, error=error, methods=("svd",) * error.numel())


@dataclass(frozen=True)
class Absolute:
    """Count singular values of at least ε.

    Args:
        epsilon: The threshold ε.

    Example:
        >>> Absolute(1e-8)
        Absolute(epsilon=1e-08)
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive("absolute tolerance", self.epsilon, example=1e-8)


@dataclass(frozen=True)
class Relative:
    """Count singular values of at least a fraction of the largest one.

    Args:
        fraction: The fraction of σ₁.

    Raises:
        ParameterError: If the fraction is not between 0 and 1.

    Example:
        >>> Relative(0.01)
        Relative(fraction=0.01)
    """

    fraction: float

    def __post_init__(self) -> None:
        fraction("a relative tolerance", self.fraction, example=1e-6)


@dataclass(frozen=True)
class DtypeFloor:
    """Count singular values above the rounding of the input's dtype.

    The fraction of σ₁ is max(n, m) times the dtype's machine epsilon, as in numpy and torch.

    Example:
        >>> DtypeFloor()
        DtypeFloor()
    """


Tolerance = Absolute | Relative | DtypeFloor

#: The rank paper's rule, and headwise's default: ε = 1e-8, absolute.
PAPER_TOLERANCE = Absolute(1e-8)


def as_tolerance(rule: Tolerance | float | str) -> Tolerance:
    """Return the rule itself, a number as an absolute tolerance, or the rule that a text names."""
    if isinstance(rule, str):
        return _named(rule)
    if isinstance(rule, Absolute | Relative | DtypeFloor):
        return rule
    if isinstance(rule, int | float) and not isinstance(rule, bool):
        return Absolute(positive("absolute tolerance", rule, example=1e-8))
    raise ParameterError(
        f"a tolerance cannot be {rule!r}",
        hint="pass Absolute(1e-8), Relative(1e-6), DtypeFloor(), or a number (absolute)",
    )


def _named(text: str) -> Tolerance:
    kind, number = tolerance_parts(text)
    if number is None:
        return DtypeFloor()
    return Absolute(number) if kind == "absolute" else Relative(number)


def fraction_of_largest(
    rule: Relative | DtypeFloor, shape: torch.Size, dtype: torch.dtype
) -> float:
    """Return the fraction of σ₁ below which a singular value counts as zero."""
    if isinstance(rule, Relative):
        return rule.fraction
    return max(shape[-2:]) * torch.finfo(dtype).eps


def threshold(
    rule: Tolerance, largest: Float[Tensor, "*batch"], shape: torch.Size, dtype: torch.dtype
) -> Float[Tensor, "*batch"]:
    """Return ε for matrices of this shape and dtype with these largest singular values."""
    if isinstance(rule, Absolute):
        return torch.full_like(largest, rule.epsilon)
    return largest * fraction_of_largest(rule, shape, dtype)


def numerical_rank(
    spectrum: Spectrum, epsilon: Float[Tensor, "*batch"], delta: Float[Tensor, "*batch"]
) -> Counts:
    """Count the singular values of at least ε, given that each is known to within δ.

    Args:
        spectrum: The singular values.
        epsilon: ε for each matrix.
        delta: The bound δ on their error, for each matrix.

    Returns:
        Counts in the shape of the batch: an interval for each matrix, exact if its ends agree.

    Example:
        >>> s = Spectrum(torch.tensor([1.0, 0.5, 0.1], dtype=torch.float64))
        >>> eps, delta = torch.tensor(0.2).double(), torch.tensor(1e-12).double()
        >>> int(numerical_rank(s, eps, delta))
        2
    """
    values = spectrum.whole()
    # After an overflow nothing is known: no σ is certain, and each may count.
    delta = torch.where(delta.isfinite(), delta, torch.inf)
    low = (values >= (epsilon + delta).unsqueeze(-1)).sum(-1)
    high = (~(values < (epsilon - delta).unsqueeze(-1))).sum(-1)
    low = torch.where(delta.isfinite(), low, 0)
    methods = spectrum.methods or ("given",) * low.numel()
    return Counts(low.cpu(), high.cpu(), delta.cpu(), methods)


def stable_rank(spectrum: Spectrum) -> Float[Tensor, "*batch"]:
    """Compute ‖A‖_F² / ‖A‖₂²: at most the rank, and insensitive to small singular values.

    Args:
        spectrum: The singular values.

    Returns:
        One number per matrix; 0 for a zero matrix.

    Example:
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
    """Compute exp of the entropy of the singular values, normalised to sum to one.

    Args:
        spectrum: The singular values.

    Returns:
        One number per matrix; 0 for a zero matrix.

    Example:
        >>> round(float(effective_rank(Spectrum(torch.ones(5, dtype=torch.float64)))), 12)
        5.0
    """
    values = spectrum.whole()
    total = values.sum(-1, keepdim=True)
    shares = values / torch.where(total > 0, total, 1.0)
    entropy = torch.special.entr(shares).sum(-1)
    return torch.where(total.squeeze(-1) > 0, entropy.exp(), 0.0)


def energy_rank(spectrum: Spectrum, share: float) -> Int[Tensor, "*batch"]:
    """Count the leading singular values that hold ``share`` of the squared Frobenius norm.

    Args:
        spectrum: The singular values.
        share: A share between 0 and 1.

    Returns:
        Integers in the shape of the batch, one count for each matrix.

    Raises:
        ParameterError: If the share is out of range.

    Example:
        >>> int(energy_rank(Spectrum(torch.tensor([3.0, 1.0, 0.0], dtype=torch.float64)), 0.9))
        1
    """
    share = fraction("`share`", share)
    values = spectrum.whole()
    held = (values / torch.where(values[..., :1] > 0, values[..., :1], 1.0)).square().cumsum(-1)
    reached = held >= share * held[..., -1:]
    return torch.where(values[..., 0] > 0, (~reached).sum(-1) + 1, 0)
