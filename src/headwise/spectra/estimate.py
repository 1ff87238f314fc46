"""Estimate: a mean with its standard error and number of draws."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from headwise.errors import BadInputError


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
