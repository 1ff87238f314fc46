"""Random heads to simulate: where the queries and the keys come from is an argument.

An ensemble draws a batch of heads at once. It may return more queries than the length when they
are interchangeable; the simulation then averages over every choice of n among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from headwise.checks import whole
from headwise.errors import BadInputError
from headwise.shapes import Float

#: Draws an array of independent entries: (shape, generator) → float64 tensor.
Entries = Callable[[tuple[int, ...], torch.Generator], Tensor]

#: Where heads are drawn unless tensors say otherwise.
CPU = torch.device("cpu")

#: Interchangeable queries drawn per key set, in lengths: the second half costs no new keys and
#: more than halves the noise of the queries.
ROUNDS = 2


def normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Independent N(0, 1) entries."""
    return torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float64)


def uniform(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Independent entries, uniform on (−1, 1)."""
    unit = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    return 2 * unit - 1


@runtime_checkable
class Ensemble(Protocol):
    """A law of random heads."""

    @property
    def length(self) -> int:
        """n, the number of keys."""
        ...

    @property
    def device(self) -> torch.device:
        """Where the heads are drawn."""
        ...

    def draw(
        self, heads: int, generator: torch.Generator
    ) -> tuple[Float[Tensor, "heads q d"], Float[Tensor, "heads n d"]]:
        """Queries and keys of this many independent heads."""
        ...


@dataclass(frozen=True)
class IndependentHead:
    """Queries and keys with independent entries: what orthonormal inputs make of Gaussian weights.

    >>> head = IndependentHead(8, 2)
    >>> [part.shape for part in head.draw(5, torch.Generator().manual_seed(0))]
    [torch.Size([5, 16, 2]), torch.Size([5, 8, 2])]
    """

    length: int
    head_dim: int
    entries: Entries = normal
    device: torch.device = CPU

    def __post_init__(self) -> None:
        whole("the length", self.length)
        whole("the head dimension", self.head_dim)

    def draw(self, heads: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Queries and keys of this many independent heads."""
        queries = self.entries((heads, ROUNDS * self.length, self.head_dim), generator)
        return queries, self.entries((heads, self.length, self.head_dim), generator)


#: Numbers in the inputs and weights that are drawn at once: 2²² are 32 MiB.
_AT_ONCE = 2**22


@dataclass(frozen=True)
class RandomInputHead:
    """Queries X·W_Q and keys X·W_K, with inputs X and Gaussian weights drawn again for each head.

    ``inputs`` draws X: ``orthonormal`` rows, or ``nearly_orthonormal`` ones.

    >>> head = RandomInputHead(8, 2, width=12, inputs=orthonormal)
    >>> [part.shape for part in head.draw(5, torch.Generator().manual_seed(0))]
    [torch.Size([5, 8, 2]), torch.Size([5, 8, 2])]
    """

    length: int
    head_dim: int
    width: int
    inputs: Entries
    device: torch.device = CPU

    def __post_init__(self) -> None:
        for name, size in (("length", self.length), ("head dimension", self.head_dim)):
            whole(f"the {name}", size)
        whole("the width", self.width)

    def draw(self, heads: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Queries and keys of this many independent heads."""
        size = self.length * self.width + 2 * min(self.length, self.width) * self.head_dim
        together = max(1, _AT_ONCE // size)
        sizes = [min(together, heads - start) for start in range(0, heads, together)]
        pairs = [self._draw(size, generator) for size in sizes]
        return torch.cat([q for q, _ in pairs]), torch.cat([k for _, k in pairs])

    def _draw(self, heads: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        inputs = self.inputs((heads, self.length, self.width), generator)
        if self.length < self.width:
            # A Gaussian matrix looks the same in every basis, so weights are drawn in one of the
            # inputs' span: length rows of them and not width.
            inputs = torch.linalg.qr(inputs.mT, mode="r").R.mT
        shape = (heads, min(self.length, self.width), self.head_dim)
        return inputs @ normal(shape, generator), inputs @ normal(shape, generator)


def orthonormal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Matrices with orthonormal rows, uniform among all of them."""
    *_, rows, columns = shape
    if rows > columns:
        raise BadInputError(
            f"{rows} rows in {columns} dimensions cannot be orthonormal",
            hint=f"pass a width of at least {rows}",
        )
    q, r = torch.linalg.qr(normal(shape, generator).mT)
    # The signs that make R's diagonal positive make Q uniform.
    return (q * torch.diagonal(r, dim1=-2, dim2=-1).sgn().unsqueeze(-2)).mT


def nearly_orthonormal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Independent uniform unit rows: their inner products are of size 1/√width.

    >>> inputs = nearly_orthonormal((3, 400), torch.Generator().manual_seed(0))
    >>> bool((inputs @ inputs.mT - torch.eye(3).double()).abs().max() < 0.2)
    True
    """
    return torch.nn.functional.normalize(normal(shape, generator), dim=-1)


def almost_orthonormal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Orthonormal rows plus N(0, 1) noise times 1e-11: they satisfy Theorem 1's hypothesis."""
    return orthonormal(shape, generator) + 1e-11 * normal(shape, generator)


#: Up to this width, Gaussian matrices are cheaper to draw than to avoid.
WIDE = 256


def narrowed(inputs: Float[Tensor, "n d"]) -> Float[Tensor, "n k"]:
    """Return rows with the same inner products and, if they are wide, at most n columns.

    ``WideHead`` and ``PlateauHead`` of both have the same distribution, because a Gaussian matrix
    stays Gaussian when it is rotated. Equal rows stay equal to the last bit.

    >>> narrowed(torch.randn(3, 5000).double()).shape
    torch.Size([3, 3])
    """
    n, d = inputs.shape
    if d <= max(n, WIDE):
        return inputs
    different, place = inputs.unique(dim=0, return_inverse=True)
    return torch.linalg.qr(different.mT, mode="r").R.mT[place]


@dataclass(frozen=True, eq=False)
class _OfInputs:
    """What every ensemble over given inputs shares."""

    inputs: Float[Tensor, "n d"]

    @property
    def length(self) -> int:
        """The number of input rows."""
        return self.inputs.shape[0]

    @property
    def device(self) -> torch.device:
        """Where the inputs are."""
        return self.inputs.device


@dataclass(frozen=True, eq=False)
class InputHead(_OfInputs):
    """Queries X·W_Q and keys X·W_K of your own inputs X, with random weights.

    >>> InputHead(torch.eye(4).double(), head_dim=2).length
    4
    """

    head_dim: int
    entries: Entries = normal

    def draw(self, heads: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Queries and keys of this many independent heads."""
        inputs, shape = self.inputs.double(), (heads, self.inputs.shape[1], self.head_dim)
        return inputs @ self.entries(shape, generator), inputs @ self.entries(shape, generator)


@dataclass(frozen=True, eq=False)
class WideHead(_OfInputs):
    """The limit d_h → ∞ of ``InputHead``: scores X·G·Xᵀ with one Gaussian matrix G.

    Rows of one head are correlated where inputs are; ``PlateauHead`` makes them independent.

    >>> WideHead(torch.eye(4).double()).length
    4
    """

    def draw(self, heads: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Queries and keys of this many independent heads."""
        keys = self.inputs.double()
        d = keys.shape[1]
        return keys @ normal((heads, d, d), generator), keys.expand(heads, -1, -1)


@dataclass(frozen=True, eq=False)
class PlateauHead(_OfInputs):
    """Every row of scores an independent N(0, X·Xᵀ): the rank paper's eqs. 66–72.

    >>> PlateauHead(torch.eye(4).double()).length
    4
    """

    def draw(self, heads: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Queries and keys of this many independent heads."""
        keys = self.inputs.double()
        shape = (heads, ROUNDS * self.length, keys.shape[1])
        return normal(shape, generator), keys.expand(heads, -1, -1)
