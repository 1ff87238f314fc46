"""Spectrum: singular values in descending order, and what is known of those not listed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.errors import UndecidedError
from headwise.shapes import Float
from headwise.spectra.rounding import factorisation_error


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum:
    """Singular values of a batch of matrices, largest first, each known to within ``error``.

    ``unseen`` singular values are not listed (a leading spectrum); each is at most the last
    one listed, and their squares sum to ``unseen_energy``.

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
        """Sum of the squares of all singular values: the squared Frobenius norm."""
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
    """Return all singular values by a float64 decomposition, the reference for other methods.

    >>> svd_spectrum(torch.diag(torch.tensor([1.0, 2.0]))).values
    tensor([2., 1.], dtype=torch.float64)
    """
    values = torch.linalg.svdvals(matrix.double())
    error = factorisation_error(values[..., 0], max(matrix.shape[-2:]))
    return Spectrum(values, error=error, methods=("svd",) * error.numel())
