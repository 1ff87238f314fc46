"""Lemmas 5 and 6, Proposition 1 and the bottleneck of the rank paper: matrices near others."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import Estimate
from headwise.theory import barrier
from headwise.theory.ensembles import IndependentHead
from headwise.theory.montecarlo import hardmax_choices
from headwise.theory.statements.statement import (
    Evidence,
    Sense,
    Statement,
    exactly,
    gaussian,
    nothing,
)

_N = 40


def _near_orthonormal(seed: int) -> Tensor:
    return torch.eye(_N, dtype=torch.float64) + 0.001 * gaussian(seed, "lemma5", _N, _N)


def _coherence(inputs: Tensor) -> float:
    return float((inputs @ inputs.mT - torch.eye(len(inputs))).abs().max())


def _nearest(seed: int) -> Evidence:
    inputs = _near_orthonormal(seed)
    distance = (inputs - barrier.nearest_orthonormal(inputs)).norm()
    return Evidence(exactly(float(distance)), (_N, _coherence(inputs)))


def _some_orthonormal(seed: int) -> Evidence:
    inputs = _near_orthonormal(seed)
    distance = (inputs + barrier.nearest_orthonormal(inputs)).norm()
    return Evidence(exactly(float(distance)), (_N, _coherence(inputs)))


def _incoherent_keys(seed: int) -> Evidence:
    keys = gaussian(seed, "lemma6", 300, 10, 1200)
    return Evidence(_share_coherent(keys), (10, 1200, 0.15))


def _shared_keys(seed: int) -> Evidence:
    keys = gaussian(seed, "lemma6", 300, 10, 1200) + 0.8 * gaussian(seed, "shared", 300, 1, 1200)
    return Evidence(_share_coherent(keys), (10, 1200, 0.15))


def _share_coherent(keys: Tensor) -> Estimate:
    gram = keys @ keys.mT / keys.shape[-1] - torch.eye(keys.shape[-2], dtype=torch.float64)
    return Estimate.of((gram.abs().amax((-1, -2)) > 0.15).double())


def _rank_change(seed: int, share: float) -> Evidence:
    """How far the ε-rank moves under the worst perturbation of a given share of the range."""
    values = torch.tensor([2.0, 1.0, 0.5, 0.25, 0.0], dtype=torch.float64)
    stable = barrier.stable_range(values, 0.4)
    left = torch.linalg.qr(gaussian(seed, "left", 5, 5))[0]
    right = torch.linalg.qr(gaussian(seed, "right", 5, 5))[0]
    worst = torch.where(values >= 0.4, -1.0, 1.0) * share * stable.limit
    moved = torch.linalg.svdvals(left @ torch.diag(values + worst) @ right)
    return Evidence(exactly(abs(int((moved >= 0.4).sum()) - stable.rank)), ())


def _inside_the_range(seed: int) -> Evidence:
    return _rank_change(seed, 0.999)


def _outside_the_range(seed: int) -> Evidence:
    return _rank_change(seed, 1.001)


def _hardmax_matrix(choices: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(choices, _N).double()


def _distance_to_identity(seed: int) -> Evidence:
    queries, keys = IndependentHead(_N, 64).draw(200, stream(seed, "bottleneck"))
    matrices = _hardmax_matrix(hardmax_choices(queries[:, :_N], keys))
    target = torch.eye(_N, dtype=torch.float64)
    return Evidence(Estimate.of((matrices - target).square().sum((-1, -2))), (target,))


def _full_rank_copy(seed: int) -> Evidence:
    target = _hardmax_matrix(torch.randperm(_N, generator=stream(seed, "bottleneck")))
    return Evidence(exactly(0.0), (target,))


MATRIX_STATEMENTS = (
    Statement(
        "Lemma 5",
        "rank paper, Lemma 5",
        "Inputs of coherence ε are within ε·n^(3/2) of an orthonormal matrix, in Frobenius norm.",
        barrier.orthonormal_distance,
        Sense.AT_MOST,
        _nearest,
        _some_orthonormal,
    ),
    Statement(
        "Lemma 6",
        "rank paper, Lemma 6 and Remark 5",
        "Gaussian projections of orthonormal inputs exceed coherence ε with probability at "
        "most 2n²e^(−d_h(ε²/2−ε³/3)/2); the constant before log n is therefore of order 1/ε².",
        barrier.coherence_probability,
        Sense.AT_MOST,
        _incoherent_keys,
        _shared_keys,
    ),
    Statement(
        "Proposition 1",
        "rank paper, Proposition 1",
        "A perturbation inside the stable range leaves the ε-rank as it is; at its open end "
        "the rank changes.",
        nothing,
        Sense.AT_MOST,
        _inside_the_range,
        _outside_the_range,
    ),
    Statement(
        "Eckart–Young bottleneck",
        "rank paper, section 4",
        "Hardmax attention of random weights stays, on average, at least the tail energy "
        "beyond the barrier's rank away from any target matrix.",
        barrier.barrier_bottleneck,
        Sense.AT_LEAST,
        _distance_to_identity,
        _full_rank_copy,
    ),
)
