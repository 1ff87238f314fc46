"""expected_rank: the one way to ask for the attention rank of a random head.

A formula or a stored simulation answers without torch, so a command can ask for a whole curve.
Between the lengths that were simulated, the share of the law that is reached is taken to be
straight in log n.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from headwise.checks import one_of, whole
from headwise.errors import ParameterError
from headwise.mask_names import MaskName, checked_mask
from headwise.progress import SILENT, Progress
from headwise.theory.fluctuation import corrected_law
from headwise.theory.law_formula import ACCURATE_FROM, barrier_ratio, law_share
from headwise.theory.number_types import MAX_HEAD_DIM, MAX_LENGTH, Real, Whole
from headwise.theory.planar import HULL_FROM, line_ratio, plane_ratio

#: How far the corrected law may lie from simulation for d_h ≥ 16 (measured, n = 2⁵ … 2¹⁴).
LAW_ERROR = 0.006

#: Beyond that length, how far it was seen from local simulation (to n = 10¹²), as a share.
LONG_LAW_ERROR, MEASURED_LENGTH = 0.06, 2**14

#: The method where nothing better is at hand than the law itself, which is too high there.
UPPER_BOUND = "upper bound"

#: Simulations of few dimensions, made by benchmarks/simulate_low_dims.py.
_TABLES: dict[MaskName, str] = {"none": "low_dims.json", "causal": "low_dims_causal.json"}

Attention = Literal["hardmax", "softmax"]
Method = Literal["auto", "instant", "exact", "law", "simulation", "upper bound"]

#: The default tolerance of the softmax rank.
EPSILON = 1e-8

_SIZES = ("`n`", "`d_h`")

#: The sizes that a method knows.
_KNOWN_SIZES = {
    "exact": "formulas are exact for d_h = 1, 2 without a mask, and for ∞",
    "law": f"the law starts at d_h = {ACCURATE_FROM}",
}


@dataclass(frozen=True)
class Prediction:
    """The expected attention rank of a random head over the length, and how it was computed.

    Attributes:
        length: Number of tokens n.
        head_dim: Head dimension; infinite for the barrier.
        ratio: Expected rank / n.
        error: How far the ratio may be from the truth: three standard errors of a simulation, and
            for a law the largest distance from simulation that was measured.
        method: "exact", "law", "simulation" or "upper bound".
        mask: Which keys a token may pick.
        attention: "hardmax", or "softmax" for the number of singular values above a tolerance.
        in_range: Whether the error was measured for sizes like this one.

    >>> Prediction(1024, 64, 0.52, error=0.006, method="law").attention
    'hardmax'
    """

    length: int
    head_dim: int | float
    ratio: float
    error: float
    method: str
    mask: MaskName = "none"
    attention: str = "hardmax"
    in_range: bool = True


def expected_rank(
    n: Whole,
    d_h: Whole,
    mask: MaskName = "none",
    attention: Attention = "hardmax",
    method: Method = "auto",
    *,
    temperature: Real | None = None,
    epsilon: Real = EPSILON,
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
        temperature: The T of softmax(q·kᵀ/T), required for softmax. With N(0, 1) inputs and
            weights of width d it is √d_h / d.
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
    one_of("`method`", method, get_args(Method))
    one_of("`attention`", attention, get_args(Attention))
    seed = whole("`seed`", seed, 0)
    if attention == "softmax":
        n, d_h = checked_sizes(n, d_h, _SIZES)
        return _softmax(n, d_h, mask, method, temperature, epsilon)
    _refuse_for_hardmax(temperature, epsilon)
    if d_h == math.inf:
        return _barrier(n, mask, method)
    n, d_h = checked_sizes(n, d_h, _SIZES)
    return _hardmax(n, d_h, mask, method, seed, progress)


def _refuse_for_hardmax(temperature: Real | None, epsilon: Real) -> None:
    for name, given in (("temperature", temperature is not None), ("epsilon", epsilon != EPSILON)):
        if given:
            raise ParameterError(
                f"`{name}` does not go with hardmax",
                hint="leave it out, or pass `attention='softmax'`",
            )


def _hardmax(
    n: int, d: int, mask: MaskName, method: Method, seed: int, progress: Progress
) -> Prediction:
    if method == "instant":
        return ready_ratio(n, d, mask)
    if method == UPPER_BOUND:
        return bounded_ratio(n, d, mask)
    known = None if method == "simulation" else formula_ratio(n, d, mask)
    if method == "simulation" or (method == "auto" and known is None):
        # Simulations need torch, which takes a second to import.
        from headwise.theory.montecarlo import simulate_head

        found = simulate_head(n, d, seed, progress, mask)
        return Prediction(n, d, found.mean, 3 * found.stderr, "simulation", mask)
    if known is None or method not in ("auto", known.method):
        raise ParameterError(
            f"expected a size with method {method!r}, got d_h = {d} with mask {mask!r}",
            hint=f"use method='auto'; {_KNOWN_SIZES.get(method, 'it knows every size')}",
        )
    return known


def _barrier(n: Whole, mask: MaskName, method: Method) -> Prediction:
    if method not in ("auto", "instant", "exact"):
        raise ParameterError(
            f"expected method 'auto' or 'exact' for d_h = ∞, got {method!r}",
            hint="pass a finite d_h or another method",
        )
    length, _ = checked_sizes(n, 1, _SIZES)
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


def ready_ratio(length: Whole, head_dim: Whole, mask: MaskName = "none") -> Prediction:
    """Predict E[rank]/n of the hardmax of a random head without simulating.

    For 3 ≤ d_h < 16, and for 1 and 2 under a causal mask, the value comes from a table of
    simulations. Beyond the table it is the law, and the method is "upper bound".

    Returns:
        The prediction.
    """
    return _ready(*checked_sizes(length, head_dim), checked_mask(mask))


@lru_cache(maxsize=4096)
def _ready(n: int, d: int, mask: MaskName) -> Prediction:
    return formula_ratio(n, d, mask) or _tabled(n, d, mask) or bounded_ratio(n, d, mask)


def checked_sizes(
    length: Whole, head_dim: Whole, names: tuple[str, str] = ("`length`", "`head_dim`")
) -> tuple[int, int]:
    """A length and a head dimension in the range of the law, or a refusal with these names."""
    n = whole(names[0], length, 2, int(MAX_LENGTH))
    return n, whole(names[1], head_dim, 1, int(MAX_HEAD_DIM))


def formula_ratio(n: int, d: int, mask: MaskName = "none") -> Prediction | None:
    """What a formula knows: d_h ≥ 16 by the law, without a mask 1 and 2 exactly; else None."""
    if d <= 2 and mask == "none":
        return _exact(n, d)
    if d < ACCURATE_FROM:
        return None
    ratio = corrected_law(n, d) if mask == "none" else float(law_share(n, d, mask))
    error = LAW_ERROR if n <= MEASURED_LENGTH else max(LAW_ERROR, LONG_LAW_ERROR * ratio)
    return Prediction(n, d, ratio, error, "law", mask)


def _exact(n: int, d: int) -> Prediction:
    ratio = line_ratio(n) if d == 1 else plane_ratio(n)
    # For long sequences in the plane the corners no query hits are left out: about ratio of them.
    doubt = ratio if d == 2 and n > HULL_FROM else 1e-9
    return Prediction(n, d, ratio, error=doubt * ratio, method="exact")


def _tabled(n: int, d: int, mask: MaskName) -> Prediction | None:
    """From the two simulated lengths around n; None where one of them is missing."""
    lengths, ratios, errors, laws = table(d, mask)
    after = int(np.searchsorted(lengths, n))
    if after == len(lengths):
        return None
    before = after if lengths[after] == n else after - 1
    if math.isnan(ratios[before]) or math.isnan(ratios[after]):
        return None
    ends = [before, after]
    share = np.interp(math.log(n), np.log(lengths[ends]), np.log(ratios[ends] / laws[ends]))
    ratio = float(law_share(n, d, mask) * np.exp(share))
    doubt = max(errors[before] / ratios[before], errors[after] / ratios[after])
    return Prediction(n, d, ratio, 3 * float(doubt) * ratio, "simulation", mask)


def bounded_ratio(n: int, d: int, mask: MaskName) -> Prediction:
    """The law L(n, d_h), which may lie anywhere above the truth."""
    ratio = float(law_share(n, d, mask))
    return Prediction(n, d, ratio, ratio, UPPER_BOUND, mask)


@cache
def table(d: int, mask: MaskName) -> tuple[np.ndarray, ...]:
    """Return lengths, ratios, standard errors and the law at one head dimension; NaN if unknown.

    The law is stored because computing it at two more lengths takes three times as long.

    Returns:
        The columns.
    """
    stored = json.loads(Path(__file__).with_name(_TABLES[mask]).read_text("utf-8"))
    rows = stored["head_dims"][str(d)]
    columns = (np.array(rows[name], dtype=float) for name in ("ratio", "stderr", "law"))
    return np.array(stored["lengths"], dtype=float), *columns
