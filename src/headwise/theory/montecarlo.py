"""The hardmax rank by simulation, with its error bar, for any ensemble of random heads.

Given the keys, the queries' noise is averaged out as far as the drawn queries allow: with Q
interchangeable queries, c of which pick a column, a choice of n among them misses the column
with probability C(Q−c, n)/C(Q, n). That is the exact conditional mean over all choices. Under a
mask queries are not interchangeable, and the columns that the first n use are counted.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from headwise.attention.masks import EVERYTHING, Causal, Mask
from headwise.attention.operator import streaming_argmax
from headwise.checks import positive, whole
from headwise.errors import BadInputError, TooLargeError
from headwise.mask_names import MaskName
from headwise.progress import SILENT, Progress, tracked
from headwise.randomness import stream
from headwise.shapes import Float, Int
from headwise.spectra import Estimate, count
from headwise.spectra.measuring import distinct_columns
from headwise.theory.neighbourhood import POISSON_FROM, neighbourhood_ratio
from headwise.theory.number_types import Real, Whole
from headwise.theory.simulated_heads import Ensemble, IndependentHead, PlateauHead, WideHead

# Scores held at once (2²² float64 numbers are 32 MiB).
_SCORES = 2**22

# Draws of the first look, from which the number of draws for a given error bar is chosen, and
# how much wider than asked that look may make us think the spread is.
_PILOT, _CAUTION = 16, 1.2

# Three standard errors of these are 0.006 in the ratio, and 5 % of it.
_STDERR, _RELATIVE_STDERR = 0.002, 0.0165

# Draws of the first look around single keys, from which the number of draws is chosen.
_KEYS_PILOT = 300

#: The longest sequence whose every row is drawn.
MOST_CAUSAL = 2**15


def simulate_head(
    n: int, d: int, seed: int = 0, progress: Progress = SILENT, mask: MaskName = "none"
) -> Estimate:
    """E[hardmax rank]/n of one Gaussian head, with as many draws as a useful error bar needs."""
    if mask == "causal":
        if n > MOST_CAUSAL:
            raise TooLargeError(
                f"simulating {n:,} tokens under a causal mask would take hours",
                hint=f"ask for at most {MOST_CAUSAL:,} tokens, or a head dimension of 16 and more",
            )
        return simulate_to(IndependentHead(n, d), _STDERR, seed, progress, mask=Causal())
    if n < POISSON_FROM:
        return simulate_to(IndependentHead(n, d), _STDERR, seed, progress)
    pilot = neighbourhood_ratio(n, d, _KEYS_PILOT, seed)
    excess = pilot.stderr / (_RELATIVE_STDERR * pilot.mean)
    draws = math.ceil(_KEYS_PILOT * max(excess, 1.0) ** 2)
    return neighbourhood_ratio(n, d, draws, seed + 1, progress)


def simulate_ratio(
    ensemble: Ensemble,
    draws: Whole = 32,
    seed: int = 0,
    progress: Progress = SILENT,
    *,
    mask: Mask = EVERYTHING,
) -> Estimate:
    """E[hardmax rank]/n of an ensemble of random heads, each row among the keys its mask leaves."""
    draws = whole("the number of draws", draws, 2)
    generator = stream(seed, "hardmax", device=ensemble.device)
    return Estimate.of(_ratios(ensemble, draws, generator, progress, mask))


def simulate_to(
    ensemble: Ensemble,
    stderr: Real,
    seed: int = 0,
    progress: Progress = SILENT,
    *,
    mask: Mask = EVERYTHING,
) -> Estimate:
    """The same, with as many draws as bring the standard error to about ``stderr``."""
    goal = positive("the standard error", stderr)
    generator = stream(seed, "hardmax", device=ensemble.device)
    pilot = _ratios(ensemble, _PILOT, generator, SILENT, mask)
    # At least one column in n is at stake: a pilot that happens to agree is not certainty.
    spread = max(float(pilot.std()), 0.5 / ensemble.length) * _CAUTION
    more = math.ceil((spread / goal) ** 2)
    return Estimate.of(torch.cat([pilot, _ratios(ensemble, more, generator, progress, mask)]))


def hardmax_choices(
    queries: Float[Tensor, "*heads q d"],
    keys: Float[Tensor, "*heads n d"],
    mask: Mask = EVERYTHING,
) -> Int[Tensor, "*heads q"]:
    """The column each query picks; scores are made in pieces that fit in memory."""
    return streaming_argmax(queries, keys, mask=mask)


def _ratios(
    ensemble: Ensemble, draws: int, generator: torch.Generator, progress: Progress, mask: Mask
) -> Float[Tensor, " draws"]:
    n = ensemble.length
    together = max(1, _SCORES // (4 * n**2))
    found = []
    with tracked(progress, "simulating", draws):
        for start in range(0, draws, together):
            heads = min(together, draws - start)
            queries, keys = ensemble.draw(heads, generator)
            if mask == EVERYTHING:
                used = _used_columns(hardmax_choices(queries, keys), n)
            else:
                used = distinct_columns(hardmax_choices(queries[:, :n], keys, mask), n).double()
            found.append(used / n)
            progress.advance(heads)
    return torch.cat(found)


def _used_columns(choices: Int[Tensor, "heads q"], n: int) -> Float[Tensor, " heads"]:
    """The expected number of columns that n of the drawn queries use, n chosen at random."""
    heads, drawn = choices.shape
    ones = torch.ones(choices.shape, dtype=torch.float64, device=choices.device)
    picks = torch.zeros(heads, n, dtype=torch.float64, device=choices.device)
    picks.scatter_add_(1, choices, ones)
    left = drawn - picks - n
    # log C(Q−c, n)/C(Q, n); where fewer than n queries are left the column cannot be missed.
    missed = torch.exp(
        torch.lgamma(drawn - picks + 1)
        - torch.lgamma(left.clamp(min=0) + 1)
        - math.lgamma(drawn + 1)
        + math.lgamma(drawn - n + 1)
    )
    return torch.where(left >= 0, 1 - missed, 1.0).sum(-1)


def plateau_ratio(
    inputs: Float[Tensor, "n d"],
    draws: Whole = 32,
    seed: int = 0,
    *,
    rows: Literal["independent", "joint"] = "independent",
    mask: Mask = EVERYTHING,
) -> Estimate:
    """Simulate the hardmax rank over n when every row of scores is N(0, X·Xᵀ).

    ``independent`` rows are equations 66–72 of the rank paper. Rows of one head share its weights,
    so those of similar inputs pick alike: ``joint`` rows are X·G·Xᵀ with one Gaussian G, what
    d_h → ∞ leaves of a head. For orthonormal inputs both are the barrier, and (n + 1) / (2n)
    under a causal mask.

    Returns:
        The mean ratio with its standard error, computed on the device of the inputs X.

    Raises:
        BadInputError: If the inputs are empty or not finite.

    >>> found = plateau_ratio(torch.eye(100).double(), draws=100)
    >>> abs(found.mean - 0.634) < 4 * found.stderr
    True
    """
    if not bool(torch.isfinite(inputs).all()) or inputs.numel() == 0:
        raise BadInputError(
            f"the inputs of shape {tuple(inputs.shape)} are empty or not finite",
            hint="pass one row of finite numbers per token",
        )
    head = PlateauHead(inputs) if rows == "independent" else WideHead(inputs)
    return simulate_ratio(head, draws, seed, mask=mask)


def concatenated_rank(choices: Int[Tensor, "heads n"]) -> int:
    """The rank of the hardmax matrices of several heads set side by side."""
    heads, n = choices.shape
    columns = choices + torch.arange(heads, device=choices.device).unsqueeze(-1) * n
    used, place = torch.unique(columns, return_inverse=True)
    matrix = torch.zeros(n, len(used), dtype=torch.float64, device=choices.device)
    matrix.scatter_(1, place.mT, 1.0)
    return int(count(matrix))


def concatenated_ratio(
    ensemble: Ensemble, heads: Whole, draws: Whole = 16, seed: int = 0
) -> Estimate:
    """Simulate the rank over n of several independent hardmax heads set side by side.

    It is at most min(1, heads · barrier), less a shared all-ones direction per extra head.

    Returns:
        The mean ratio with its standard error.

    >>> from headwise.theory.simulated_heads import IndependentHead
    >>> concatenated_ratio(IndependentHead(40, 8), heads=2, draws=8).mean > 0.6
    True
    """
    h, times = whole("the number of heads", heads), whole("the number of draws", draws, 2)
    generator, n = stream(seed, "concatenated", device=ensemble.device), ensemble.length
    found = []
    for _ in range(times):
        queries, keys = ensemble.draw(h, generator)
        found.append(concatenated_rank(hardmax_choices(queries[:, :n], keys)) / n)
    return Estimate.of(torch.tensor(found, dtype=torch.float64))
