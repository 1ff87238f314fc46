"""When does a singular value count as zero? Three rules, each with its own threshold ε."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.errors import ParameterError
from headwise.shapes import Float


def _refuse_unless_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ParameterError(
            f"{name} must be a positive number, got {value!r}",
            hint="pass a value above zero, for example 1e-8",
        )


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
        _refuse_unless_positive("an absolute tolerance", self.epsilon)


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
        _refuse_unless_positive("a relative tolerance", self.fraction)
        if self.fraction >= 1:
            raise ParameterError(
                f"a relative tolerance must be below 1, got {self.fraction!r}",
                hint="it is a fraction of the largest singular value, for example 1e-6",
            )


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
        return Absolute(float(rule))
    raise ParameterError(
        f"a tolerance cannot be {rule!r}",
        hint="pass Absolute(1e-8), Relative(1e-6), DtypeFloor(), or a number (absolute)",
    )


def _named(text: str) -> Tolerance:
    if text == "dtype":
        return DtypeFloor()
    kind, _, number = text.rpartition(":")
    rules = {"": Absolute, "absolute": Absolute, "relative": Relative}
    try:
        rule, value = rules[kind], float(number)
    except (KeyError, ValueError):
        raise ParameterError(
            f"tolerance {text!r} is not a rule", hint="pass 1e-8, relative:1e-6 or dtype"
        ) from None
    return rule(value)


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
