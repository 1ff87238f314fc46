"""The rank of a random head at any size: the right method is chosen, and named."""

from __future__ import annotations

import math

from headwise.attention.masks import Causal
from headwise.errors import TooLargeError
from headwise.masks import MaskName, checked_mask
from headwise.progress import SILENT, Progress
from headwise.spectra import Estimate
from headwise.theory.ensembles import IndependentHead
from headwise.theory.montecarlo import simulate_to
from headwise.theory.neighbourhood import POISSON_FROM, neighbourhood_ratio
from headwise.theory.ready import LAW_ERROR, Prediction, checked_sizes, formula_ratio
from headwise.theory.sizes import Whole

__all__ = ["LAW_ERROR", "Prediction", "predict_ratio"]

# Three standard errors of these are 0.006 in the ratio, and 5 % of it.
_STDERR, _RELATIVE_STDERR = 0.002, 0.0165

#: The longest sequence whose every row is drawn.
MOST_CAUSAL = 2**15

# Draws of the first look around single keys, from which the number of draws is chosen.
_PILOT = 300


def predict_ratio(
    length: Whole,
    head_dim: Whole,
    seed: int = 0,
    progress: Progress = SILENT,
    *,
    mask: MaskName = "none",
) -> Prediction:
    """E[rank]/n of the hardmax of a random head: exact, by the law, or simulated.

    >>> predict_ratio(1024, 64).method, predict_ratio(1024, 1).method
    ('law', 'exact')
    >>> predict_ratio(128, 8).method
    'simulation'
    """
    n, d = checked_sizes(length, head_dim)
    known = formula_ratio(n, d, checked_mask(mask))
    if known is not None:
        return known
    return simulated_ratio(n, d, seed, progress, mask=mask)


def simulated_ratio(
    n: int, d: int, seed: int = 0, progress: Progress = SILENT, *, mask: MaskName = "none"
) -> Prediction:
    """E[rank]/n by simulation, whether or not a formula is known."""
    found = (_simulated if mask == "none" else _simulated_causal)(n, d, seed, progress)
    return Prediction(n, d, found.mean, error=3 * found.stderr, method="simulation")


def _simulated_causal(n: int, d: int, seed: int, progress: Progress) -> Estimate:
    if n > MOST_CAUSAL:
        raise TooLargeError(
            f"simulating {n:,} tokens under a causal mask would take hours",
            hint=f"ask for at most {MOST_CAUSAL:,} tokens, or a head dimension of 16 and more",
        )
    return simulate_to(IndependentHead(n, d), _STDERR, seed, progress, mask=Causal())


def _simulated(n: int, d: int, seed: int, progress: Progress) -> Estimate:
    if n < POISSON_FROM:
        return simulate_to(IndependentHead(n, d), _STDERR, seed, progress)
    pilot = neighbourhood_ratio(n, d, _PILOT, seed)
    excess = pilot.stderr / (_RELATIVE_STDERR * pilot.mean)
    draws = math.ceil(_PILOT * max(excess, 1.0) ** 2)
    return neighbourhood_ratio(n, d, draws, seed + 1, progress)
