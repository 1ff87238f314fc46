"""Lemmas 1 to 4 and the theorems of the rank paper: rows of scores, and the columns they choose."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.randomness import stream
from headwise.spectra import PAPER_TOLERANCE, Estimate, LogWeights, count
from headwise.theory import barrier
from headwise.theory.ensembles import IndependentHead, InputHead, PlateauHead
from headwise.theory.montecarlo import hardmax_choices, simulate_ratio
from headwise.theory.statements.statement import (
    Evidence,
    Sense,
    Statement,
    exactly,
    gaussian,
    nothing,
)

_N = 40


def _row_distance(scores: Tensor, temperature: float) -> tuple[float, float]:
    """The 1-norm between softmax and hardmax of one row, and the row's gap."""
    top = scores.topk(2).values
    return 2 * float(1 - torch.softmax(scores / temperature, -1).max()), float(top[0] - top[1])


def _softmax_row(seed: int) -> Evidence:
    # All runners-up nearly equal: the case in which the lemma is nearly tight.
    scores = 0.01 * gaussian(seed, "lemma1", _N)
    scores[seed % _N] += 1.0
    distance, gap = _row_distance(scores, 0.1)
    return Evidence(exactly(distance), (_N, gap, 0.1))


def _softmax_row_too_warm(seed: int) -> Evidence:
    scores = torch.zeros(_N, dtype=torch.float64).index_fill(0, torch.tensor([seed % _N]), 1.0)
    distance, gap = _row_distance(scores, 0.5)
    return Evidence(exactly(distance), (_N, gap, 0.1))


def _share_of_narrow_gaps(scores: Tensor) -> Estimate:
    top = scores.topk(2, dim=-1).values
    narrow = ((top[..., 0] - top[..., 1]).amin(-1) <= barrier.smallest_gap(_N, 0.2)).double()
    return Estimate.of(narrow)


def _narrow_gaps(seed: int) -> Evidence:
    return Evidence(_share_of_narrow_gaps(gaussian(seed, "lemma2", 400, _N, _N)), (0.2,))


def _twin_keys(seed: int) -> Evidence:
    scores = gaussian(seed, "lemma2", 400, _N, _N // 2)
    twins = torch.cat([scores, scores + 1e-9], -1)
    return Evidence(_share_of_narrow_gaps(twins), (0.2,))


def _empty(choices: Tensor) -> Estimate:
    used = [len(torch.unique(row)) for row in choices]
    return Estimate.of(_N - torch.tensor(used, dtype=torch.float64))


def _random_choices(seed: int) -> Evidence:
    choices = torch.randint(0, _N, (400, _N), generator=stream(seed, "lemma3"))
    return Evidence(_empty(choices), (_N,))


def _permutations(seed: int) -> Evidence:
    choices = torch.rand(400, _N, generator=stream(seed, "lemma3")).argsort(-1)
    return Evidence(_empty(choices), (_N,))


def _dependence(seed: int, inputs: Tensor) -> Evidence:
    """Chi-square of independence between the choices of two rows, the keys held fixed."""
    keys, weights = gaussian(seed, "keys", 4, 8), gaussian(seed, "lemma4", 20000, 3, 8)
    choices = hardmax_choices(inputs @ weights, keys.expand(20000, -1, -1))
    table = torch.zeros(16, dtype=torch.float64)
    pair = choices[:, 0] * 4 + choices[:, 1]
    table = table.scatter_add_(0, pair, torch.ones(len(pair), dtype=torch.float64)).reshape(4, 4)
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    expected = table.sum(1, keepdim=True) * table.sum(0, keepdim=True) / table.sum()
    square = float(((table - expected).square() / expected).sum())
    return Evidence(exactly(square), (max(2, len(table)),))


def _orthonormal_rows(seed: int) -> Evidence:
    return _dependence(seed, torch.eye(2, 3, dtype=torch.float64))


def _correlated_rows(seed: int) -> Evidence:
    inputs = torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]], dtype=torch.float64)
    return _dependence(seed, inputs)


def _rank(ratio: Estimate, n: int) -> Estimate:
    return Estimate(ratio.mean * n, ratio.stderr * n, ratio.draws)


def _wide_head(seed: int) -> Evidence:
    return Evidence(_rank(simulate_ratio(IndependentHead(_N, 256), 400, seed), _N), (_N,))


def _each_row_its_own_key(seed: int) -> Evidence:
    keys = gaussian(seed, "theorem1", _N, _N)
    choices = hardmax_choices(torch.linalg.inv(keys).mT, keys)
    return Evidence(exactly(len(torch.unique(choices))), (_N,))


def _softmax_rank(seed: int, temperature: float) -> Evidence:
    queries, keys = gaussian(seed, "q", 60, _N, 64), gaussian(seed, "k", 60, _N, 64)
    ranks = count(LogWeights(queries @ keys.mT / temperature), PAPER_TOLERANCE).low
    return Evidence(Estimate.of(ranks.double()), (_N,))


def _cold_softmax(seed: int) -> Evidence:
    return _softmax_rank(seed, 1e-4)


def _warm_softmax(seed: int) -> Evidence:
    return _softmax_rank(seed, 8.0)


def _plateau_difference(seed: int, small: int) -> Evidence:
    """By how much the rank grows from one head dimension to 4096, in columns."""
    inputs = torch.eye(_N, dtype=torch.float64)
    low = simulate_ratio(InputHead(inputs, small), 100, seed)
    high = simulate_ratio(PlateauHead(inputs), 300, seed + 1)
    stderr = (low.stderr**2 + high.stderr**2) ** 0.5
    return Evidence(_rank(Estimate(high.mean - low.mean, stderr, low.draws + high.draws), _N), ())


def _beyond_the_knee(seed: int) -> Evidence:
    return _plateau_difference(seed, 1024)


def _before_the_knee(seed: int) -> Evidence:
    return _plateau_difference(seed, 4)


def _changed_choices(seed: int, shift: float) -> Evidence:
    scores = gaussian(seed, "remark3", _N, _N)
    scaled = 1e3 * scores + shift * torch.arange(_N)
    return Evidence(exactly(int((scores.argmax(-1) != scaled.argmax(-1)).sum())), ())


def _scaled(seed: int) -> Evidence:
    return _changed_choices(seed, 0.0)


def _shifted(seed: int) -> Evidence:
    return _changed_choices(seed, 1e3)


def _half_a_column() -> float:
    return 0.5


ROW_STATEMENTS = (
    Statement(
        "Lemma 1",
        "rank paper, Lemma 1",
        "A softmax row is within 2(n−1)e^(−gap/T) of its hardmax, in the 1-norm.",
        barrier.softmax_to_hardmax,
        Sense.AT_MOST,
        _softmax_row,
        _softmax_row_too_warm,
    ),
    Statement(
        "Lemma 2",
        "rank paper, Lemma 2",
        "With probability 1 − η the gap of every row exceeds δ_n; here the share of "
        "matrices with a narrower gap is at most η.",
        float,
        Sense.AT_MOST,
        _narrow_gaps,
        _twin_keys,
    ),
    Statement(
        "Lemma 3",
        "rank paper, Lemma 3",
        "Rows that choose alike and independently leave at least n(1−1/n)^n columns empty.",
        barrier.empty_columns,
        Sense.AT_LEAST,
        _random_choices,
        _permutations,
    ),
    Statement(
        "Lemma 4",
        "rank paper, Lemma 4",
        "With orthonormal inputs and given keys, rows choose independently: the chi-square "
        "of two rows' choices stays below its one-in-a-million quantile.",
        barrier.independence_limit,
        Sense.AT_MOST,
        _orthonormal_rows,
        _correlated_rows,
    ),
    Statement(
        "Theorem 1",
        "rank paper, Theorem 1",
        "The expected hardmax rank is at most (1−1/e)n + 2e⁻²(1+1/(n−1))².",
        barrier.rank_barrier,
        Sense.AT_MOST,
        _wide_head,
        _each_row_its_own_key,
    ),
    Statement(
        "Theorem 1, second half",
        "rank paper, Theorem 1",
        "Once d_h is large the rank no longer depends on it: from d_h = 1024 to the limit "
        "it grows by less than half a column (n = 40).",
        _half_a_column,
        Sense.AT_MOST,
        _beyond_the_knee,
        _before_the_knee,
    ),
    Statement(
        "Theorem 2",
        "rank paper, Theorem 2",
        "At small temperature the ε-rank of softmax obeys the same barrier.",
        barrier.rank_barrier,
        Sense.AT_MOST,
        _cold_softmax,
        _warm_softmax,
    ),
    Statement(
        "Remark 3",
        "rank paper, Remark 3",
        "Hardmax does not see the scale of the scores: no row changes its choice.",
        nothing,
        Sense.AT_MOST,
        _scaled,
        _shifted,
    ),
)
