"""Spectrum: singular values in descending order, and bounds on those not listed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.errors import UndecidedError
from headwise.shapes import Float
from headwise.spectra.rounding import factorisation_error


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
    error = factorisation_error(values[..., 0], max(matrix.shape[-2:]))
    return Spectrum(values, error=error, methods=("svd",) * error.numel())
