"""expected_rank: the one way to ask for the rank of a random head."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, get_args

from headwise.errors import ParameterError
from headwise.masks import MaskName, checked_mask
from headwise.progress import SILENT, Progress
from headwise.theory.columns import ACCURATE_FROM
from headwise.theory.ready import (
    UPPER_BOUND,
    Prediction,
    bounded_ratio,
    checked_sizes,
    formula_ratio,
    ready_ratio,
)
from headwise.theory.sizes import Real, Whole
from headwise.theory.under_mask import barrier_ratio

Attention = Literal["hardmax", "softmax"]
Method = Literal["auto", "instant", "exact", "law", "simulation", "upper bound"]


def expected_rank(
    n: Whole,
    d_h: Whole,
    mask: MaskName = "none",
    attention: Attention = "hardmax",
    method: Method = "auto",
    *,
    temperature: Real | None = None,
    epsilon: Real = 1e-8,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Prediction:
    """Predict the rank of one random attention head as a share of the sequence length.

    Queries and keys are independent N(0, I) vectors in d_h dimensions.

    * "auto": exact where a formula is, the law from d_h = 16 on, else a simulation.
    * "instant": as "auto", but from stored simulations; an upper bound beyond them.
    * "exact": d_h = 1, 2 without a mask, and d_h = ∞.
    * "law": the law with its second-order correction; d_h from 16 on.
    * "simulation": hardmax of drawn heads, at any d_h.
    * "upper bound": the law L(n, d_h) itself, which is never too low.

    Args:
        n: Number of tokens, 2 to 10¹².
        d_h: Head dimension, 1 to 10⁵, or ``math.inf`` for the barrier.
        mask: ``"none"`` or ``"causal"``.
        attention: ``"hardmax"``, or ``"softmax"`` for the number of singular values ≥ epsilon.
        method: How to compute the answer; softmax has "auto" and "law", which are the same.
        temperature: The T of softmax(q·kᵀ/T). With N(0, 1) inputs and weights of width d, pass
            √d_h / d. Required for softmax.
        epsilon: The tolerance of the softmax rank.
        seed: Seed of a simulation.
        progress: Shows the progress of a simulation.

    Returns:
        The ratio rank/n, its error, the method that was used, and whether this size lies in the
        range where the error was measured.

    Raises:
        ParameterError: If a parameter is out of range, or the method does not know this size.
        TooLargeError: If a simulation would take hours.

    >>> expected_rank(1024, 64).method, expected_rank(1024, 1).method
    ('law', 'exact')
    >>> round(expected_rank(1024, 64).ratio, 2), round(expected_rank(1024, math.inf).ratio, 3)
    (0.52, 0.632)
    """
    mask = checked_mask(mask)
    if method not in get_args(Method):
        known = ", ".join(repr(name) for name in get_args(Method))
        raise ParameterError(f"expected a method, got {method!r}", hint=f"pass one of {known}")
    if attention == "softmax":
        return _softmax(n, d_h, mask, method, temperature, epsilon)
    if attention != "hardmax":
        raise ParameterError(
            f"expected attention 'hardmax' or 'softmax', got {attention!r}", hint="pass one of them"
        )
    if d_h == math.inf:
        return _barrier(n, mask, method)
    return replace(_hardmax(n, d_h, mask, method, seed, progress), mask=mask)


def _hardmax(
    n: Whole, d_h: Whole, mask: MaskName, method: Method, seed: int, progress: Progress
) -> Prediction:
    if method == "instant":
        return ready_ratio(n, d_h, mask)
    length, dim = checked_sizes(n, d_h)
    if method == UPPER_BOUND:
        return bounded_ratio(length, dim, mask)
    if method in ("auto", "simulation"):
        # Simulations need torch, which takes a second to import.
        from headwise.theory.prediction import predict_ratio, simulated_ratio

        simulate = simulated_ratio if method == "simulation" else predict_ratio
        return simulate(length, dim, seed, progress, mask=mask)
    known = formula_ratio(length, dim, mask)
    if known is None or known.method != method:
        raise ParameterError(
            f"expected a size with method {method!r}, got d_h = {dim} with mask {mask!r}",
            hint=f"use method='auto'; the law starts at d_h = {ACCURATE_FROM}",
        )
    return known


def _barrier(n: Whole, mask: MaskName, method: Method) -> Prediction:
    if method not in ("auto", "instant", "exact"):
        raise ParameterError(
            f"expected method 'auto' or 'exact' for d_h = ∞, got {method!r}",
            hint="pass a finite d_h or another method",
        )
    length, _ = checked_sizes(n, 1)
    ratio = barrier_ratio(length, mask)
    return Prediction(length, math.inf, ratio, error=0.0, method="exact", mask=mask)


def _softmax(
    n: Whole,
    d_h: Whole,
    mask: MaskName,
    method: Method,
    temperature: Real | None,
    epsilon: Real,
) -> Prediction:
    from headwise.theory.softening import softmax_ratio

    if mask != "none" or method not in ("auto", "law"):
        raise ParameterError(
            f"expected mask 'none' and method 'auto' or 'law' for softmax, got {mask!r} and "
            f"{method!r}",
            hint="use attention='hardmax' for the others",
        )
    if temperature is None:
        raise ParameterError(
            "expected a temperature for softmax, got none",
            hint="pass temperature=√d_h / d for N(0, 1) inputs and weights of width d",
        )
    found = softmax_ratio(n, d_h, temperature, epsilon)
    return Prediction(
        found.length,
        found.head_dim,
        found.ratio,
        error=found.error,
        method="law",
        attention="softmax",
        in_range=found.valid,
    )
