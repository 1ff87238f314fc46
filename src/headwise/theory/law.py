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

import torch
from torch import Tensor

from headwise.masks import MaskName
from headwise.theory.columns import ACCURATE_FROM, MAX_HEAD_DIM, MAX_LENGTH
from headwise.theory.sizes import Wholes
from headwise.theory.under_mask import barrier_ratio, critical_head_dim, law_share

__all__ = [
    "ACCURATE_FROM",
    "MAX_HEAD_DIM",
    "MAX_LENGTH",
    "barrier_ratio",
    "critical_head_dim",
    "finite_law",
]


def finite_law(length: Wholes, head_dim: Wholes, mask: MaskName = "none") -> Tensor:
    """L(n, d_h) for one or many lengths and head dimensions, broadcast against each other.

    Under a causal mask it is C(n, d_h) of ``headwise.theory.causal``.

    >>> round(float(finite_law(1024, 64)), 4)
    0.5213
    >>> finite_law(torch.tensor([[128], [1024]]), [16, 64]).shape
    torch.Size([2, 2])
    """
    return torch.as_tensor(law_share(length, head_dim, mask))
