"""L(n, d_h): the share of columns that the hardmax of a random head uses, in milliseconds.

Queries and keys are independent N(0, I) in d_h dimensions, as orthonormal inputs and Gaussian
weights make them. The hardmax rank is the number of distinct arg-max columns, and

    E[rank]/n  ≤  L(n, d_h) = 1 − E_ρ (1 − p(ρ))^n,

with ρ the norm of a key and p(ρ) how often a query picks it (``picking``). The inequality is
Jensen's: p given all the keys fluctuates about p(ρ). For d_h ≥ 16 the two sides differ by less
than 0.01, for n ≥ 256 by less than 0.006; ``corrected_law`` removes most of that, and
``predict_ratio`` chooses what is accurate.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.theory.picking import key_norms
from headwise.theory.sizes import Real, Whole, Wholes, fraction, whole, wholes
from headwise.threads import one_thread

MAX_LENGTH = 10**12
MAX_HEAD_DIM = 10**5

#: From this head dimension on the law is an estimate; below it is only a bound.
ACCURATE_FROM = 16

# Cells computed together: enough to amortise each call, few enough to stay in cache.
_CELLS = 64


def finite_law(length: Wholes, head_dim: Wholes) -> Tensor:
    """L(n, d_h) for one or many lengths and head dimensions, broadcast against each other.

    >>> round(float(finite_law(1024, 64)), 4)
    0.5213
    >>> finite_law(torch.tensor([[128], [1024]]), [16, 64]).shape
    torch.Size([2, 2])
    """
    n = wholes("the length", length, 2, MAX_LENGTH)
    d = wholes("the head dimension", head_dim, 1, MAX_HEAD_DIM)
    n, d = torch.broadcast_tensors(n, d)
    cells = zip(n.reshape(-1).split(_CELLS), d.reshape(-1).split(_CELLS), strict=True)
    return torch.cat([_law_of_cells(*cell) for cell in cells]).reshape(n.shape)


@one_thread()
def _law_of_cells(n: Tensor, d: Tensor) -> Tensor:
    rule = key_norms(n, d)
    # Interpolation may overshoot p = 1 by a rounding, where log1p would be NaN.
    never_picked = n.unsqueeze(-1) * torch.log1p(-rule.odds.clamp(max=1.0))
    return rule.mean(-torch.expm1(never_picked))


def barrier_ratio(length: Whole) -> float:
    """1 − (1 − 1/n)^n: what L tends to as d_h grows; itself tends to 1 − 1/e.

    >>> barrier_ratio(2), round(barrier_ratio(10**9), 6)
    (0.75, 0.632121)
    """
    n = whole("the length", length)
    return 1.0 if n == 1 else -math.expm1(n * math.log1p(-1 / n))


def critical_head_dim(length: Whole, share: Real = 0.9) -> int:
    """The least head dimension whose L reaches ``share`` of the barrier.

    >>> critical_head_dim(128, 0.9)
    46
    """
    n, goal = whole("the length", length, 2), fraction("the fraction", share)
    goal *= barrier_ratio(n)
    low, high = 1, MAX_HEAD_DIM
    if float(finite_law(n, high)) < goal:
        raise BadInputError(
            f"no head dimension up to {MAX_HEAD_DIM} reaches {share} of the barrier at length {n}",
            hint="ask for a smaller fraction",
        )
    while low < high:
        middle = (low + high) // 2
        reached = float(finite_law(n, middle)) >= goal
        low, high = (low, middle) if reached else (middle + 1, high)
    return low
