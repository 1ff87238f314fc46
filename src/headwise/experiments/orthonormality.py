"""How far are random vectors from orthonormal? ‖C − I‖_F / n² of their cosine similarities C."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, PositiveInt

from headwise.data.synthetic import InputLaw, random_tokens
from headwise.randomness import stream
from headwise.runs import Row, Spec, device

#: The most numbers of the vectors in memory at once: 2²² are 32 MiB.
_AT_ONCE = 2**22


class Orthonormality(Spec, frozen=True):
    """The rank paper's measure for N(0, 1) vectors or for inputs projected by N(0, 1) weights.

    Without ``width`` the vectors have ``head_dim`` independent N(0, 1) entries. With ``width`` they
    are inputs of that width, drawn from the distribution ``inputs``, times weights drawn for each
    batch item: keys at initialisation.

    >>> row = Orthonormality(head_dim=64, tokens=20, batch=8).ask()
    >>> abs(row["mean_square"] / row["expected_square"] - 1) < 0.1
    True
    """

    kind: Literal["orthonormality"] = "orthonormality"
    revision: Literal[1] = 1
    head_dim: PositiveInt
    tokens: Annotated[int, Field(ge=2)] = 100
    batch: Annotated[int, Field(ge=2)] = 32
    width: PositiveInt | None = None
    inputs: InputLaw = "normal(0,1)"
    dtype: Literal["float64"] = "float64"
    seed: int = 0

    def ask(self) -> Row:
        """Return mean and spread of the measure, and the expectation of its square."""
        found = torch.cat([distance_from_orthonormal(vectors) for vectors in self._vectors()])
        return {**mean_and_spread(found), "expected_square": self._expected_square()}

    def _vectors(self) -> Iterator[torch.Tensor]:
        """Yield vectors (part of the batch, n, d_h)."""
        size = self.tokens * (self.width or self.head_dim) + (self.width or 0) * self.head_dim
        together = max(1, _AT_ONCE // size)
        generator = stream(self.seed, "vectors")
        sizes = [min(together, self.batch - at) for at in range(0, self.batch, together)]
        return (self._drawn(items, generator).to(device()) for items in sizes)

    def _drawn(self, items: int, generator: torch.Generator) -> torch.Tensor:
        if self.width is None:
            return random_tokens(self.inputs, (items, self.tokens, self.head_dim), generator)
        inputs = random_tokens(self.inputs, (items, self.tokens, self.width), generator)
        weights = torch.randn(
            (items, self.width, self.head_dim), generator=generator, dtype=torch.float64
        )
        return inputs @ weights

    def _expected_square(self) -> float | None:
        """Return E‖C − I‖_F² / n⁴ if known: for Gaussian vectors and their projections."""
        if self.inputs != "normal(0,1)":
            return None
        n = self.tokens
        return n * (n - 1) * expected_square_cosine(self.head_dim, self.width) / n**4


def mean_and_spread(found: torch.Tensor) -> dict[str, Any]:
    """Return mean and spread of a measure and of its square, as columns of a row."""
    from headwise.spectra import Estimate

    mean, square = Estimate.of(found), Estimate.of(found.square())
    return {
        "mean": mean.mean,
        "std": float(found.std(correction=0)),
        "count": found.numel(),
        "stderr": mean.stderr,
        "mean_square": square.mean,
        "square_stderr": square.stderr,
    }


def expected_square_cosine(head_dim: int, width: int | None = None) -> float:
    """Return E cos² of two Gaussian vectors, after a Gaussian projection if ``width`` is given.

    Two N(0, I_d) vectors have E cos² = 1/d. Projected to r dimensions, vectors of cosine ρ
    have E cos² = 1 − (1 − 1/r)(1 − ρ²) ₂F₁(1, 1; r/2 + 1; ρ²), the mean of a squared sample
    correlation; ρ is the sine of an angle with density proportional to its cosine^(d − 2).
    """
    if width is None:
        return 1 / head_dim
    if width == 1:
        return 1.0  # on a line every cosine is ±1, projected or not
    import numpy as np
    from scipy import special

    from headwise.theory.numerics import rule_between

    # Beyond twelve standard deviations the integrand is negligible.
    angle, weight = rule_between(0.0, min(math.pi / 2, 12 / math.sqrt(width)), 400)
    weight = weight * np.exp((width - 2) * np.log(np.cos(angle)))
    t = np.sin(angle) ** 2
    square = 1 - (1 - 1 / head_dim) * (1 - t) * special.hyp2f1(1, 1, head_dim / 2 + 1, t)
    return float((weight * square).sum() / weight.sum())


def distance_from_orthonormal(vectors: torch.Tensor) -> torch.Tensor:
    """Return ‖C − I‖_F / n² of each set of n vectors (batch, n, d), on the CPU."""
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    apart = unit @ unit.mT
    # The diagonal is one by definition; any difference is rounding.
    apart.diagonal(dim1=-2, dim2=-1).zero_()
    return (torch.linalg.matrix_norm(apart) / vectors.shape[-2] ** 2).cpu()
