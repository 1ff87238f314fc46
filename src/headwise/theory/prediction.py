"""The rank of a random head at any size: the right method is chosen, and named."""

from __future__ import annotations

import math
from dataclasses import dataclass

from headwise.spectra import Estimate
from headwise.theory.ensembles import IndependentHead
from headwise.theory.fluctuation import corrected_law
from headwise.theory.law import ACCURATE_FROM, MAX_HEAD_DIM, MAX_LENGTH
from headwise.theory.montecarlo import simulate_to
from headwise.theory.neighbourhood import POISSON_FROM, neighbourhood_ratio
from headwise.theory.planar import HULL_FROM, line_ratio, plane_ratio
from headwise.theory.progress import Progress, silent
from headwise.theory.sizes import Whole, wholes

#: How far the corrected law may lie from simulation for d_h ≥ 16 (measured, n = 2⁵ … 2¹⁴).
LAW_ERROR = 0.006

#: Beyond that length, how far it was seen from local simulation (to n = 10¹²), as a share.
LONG_LAW_ERROR, MEASURED_LENGTH = 0.06, 2**14

# Three standard errors of these are 0.006 in the ratio, and 5 % of it.
_STDERR, _RELATIVE_STDERR = 0.002, 0.0165

# Draws of the first look around single keys, from which the number of draws is chosen.
_PILOT = 300


@dataclass(frozen=True)
class Prediction:
    """The expected hardmax rank over the length, how it was found, and how sure it is.

    ``error`` bounds the distance from the truth: three standard errors for a simulation.
    """

    length: int
    head_dim: int
    ratio: float
    error: float
    method: str


def predict_ratio(
    length: Whole, head_dim: Whole, seed: int = 0, progress: Progress = silent
) -> Prediction:
    """E[rank]/n of the hardmax of a random head: exact, by the law, or simulated.

    >>> predict_ratio(1024, 64).method, predict_ratio(1024, 1).method
    ('law', 'exact')
    >>> predict_ratio(128, 8).method
    'simulation'
    """
    n = int(wholes("the length", length, 2, MAX_LENGTH))
    d = int(wholes("the head dimension", head_dim, 1, MAX_HEAD_DIM))
    if d <= 2:
        return _exact(n, d)
    if d >= ACCURATE_FROM:
        ratio = corrected_law(n, d)
        error = LAW_ERROR if n <= MEASURED_LENGTH else max(LAW_ERROR, LONG_LAW_ERROR * ratio)
        return Prediction(n, d, ratio, error=error, method="law")
    found = _simulated(n, d, seed, progress)
    return Prediction(n, d, found.mean, error=3 * found.stderr, method="simulation")


def _exact(n: int, d: int) -> Prediction:
    ratio = line_ratio(n) if d == 1 else plane_ratio(n)
    # For long sequences in the plane the corners no query hits are left out: about ratio of them.
    doubt = ratio if d == 2 and n > HULL_FROM else 1e-9
    return Prediction(n, d, ratio, error=doubt * ratio, method="exact")


def _simulated(n: int, d: int, seed: int, progress: Progress) -> Estimate:
    if n < POISSON_FROM:
        return simulate_to(IndependentHead(n, d), _STDERR, seed, progress)
    pilot = neighbourhood_ratio(n, d, _PILOT, seed)
    excess = pilot.stderr / (_RELATIVE_STDERR * pilot.mean)
    draws = math.ceil(_PILOT * max(excess, 1.0) ** 2)
    return neighbourhood_ratio(n, d, draws, seed + 1, progress)
