"""Operator: a matrix known only by its products, and two ways to make one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from headwise.report.results import short_repr
from headwise.shapes import Float


@runtime_checkable
class Operator(Protocol):
    """Anything with a shape that multiplies blocks of vectors from both sides.

    Example:
        >>> isinstance(DenseOperator(torch.eye(3)), Operator)
        True
    """

    @property
    def shape(self) -> torch.Size:
        """(..., n, m), batch dimensions first."""
        ...

    def matmat(self, block: Float[Tensor, "*batch m k"]) -> Float[Tensor, "*batch n k"]:
        """A times a block of columns."""
        ...

    def rmatmat(self, block: Float[Tensor, "*batch n k"]) -> Float[Tensor, "*batch m k"]:
        """Aᵀ times a block of columns."""
        ...


@dataclass(frozen=True, eq=False)
class DenseOperator:
    """A matrix held in memory, as an Operator.

    Args:
        matrix: The matrices (..., n, m).

    Example:
        >>> DenseOperator(torch.eye(3)).matmat(torch.ones(3, 1)).flatten()
        tensor([1., 1., 1.])
    """

    matrix: Float[Tensor, "*batch n m"]

    __repr__ = short_repr

    @property
    def shape(self) -> torch.Size:
        """The shape of the matrix."""
        return self.matrix.shape

    def matmat(self, block: Float[Tensor, "*batch m k"]) -> Float[Tensor, "*batch n k"]:
        """A times a block of columns."""
        return self.matrix @ block

    def rmatmat(self, block: Float[Tensor, "*batch n k"]) -> Float[Tensor, "*batch m k"]:
        """Aᵀ times a block of columns."""
        return self.matrix.mT @ block


@dataclass(frozen=True, eq=False)
class FunctionalOperator:
    """A matrix given by two functions.

    Args:
        shape: The shape (..., n, m), batch dimensions first.
        forward: The function that multiplies A by a block of columns.
        transposed: The function that multiplies Aᵀ by a block of columns.

    Example:
        >>> twice = FunctionalOperator(torch.Size([3, 3]), lambda x: 2 * x, lambda y: 2 * y)
        >>> twice.matmat(torch.ones(3, 1)).flatten()
        tensor([2., 2., 2.])
    """

    shape: torch.Size
    forward: Callable[[Tensor], Tensor]
    transposed: Callable[[Tensor], Tensor]

    def matmat(self, block: Tensor) -> Tensor:
        """A times a block of columns."""
        return self.forward(block)

    def rmatmat(self, block: Tensor) -> Tensor:
        """Aᵀ times a block of columns."""
        return self.transposed(block)


@contextmanager
def own_precision() -> Iterator[None]:
    """Compute in the dtype of the numbers, also where autocast would round products to 16 bits.

    Yields:
        Nothing.
    """
    with ExitStack() as stack:
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def dense(operator: Operator) -> Tensor:
    """Return the matrix of an operator by multiplying the identity: for tests and small sizes."""
    m = operator.shape[-1]
    eye = torch.eye(m, dtype=torch.float64).expand(*operator.shape[:-2], m, m)
    if isinstance(operator, DenseOperator):
        return operator.matrix
    return operator.matmat(eye)
