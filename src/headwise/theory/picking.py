"""How often is a key of norm ρ the arg-max of a random query, among n Gaussian keys?

A query at angle θ to the key sees it score ρ cos θ, and every other key score an independent
N(0, 1); so the key is picked with probability p(ρ) = E_θ Φ(ρ cos θ)^(n−1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from scipy import special
from torch import Tensor

from headwise.errors import InaccurateError
from headwise.shapes import Float
from headwise.theory.quadrature import refinement, unit_rule
from headwise.threads import one_thread

#: Nodes of the angle, of the norm where p is computed, and of the norm where it is used. The
#: last is finer: 1 − (1−p)^n has a knee at n·p = 1 that p itself has not.
ANGLES, COARSE_NORMS, NORMS = 48, 48, 512

#: n·E[p] must be 1, since some key is always picked; a rule that misses by more is refused.
CHECK = 1e-6

# Where integrands are cut, as −log of what is neglected there. The lower score cut is deep
# (doubly exponential decay makes it cheap) because tiny p still counts when n is 10^12.
_LOW_SCORE, _LOWEST_SCORE, _SMALL_ANGLE = 60.0, 80.0, 28.0
_TOP_SCORE, _TOP_NORM, _BOTTOM_NORM = 1e-12, 1e-13, 1e-16


@dataclass(frozen=True, eq=False)
class KeyNorms:
    """A rule for averages over a key's norm: E[f(ρ)] is the sum of weight · f(norm).

    ``odds`` is p at each norm: the probability that one query picks that key.
    """

    norm: Float[Tensor, "cells k"]
    weight: Float[Tensor, "cells k"]
    odds: Float[Tensor, "cells k"]

    def mean(self, values: Float[Tensor, "cells k"]) -> Float[Tensor, " cells"]:
        """The average over the key's norm of ``values`` given at the nodes."""
        return (self.weight * values).sum(-1)


@one_thread()
def key_norms(n: Float[Tensor, " cells"], d: Float[Tensor, " cells"]) -> KeyNorms:
    """The rule for n keys in d dimensions, checked by n·E[p] = 1.

    >>> rule = key_norms(torch.tensor([100.0]).double(), torch.tensor([16.0]).double())
    >>> round(float(100 * rule.mean(rule.odds)), 6)
    1.0
    """
    n, d = n.unsqueeze(-1), d.unsqueeze(-1)
    low, high = _norm_window(n, d)
    coarse = low + (high - low) * unit_rule(COARSE_NORMS)[0]
    log_odds = torch.log(odds(coarse, n, d)) @ refinement(COARSE_NORMS, NORMS)
    nodes, weights = unit_rule(NORMS)
    norm = low + (high - low) * nodes
    rule = KeyNorms(norm, _norm_density(norm, d) * (high - low) * weights, torch.exp(log_odds))
    _refuse_if_wrong(n.squeeze(-1) * rule.mean(rule.odds), n, d)
    return rule


def odds(
    norm: Float[Tensor, "cells k"], n: Float[Tensor, "cells 1"], d: Float[Tensor, "cells 1"]
) -> Float[Tensor, "cells k"]:
    """p(ρ): the chance that one query picks a key of this norm among n keys in d dimensions.

    >>> two = torch.tensor([[2.0]]).double()
    >>> round(float(odds(torch.tensor([[3.0]]).double(), two, two)), 12)  # symmetry
    0.5
    """
    on_a_line = (d == 1).squeeze(-1)
    if not on_a_line.any():
        return _odds_over_angles(norm, n, d)
    found = torch.empty_like(norm)
    found[on_a_line] = _odds_on_a_line(norm[on_a_line], n[on_a_line])
    rest = ~on_a_line
    if rest.any():
        found[rest] = _odds_over_angles(norm[rest], n[rest], d[rest])
    return found


def score_at(minus_log: float, n: Tensor) -> Tensor:
    """The score s that the largest of n scores stays below with probability e^(−minus_log).

    >>> round(float(score_at(0.6931471805599453, torch.tensor(1.0))), 6)  # the median of one
    0.0
    """
    return torch.as_tensor(special.ndtri_exp(-minus_log / n.double().numpy()))


def log_ndtr(score: Tensor) -> Tensor:
    """log Φ by erfc: vectorised, and exact enough above −6, where all the weight is."""
    return torch.log1p(-0.5 * torch.erfc(score * math.sqrt(0.5)))


def _odds_on_a_line(norm: Tensor, n: Tensor) -> Tensor:
    """d = 1: the query points along the key or against it."""
    along, against = torch.exp((n - 1) * log_ndtr(norm)), torch.exp((n - 1) * log_ndtr(-norm))
    return (along + against) / 2


def _odds_over_angles(norm: Tensor, n: Tensor, d: Tensor) -> Tensor:
    low, high = _angle_window(norm, n, d)
    nodes, weights = unit_rule(ANGLES)
    cosine = torch.cos(low.unsqueeze(-1) + (high - low).unsqueeze(-1) * nodes)
    others_lower = (n - 1).unsqueeze(-1) * log_ndtr(norm.unsqueeze(-1) * cosine)
    angle_density = (d / 2 - 1).unsqueeze(-1) * torch.log1p(-cosine.square())
    total = (torch.exp(others_lower + angle_density) * weights).sum(-1) * (high - low)
    log_constant = torch.lgamma(d / 2) - torch.lgamma((d - 1) / 2) - math.log(math.pi) / 2
    return total * torch.exp(log_constant)


def _angle_window(norm: Tensor, n: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """Angles outside which the integrand is negligible beside its largest value."""
    others = n - 1
    high = torch.arccos((score_at(_LOWEST_SCORE, others) / norm).clamp(-1, 1))
    typical = torch.arccos((score_at(1.0, others) / norm).clamp(-1, 1))
    # In the plane (d = 2) no angle is rare: the exponent becomes −∞ and the window opens to 0.
    rare = torch.exp(-_SMALL_ANGLE / (d - 2).clamp(min=1e-300))
    return torch.arcsin(torch.sin(typical) * rare), high


def _norm_window(n: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    """Norms outside which picked keys are negligible: ρ² is score² plus χ² of d−1 others."""
    others = (d - 1).numpy()
    with_others = d > 1
    most = torch.where(with_others, torch.as_tensor(special.chdtri(others, _TOP_NORM)), 0.0)
    least = torch.as_tensor(2 * special.gammaincinv(others / 2, _BOTTOM_NORM))
    least = torch.where(with_others, least, 0.0)
    low = torch.sqrt(score_at(_LOW_SCORE, n).clamp(min=0).square() + least)
    return low, torch.sqrt(score_at(_TOP_SCORE, n).square() + most)


def _norm_density(norm: Tensor, d: Tensor) -> Tensor:
    """The density of the χ law with d degrees of freedom."""
    log_constant = torch.lgamma(d / 2) + (d / 2 - 1) * math.log(2)
    return torch.exp((d - 1) * torch.log(norm) - norm.square() / 2 - log_constant)


def _refuse_if_wrong(total: Tensor, n: Tensor, d: Tensor) -> None:
    off = (total - 1).abs()
    worst = int(torch.nan_to_num(off, nan=math.inf).argmax())
    if not off[worst] <= CHECK:
        raise InaccurateError(
            f"the quadrature at length {float(n[worst]):.0f}, head dimension "
            f"{float(d[worst]):.0f} gives n·E[p] = {float(total[worst]):.8f} instead of 1",
            hint="simulate this point with headwise.theory.montecarlo, and report it",
        )
