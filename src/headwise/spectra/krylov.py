"""Leading singular values of an operator: block Golub–Kahan with full reorthogonalisation.

After s steps with blocks of b columns, A V = U B holds to rounding with U and V orthonormal, and
Aᵀ U = V Bᵀ + V' L, where the last term is known. Golub, Luk and Overton, ACM TOMS 7 (1981).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.errors import ParameterError
from headwise.report.results import short_repr
from headwise.shapes import Float
from headwise.spectra.operators import Operator, own_precision
from headwise.spectra.sources import unit_roundoff

#: Products round each entry a few times; this many units in the last place are allowed for.
ROUNDINGS = 8.0


@dataclass(frozen=True, eq=False)
class LeadingSpectrum:
    """The largest singular values of an operator, and how well they are known.

    Args:
        values: The singular values, largest first.
        residuals: For each value, a distance within which a singular value of A lies.
        floor: Singular values below this are lost in the rounding of the products.
        right: The right singular vectors, one column for each value.

    Example:
        >>> from headwise.spectra import DenseOperator
        >>> found = leading_spectrum(DenseOperator(torch.diag(torch.arange(9.0).double())), 3)
        >>> [round(value, 6) for value in found.values.tolist()]
        [8.0, 7.0, 6.0]
    """

    values: Float[Tensor, " k"]
    residuals: Float[Tensor, " k"]
    floor: float
    right: Float[Tensor, "m k"]

    __repr__ = short_repr

    @property
    def resolved(self) -> int:
        """How many of the values lie above the floor."""
        return int((self.values > self.floor).sum())


@own_precision()
def leading_spectrum(
    operator: Operator,
    count: int,
    *,
    steps: int = 6,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: torch.device | None = None,
) -> LeadingSpectrum:
    """Compute the largest singular values of an operator from its products.

    Memory is O((n + m)·count·steps).

    Args:
        operator: A matrix known by its products, (n, m).
        count: How many singular values.
        steps: Block steps, each one product with A and one with Aᵀ.
        seed: Seed of the first block.
        dtype: The precision of the products; bases are kept in float32 or better.
        device: Where to compute.

    Returns:
        The values, with a residual for each and the floor that rounding sets.

    Raises:
        ParameterError: The count or the number of steps is below one.

    Example:
        >>> from headwise.spectra import DenseOperator
        >>> diagonal = torch.diag(torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64))
        >>> leading_spectrum(DenseOperator(diagonal), count=1).values.round(decimals=6)
        tensor([3.], dtype=torch.float64)
    """
    n, m = operator.shape[-2:]
    if count < 1 or steps < 1 or len(operator.shape) != 2:
        raise ParameterError(
            f"expected one matrix, at least one value and one step, got {tuple(operator.shape)}, "
            f"{count} and {steps}",
            hint="pass count=8 and steps=6, for example",
        )
    width = min(count, n, m)
    steps = max(1, min(steps, min(n, m) // width))
    kept = torch.float64 if dtype == torch.float64 else torch.float32
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(m, width, generator=generator, dtype=torch.float64).to(kept)
    walk = _Walk(operator, torch.linalg.qr(first.to(device) if device else first).Q)
    for _ in range(steps):
        walk.step()
    return walk.found(width, ROUNDINGS * unit_roundoff(dtype))


class _Walk:
    """The two bases, the coefficients of A V in U, and the rest of the last step."""

    def __init__(self, operator: Operator, start: Tensor) -> None:
        self.operator = operator
        self.right, self.left = start, start.new_empty(operator.shape[-2], 0)
        self.last, self.width = start, start.shape[1]
        self.columns: list[Tensor] = []
        self.rest = start.new_empty(0)

    def step(self) -> None:
        """Multiply the last block by A and by Aᵀ, and add what is new to the bases."""
        if self.columns:
            self.right = torch.cat([self.right, self.last], dim=1)
        image = self.operator.matmat(self.last).to(self.last)
        inside, new, size = _apart(image, self.left)
        self.left = torch.cat([self.left, new], dim=1)
        self.columns.append(torch.cat([inside, size]))
        back = self.operator.rmatmat(new).to(new)
        _, self.last, self.rest = _apart(back, self.right)

    def found(self, count: int, rounding: float) -> LeadingSpectrum:
        """Return the leading singular values of the small matrix, with their residuals."""
        total = self.left.shape[1]
        small = torch.zeros(total, total, dtype=torch.float64, device=self.left.device)
        for place, column in enumerate(self.columns):
            at = slice(place * self.width, (place + 1) * self.width)
            small[: len(column), at] = column.double()
        p, values, q = torch.linalg.svd(small)
        ends = p[-self.width :, :count]
        residuals = torch.linalg.vector_norm(self.rest.double() @ ends, dim=0)
        right = self.right @ q.mT[:, :count].to(self.right)
        return LeadingSpectrum(values[:count], residuals, rounding * float(values[0]), right)


def _apart(block: Tensor, basis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Split a block into its part in the basis and new orthonormal columns with coefficients."""
    # Twice is enough: one pass of Gram–Schmidt leaves what rounding put back.
    inside = basis.mT @ block
    block = block - basis @ inside
    again = basis.mT @ block
    block = block - basis @ again
    new, size = torch.linalg.qr(block)
    # Columns that vanish come out of QR in any direction: make them orthogonal to the basis too.
    if basis.shape[1]:
        new = torch.linalg.qr(new - basis @ (basis.mT @ new)).Q
        size = new.mT @ block
    return inside + again, new, size
