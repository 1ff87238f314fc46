"""The heads paper: the full-rank upper bound and the lower bounds for low rank."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from headwise.attention.constructions import BiasedNeighbours, nearest_neighbour
from headwise.randomness import stream
from headwise.theory import separation
from headwise.theory.harmonics import (
    Values,
    error_at,
)
from headwise.theory.nearest import (
    heads_error,
    neighbours,
)
from headwise.theory.statements.statement import (
    Evidence,
    Source,
    Statement,
    at_least,
    at_most,
    gaussian,
)

#: Constants with which the computable bound implies Theorem 2 on the grids below.
REGIME_1_CONSTANT, REGIME_2_CONSTANT = 1.0, 0.2


def _full_rank(points: Tensor, y: Tensor) -> Evidence:
    """One full-rank hardmax head against the point at the least distance."""
    found = nearest_neighbour(y.shape[-1])(y.unsqueeze(1), points)[:, 0]
    closest = (points - y.unsqueeze(1)).norm(dim=-1).argmin(-1)
    error = (found - points[torch.arange(len(points)), closest]).square().sum(-1)
    off = max(float((part.norm(dim=-1) - 1).abs().max()) for part in (points, y))
    return Evidence(
        (at_most("distance from the sphere", off, 0.0),),
        (at_most("largest squared error", float(error.max()), 0.0),),
    )


def _points_on_the_sphere(seed: int) -> Evidence:
    # Clustered points: the statement allows any distribution.
    points = gaussian(seed, "points", 300, 17, 6) + 2 * gaussian(seed, "centre", 300, 1, 6)
    unit = torch.nn.functional.normalize
    return _full_rank(unit(points, dim=-1), unit(gaussian(seed, "y", 300, 6), dim=-1))


def _points_of_any_norm(seed: int) -> Evidence:
    y = torch.nn.functional.normalize(gaussian(seed, "y", 300, 6), dim=-1)
    return _full_rank(gaussian(seed, "points", 300, 17, 6), y)


def _regime_1(seed: int, forms: Tensor) -> Evidence:
    """A real layer in the first regime, and the computable bound at every size of a grid."""
    h, r, d = forms.shape
    room = separation.high_accuracy_regime(d, min(r, d - 3))
    least = math.inf
    for width in (8, 16, 32, 64):
        for rank in range(1, width - 2):
            limit = separation.high_accuracy_regime(width, rank)
            if limit.log_heads >= 0:
                bound = error_at(width, rank, limit.log_heads)
                least = min(least, bound / limit.error)
    error = heads_error(forms, Values.IDENTITY, seed)
    return Evidence(
        (
            at_most("r − (d − 3)", r - (d - 3), 0),
            at_most("log₂ H less its limit", math.log2(h) - room.log_heads / math.log(2), 0),
        ),
        (
            at_least("error of the layer", error, REGIME_1_CONSTANT * room.error),
            at_least("computable bound over c/(d+1), least", least, REGIME_1_CONSTANT),
        ),
    )


def _within_regime_1(seed: int) -> Evidence:
    return _regime_1(seed, gaussian(seed, "regime 1", 64, 1, 16))


def _full_rank_layer(seed: int) -> Evidence:
    return _regime_1(seed, torch.eye(16, dtype=torch.float64).unsqueeze(0))


def _regime_2(widths: tuple[int, ...], exponent: float) -> Evidence:
    """The computable bound at the number of heads that the second regime allows."""
    least, covered = math.inf, 0
    for width in widths:
        for error in (0.01, 0.03, 0.1, 0.2, 0.4):
            for rank in (1, 4, 16, 64):
                room = width - 2 * math.e**2 * rank
                if room <= 0 or error < 1 / room:
                    continue
                limit = separation.high_dimensional_regime(width, rank, error, exponent)
                if limit.log_heads >= 0:
                    least = min(least, error_at(width, rank, limit.log_heads) / error)
                    covered += 1
    return Evidence(
        (
            at_most("C'", exponent, REGIME_2_CONSTANT),
            at_least("sizes with at least one head", covered, 1),
        ),
        (at_least("computable bound over ε, least", least, 1.0),),
    )


def _within_regime_2(seed: int) -> Evidence:
    return _regime_2((8, 64, 512, 10**4 + seed, 10**6), REGIME_2_CONSTANT)


def _too_many_heads(seed: int) -> Evidence:
    return _regime_2((8, 64, 512, 10**4 + seed, 10**6), 1.0)


def _biased(seed: int, rank: int, biases: np.ndarray) -> Evidence:
    """f* by its layer, and the least number of heads of lower rank, which grows exponentially."""
    d = 16
    generator = stream(seed, "biased")
    pairs, _ = neighbours(d, 2000, generator)
    y = torch.randn(2000, d, generator=generator, dtype=torch.float64) * d**-0.25
    layer = BiasedNeighbours(d, biases.tolist())
    x = (pairs[:, 0] - pairs[:, 1]) / math.sqrt(2)
    steps = (math.sqrt(2) * (x * y).sum(-1, keepdim=True) + torch.as_tensor(biases)).sign()
    signs = torch.tensor([1.0, -1.0]).repeat(len(biases))[: len(biases)].double()
    wave = (steps * signs).sum(-1, keepdim=True)
    target = pairs.sum(1) / 2 + wave * x / math.sqrt(2)
    heads = math.exp(separation.log_heads_for_biased_error(d, min(rank, d - 1)))
    slope = (
        separation.log_heads_for_biased_error(32, 2) - separation.log_heads_for_biased_error(16, 2)
    ) / 16
    represented = float((layer(pairs, y) - target).abs().max())
    return Evidence(
        (at_most("r / d", rank / d, 0.5), at_least("biases", len(biases), math.sqrt(d))),
        (
            at_most("layer of full-rank biased heads less f*", represented, 0.0),
            at_least("heads of rank r for error 1/40", heads, 2.0 ** (d - rank)),
            at_least("log₂ of the growth per dimension", slope / math.log(2), 1.0),
        ),
    )


def _square_wave(seed: int) -> Evidence:
    return _biased(seed, 2, separation.square_wave(16))


def _nearly_full_rank(seed: int) -> Evidence:
    return _biased(seed, 15, separation.square_wave(16)[:1])


UPPER_BOUND = (
    Statement(
        "Upper bound",
        Source.HEADS_PAPER,
        "slide Upper Bound",
        "y and x_1 … x_N lie on the sphere, from any distribution.",
        "One full-rank hardmax head (M = W = I) returns the nearest neighbour exactly.",
        _points_on_the_sphere,
        _points_of_any_norm,
        finding="The talk also writes = for softmax with 10¹⁰·I. That is an approximation: at a "
        "tie it returns the mean.",
    ),
)


LOWER_BOUNDS = (
    Statement(
        "Theorem 2, high accuracy",
        Source.HEADS_PAPER,
        "slide Lower Bound, regime 1",
        "r ≤ d − 3, ε ≤ c/(d+1), H ≤ C·2^(d−(r+1)log₂(2d/r)).",
        "H generalised rank-r heads have error at least ε. Constants are not printed; the "
        "computable bound implies it with c = C = 1 for every rank at widths 8 to 64.",
        _within_regime_1,
        _full_rank_layer,
    ),
    Statement(
        "Theorem 2, high dimension",
        Source.HEADS_PAPER,
        "slide Lower Bound, regime 2",
        "d ≥ 5, ε ≥ c'/(d − 2e²r), H ≤ ½(d/(2e(r + C'/ε)))^(C'/ε).",
        "H generalised rank-r heads have error at least ε. The computable bound implies it with "
        "c' = 1, C' = 0.2 at widths 8 to 10⁶.",
        _within_regime_2,
        _too_many_heads,
    ),
    Statement(
        "Theorem on biased neighbours",
        Source.HEADS_PAPER,
        "slide Alternative Lower Bound",
        "y ~ N(0, I/√d); f* combines biased nearest neighbours; r < d. Here f* is a square wave of "
        "about 2.5√d biases, since the talk does not print one.",
        "A layer of full-rank biased heads represents f*; with rank-r heads the error exceeds 1/40 "
        "unless H·max‖V_h‖ ≳ c^(d−r). Here without ‖V_h‖: H must exceed 2^(d−r).",
        _square_wave,
        _nearly_full_rank,
        finding="The slide prints “unless H·max‖V_h‖ ≲ c^(d−r)”; the sign must be ≳.",
    ),
)
