"""The rank of a random head at once: exact, by the law, or from what was simulated beforehand.

Neither torch nor a simulation is needed, so a command can ask for a whole curve. Between the
lengths that were simulated, the share of the law that is reached is taken to be straight in log n.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from headwise.masks import MaskName, checked_mask
from headwise.theory.columns import ACCURATE_FROM, MAX_HEAD_DIM, MAX_LENGTH
from headwise.theory.fluctuation import corrected_law
from headwise.theory.planar import HULL_FROM, line_ratio, plane_ratio
from headwise.theory.sizes import Whole, wholes
from headwise.theory.under_mask import law_share

#: How far the corrected law may lie from simulation for d_h ≥ 16 (measured, n = 2⁵ … 2¹⁴).
LAW_ERROR = 0.006

#: Beyond that length, how far it was seen from local simulation (to n = 10¹²), as a share.
LONG_LAW_ERROR, MEASURED_LENGTH = 0.06, 2**14

#: The method where nothing better is at hand than the law itself, which is too high there.
UPPER_BOUND = "upper bound"

#: Simulations of few dimensions, made by benchmarks/simulate_low_dims.py.
_TABLES: dict[MaskName, str] = {"none": "low_dims.json", "causal": "low_dims_causal.json"}


@dataclass(frozen=True)
class Prediction:
    """The expected rank of a random head over the length, and how it was computed.

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


def checked_sizes(length: Whole, head_dim: Whole) -> tuple[int, int]:
    """A length and a head dimension in the range of the law, or a clear refusal."""
    n = int(wholes("`length`", length, 2, MAX_LENGTH))
    return n, int(wholes("`head_dims`", head_dim, 1, MAX_HEAD_DIM))


def formula_ratio(n: int, d: int, mask: MaskName = "none") -> Prediction | None:
    """What a formula knows: d_h ≥ 16 by the law, without a mask 1 and 2 exactly; else None."""
    if d <= 2 and mask == "none":
        return _exact(n, d)
    if d < ACCURATE_FROM:
        return None
    ratio = corrected_law(n, d) if mask == "none" else float(law_share(n, d, mask))
    error = LAW_ERROR if n <= MEASURED_LENGTH else max(LAW_ERROR, LONG_LAW_ERROR * ratio)
    return Prediction(n, d, ratio, error=error, method="law")


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
    return Prediction(n, d, ratio, error=3 * float(doubt) * ratio, method="simulation")


def bounded_ratio(n: int, d: int, mask: MaskName) -> Prediction:
    """The law L(n, d_h), which may lie anywhere above the truth."""
    ratio = float(law_share(n, d, mask))
    return Prediction(n, d, ratio, error=ratio, method=UPPER_BOUND)


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
