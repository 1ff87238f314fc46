"""The hardmax rank at lengths no machine can simulate: look at one key and what lies near it.

E[rank]/n is the chance that a random key is picked at all. Given the key's norm ρ, only queries
that see it score high can pick it, and only keys that beat it there can prevent that. Both are
few, and for long sequences both are Poisson, so they are drawn exactly: a query is settled by
drawing the keys of its half-space {k : u·k > ρ u·e}, less the half-spaces drawn before. Cost
does not grow with n, but with the number of queries that could pick the key. Where those are
too many, a random part of them is drawn: if one of it picks the key, the key is picked; if none
does, the draw is undecided, and too many undecided draws are a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy import special

from headwise.checks import whole
from headwise.errors import TooLargeError
from headwise.progress import SILENT, Progress, tracked
from headwise.randomness import stream_seed
from headwise.spectra import Estimate
from headwise.theory.number_types import Whole
from headwise.theory.picking import KeyNorms, key_norms, score_at

#: Below this length Poisson counts differ from binomial ones by more than the error bar.
POISSON_FROM = 4096

#: A query that twenty keys are expected to beat wins with chance e⁻²⁰: not drawn.
_HOPELESS = 20.0

#: Numbers (queries times dimensions) that one draw may hold.
_ROOM = 100_000

#: Undecided draws may widen the answer by this share of it; after the first few
#: draws, more than the second number is hopeless.
_UNDECIDED, _HOPELESSLY_UNDECIDED, _FIRST_LOOK = 0.03, 0.25, 60


@dataclass(frozen=True)
class _Draw:
    """What every draw at one (n, d) shares: the sizes, the score below which no query wins."""

    n: int
    d: int
    lowest: float
    random: np.random.Generator


def neighbourhood_ratio(
    length: Whole,
    head_dim: Whole,
    draws: Whole = 2000,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Estimate:
    """E[rank]/n for a long sequence (n ≥ 4096, d_h ≥ 2), by simulating around single keys.

    Refuses when a key has more possible queries than fit: low dimensions at great lengths.

    >>> found = neighbourhood_ratio(10**6, 32, draws=200)
    >>> abs(found.mean - 0.132) < 4 * found.stderr
    True
    """
    n = whole("the length", length, POISSON_FROM)
    d = whole("the head dimension", head_dim, 2)
    draws = whole("the number of draws", draws, 2)
    rule = key_norms(np.array([float(n)]), np.array([float(d)]))
    shared = _Draw(
        n,
        d,
        float(score_at(_HOPELESS, n - 1.0)),
        np.random.default_rng(stream_seed(seed, "neighbourhood", n, d)),
    )
    norms, values, total = _proposals(rule, shared, draws)
    low, high = np.zeros(draws), np.zeros(draws)
    with tracked(progress, "simulating", draws):
        for index in range(draws):
            low[index], high[index] = _is_picked(norms[index], shared)
            progress.advance()
            if index == _FIRST_LOOK:
                _refuse_if_undecided(values * low, values * high, _HOPELESSLY_UNDECIDED, shared)
    _refuse_if_undecided(values * low, values * high, _UNDECIDED, shared)
    return _with_doubt(total * values * low, total * values * high)


def _with_doubt(low: np.ndarray, high: np.ndarray) -> Estimate:
    """The middle of the two samples; half their distance joins the standard error."""
    found = Estimate.of(torch.as_tensor((low + high) / 2))
    doubt = float((high - low).mean()) / 2
    return Estimate(found.mean, float(np.hypot(found.stderr, doubt)), found.draws)


def _proposals(rule: KeyNorms, shared: _Draw, draws: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Norms to try, what a success counts, and the common factor.

    A key of norm ρ is picked with probability at most g = 1 − (1−p)^n. Norms are drawn in
    proportion to √g, so a success counts 1/√g and no squared value exceeds one on average.
    """
    weight, odds, norm = rule.weight[0], rule.odds[0], rule.norm[0]
    root = np.sqrt(-np.expm1(-shared.n * odds))
    proposal = weight * root
    total = float(proposal.sum())
    # One draw in each of equally likely strata: less spread than independent draws.
    place = (np.arange(draws) + shared.random.random(draws)) / draws
    chosen = np.searchsorted(np.cumsum(proposal) / total, place).clip(max=len(norm) - 1)
    return norm[chosen], 1 / root[chosen], total


def _refuse_if_undecided(low: np.ndarray, high: np.ndarray, share: float, shared: _Draw) -> None:
    if high.sum() - low.sum() > share * high.sum():
        raise TooLargeError(
            f"at length {shared.n} and head dimension {shared.d} single keys have too many "
            "possible queries to simulate, and no accurate formula is known",
            hint="take a larger head dimension, head dimension 1 or 2, or a shorter length; "
            "method='upper bound' gives a bound",
        )


def _is_picked(norm: float, shared: _Draw) -> tuple[bool, bool]:
    """Whether any query picks a key of this norm: certainly, possibly."""
    queries, all_drawn = _hopeful_queries(norm, shared)
    known_u, known_s = np.empty((0, shared.d)), np.empty(0)
    while len(queries):
        # The query that sees the key highest is the likeliest to pick it: settle it first.
        u, s = queries[0], norm * queries[0, 0]
        rivals = _rivals(u, s, shared)
        rivals = rivals[~(rivals @ known_u.T > known_s).any(1)]
        if not len(rivals):
            return True, True
        # The first is beaten by its rivals, whatever rounding says of a near tie.
        beaten = (queries[1:] @ rivals.T > norm * queries[1:, :1]).any(1)
        queries = queries[1:][~beaten]
        known_u, known_s = np.vstack([known_u, u]), np.append(known_s, s)
    return False, not all_drawn


def _hopeful_queries(norm: float, shared: _Draw) -> tuple[np.ndarray, bool]:
    """Directions of queries that see the key high enough to pick it, and whether all are here."""
    d, cosine = shared.d, shared.lowest / norm
    if cosine >= 1:
        return np.empty((0, d)), True
    cap = special.betainc((d - 1) / 2, 0.5, 1 - cosine**2)
    expected, room = shared.n * cap / 2, _ROOM / d
    count = shared.random.poisson(min(expected, room))
    share = shared.random.random(count) * cap
    along = np.sort(np.sqrt(1 - special.betaincinv((d - 1) / 2, 0.5, share)))[::-1]
    across = shared.random.standard_normal((count, d - 1))
    across *= (np.sqrt(1 - along**2) / np.linalg.norm(across, axis=1))[:, None]
    return np.column_stack([along, across]), bool(expected <= room)


def _rivals(u: np.ndarray, s: float, shared: _Draw) -> np.ndarray:
    """All other keys that score above s along u."""
    tail = special.ndtr(-s)
    count = shared.random.poisson((shared.n - 1) * tail)
    keys = shared.random.standard_normal((count, shared.d))
    along = -special.ndtri(shared.random.random(count) * tail)
    return keys + (along - keys @ u)[:, None] * u
