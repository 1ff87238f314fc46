"""Operator: a matrix known only by its products, and two ways to have one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from headwise.shapes import Float


@runtime_checkable
class Operator(Protocol):
    """Anything with a shape that multiplies blocks of vectors from both sides."""

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
    """A matrix that is there.

    >>> op = DenseOperator(torch.eye(3))
    >>> isinstance(op, Operator)
    True
    """

    matrix: Float[Tensor, "*batch n m"]

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


def dense(operator: Operator) -> Tensor:
    """The matrix of an operator, by multiplying the identity: for tests and small sizes.

    >>> dense(DenseOperator(torch.eye(2)))
    tensor([[1., 0.], [0., 1.]])
    """
    m = operator.shape[-1]
    eye = torch.eye(m, dtype=torch.float64).expand(*operator.shape[:-2], m, m)
    if isinstance(operator, DenseOperator):
        return operator.matrix
    return operator.matmat(eye)
