"""The heads that an error needs, for many ranks at once: what a moved slider asks.

``harmonic_bound.log_heads_needed`` finds a root for each rank. Here the bound is taken on one grid
of degrees: the low ones one by one, the high ones by a trapezoid rule in log ℓ. On the grid it is
piecewise linear in the number of heads, so the piece that holds the error gives the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from headwise.errors import ParameterError
from headwise.theory.harmonic_bound import Values, log_coefficient, log_dimension, log_reach
from headwise.theory.number_types import Real, Whole

#: Odd degrees that are summed one by one, and the grid of log ℓ beyond them.
_SUMMED = 512
_STEP, _LAST = 0.01, 45.0


def log_heads_by_rank(
    width: Whole, ranks: Sequence[int], error: Real, values: Values = Values.ANY
) -> list[float]:
    """Return the natural logarithm of the heads that an error needs, for each rank.

    The logarithms agree with ``log_heads_needed`` to five digits.

    Args:
        width: Model width d.
        ranks: Ranks of a head, each below the width.
        error: Mean squared error, from 0.001 to 0.5.
        values: Which value matrices a head may have.

    Returns:
        One logarithm for each rank; zero where one head is enough.

    Raises:
        ParameterError: If the error is out of range.

    >>> [math.ceil(math.exp(log)) for log in log_heads_by_rank(64, [16, 32, 48], 0.1)]
    [311, 12, 2]
    """
    if not 0.001 <= error <= 0.5:
        raise ParameterError(
            f"expected `error` from 0.001 to 0.5, got {error!r}", hint="pass 0.1 for example"
        )
    degree, log_weight = _grid()
    log_size = log_dimension(width, degree)
    log_energy = log_weight + log_size + 2 * log_coefficient(width, degree)
    return [
        _solved(log_energy, np.minimum(_reach(rank, values) - log_size, 0.0), 2 * float(error))
        for rank in ranks
    ]


@lru_cache(maxsize=1)
def _grid() -> tuple[np.ndarray, np.ndarray]:
    """Degrees and the logarithms of their weights; every second degree counts."""
    low = 2.0 * np.arange(_SUMMED) + 1
    logs = np.arange(math.log(2.0 * _SUMMED), _LAST, _STEP)
    weight = np.full_like(logs, math.log(_STEP / 2)) + logs
    weight[0] -= math.log(2)
    return np.concatenate([low, np.exp(logs)]), np.concatenate([np.zeros_like(low), weight])


@lru_cache(maxsize=256)
def _reach(rank: int, values: Values) -> np.ndarray:
    """log M(r, ℓ) on the grid: it does not depend on the width."""
    return log_reach(rank, _grid()[0], values)


def _solved(log_energy: np.ndarray, log_share: np.ndarray, left: float) -> float:
    """Solve Σ energy · max(0, 1 − H·share) = left for log H."""
    # Heads reach the degrees of the largest share first. With the first k reached, the sum is
    # E_k − H·S_k over the others, and H lies between the reciprocals of two neighbouring shares.
    order = np.argsort(-log_share, kind="stable")
    log_energy, log_share = log_energy[order], log_share[order]
    behind = np.cumsum(np.exp(log_energy[::-1]))[::-1]
    log_reached = np.logaddexp.accumulate((log_energy + log_share)[::-1])[::-1]
    # What is left when H is just enough for degree k; it falls with k.
    at_corner = behind - np.exp(log_reached - log_share)
    piece = int(np.argmax(at_corner <= left)) if at_corner[-1] <= left else len(order) - 1
    excess = behind[piece] - left
    return max(0.0, math.log(excess) - float(log_reached[piece])) if excess > 0 else 0.0
