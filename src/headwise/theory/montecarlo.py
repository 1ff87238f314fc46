"""The hardmax rank by simulation, with its error bar, for any ensemble of random heads.

Given the keys, the queries' noise is averaged out as far as the drawn queries allow: with Q
interchangeable queries, c of which pick a column, a choice of n among them misses the column
with probability C(Q−c, n)/C(Q, n). That is the exact conditional mean over all choices. Under a
mask queries are not interchangeable, and the columns that the first n use are counted.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from headwise.attention.masks import EVERYTHING, Mask
from headwise.attention.operator import streaming_argmax
from headwise.progress import SILENT, Progress, tracked
from headwise.randomness import stream
from headwise.shapes import Float, Int
from headwise.spectra import Estimate
from headwise.spectra.measuring import distinct_columns
from headwise.theory.ensembles import Ensemble
from headwise.theory.sizes import Real, Whole, positive, whole

# Scores held at once (2²² float64 numbers are 32 MiB).
_SCORES = 2**22

# Draws of the first look, from which the number of draws for a given error bar is chosen, and
# how much wider than asked that look may make us think the spread is.
_PILOT, _CAUTION = 16, 1.2


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
