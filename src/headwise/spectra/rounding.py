"""Bound how far finite precision can move a singular value: all such bounds are here.

A singular value moves by at most the spectral norm of the change (Weyl), which the
Frobenius norm bounds. Rounding errors that differ in sign add up like the square root of the
size (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). Sums of equal terms round the same way
each time and add up like the size itself: on constant matrices LAPACK was seen to lose up to
0.72·n·u. The bound takes the larger of 8√n·u and n·u; the tests check it against arithmetic
with more digits.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.shapes import Float

#: The factor in front of √size · u.
SAFETY = 8.0

#: The smallest float64: rounding can add this however small the numbers are.
SMALLEST = 2.0**-1074


def unit_roundoff(dtype: torch.dtype) -> float:
    """Return half the distance from 1 to the next number of this dtype."""
    return torch.finfo(dtype).eps / 2


def roundings(size: int) -> float:
    """Return how many units of u a float64 factorisation of this size may lose."""
    return max(SAFETY * math.sqrt(size), float(size))


def factorisation_error(norm: Float[Tensor, "*batch"], size: int) -> Float[Tensor, "*batch"]:
    """Bound the effect of a float64 orthogonal factorisation of this size on singular values."""
    return roundings(size) * (unit_roundoff(torch.float64) * norm + SMALLEST)


def storage_error(matrix: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    """Bound what rounding each entry to the dtype of ``matrix`` can have hidden.

    A float64 matrix is taken as exact. Any other dtype stands for every matrix that rounds
    to it, so the bound is u‖A‖_F plus what underflow can have removed.

    Returns:
        One bound per matrix, zero for float64.
    """
    if matrix.dtype == torch.float64:
        return torch.zeros(matrix.shape[:-2], dtype=torch.float64, device=matrix.device)
    info = torch.finfo(matrix.dtype)
    norm = torch.linalg.matrix_norm(matrix.double())
    # Flush-to-zero hardware hides anything below the smallest normal number.
    underflow = info.smallest_normal * math.sqrt(matrix.shape[-2] * matrix.shape[-1])
    return unit_roundoff(matrix.dtype) * norm + underflow
