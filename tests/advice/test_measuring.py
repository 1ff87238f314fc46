"""Measured curves against plain decompositions, their band against more seeds."""

import pytest
import torch

from headwise import advise
from headwise.advice.curves import (
    FURTHER,
    HALF_WIDTH,
    MOST_LARGE,
    band,
    head_dim_grid,
    our_saturation,
)
from headwise.advice.evidence import (
    STEPS,
    Sampling,
    measured_curve,
    measured_evidence,
    ratios_of_seed,
)
from headwise.advice.tokens.source import Reading
from headwise.advice.tokens.token_set import TokenSet
from headwise.attention import Causal
from headwise.progress import NoProgress
from headwise.randomness import stream, stream_seed
from headwise.theory.law_formula import law_share
from headwise.theory.montecarlo import plateau_ratio


def white(length=16, width=8, sequences=6):
    shape = (sequences, length, width)
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def drawn_heads(start, seed):
    """Weights as each start draws them, redone from the same streams."""
    for name in ("queries", "keys"):
        if start == "paper":
            yield torch.randn(32, 8, 8, generator=stream(seed, name), dtype=torch.float64)
        else:
            unit = torch.rand(32, 8, 8, generator=stream(seed, name), dtype=torch.float64)
            yield (2 * unit - 1) / 8**0.5


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("start", ["paper", "model"])
def test_a_rank_is_what_a_plain_decomposition_counts(start, mask):
    """One seed redone by hand: the same streams, softmax, SVD, singular values ≥ 1e-8."""
    tokens, dims, seed = TokenSet(white(), 8, "given"), (1, 3, 8), 5
    found = ratios_of_seed(tokens, start, dims, seed, mask)
    inputs = tokens.values[torch.randint(6, (32,), generator=stream(seed, "sequences"))]
    if start == "model":
        positions = torch.randn(16, 8, generator=stream(seed, "positions"), dtype=torch.float64)
        inputs = torch.nn.LayerNorm(8, dtype=torch.float64)(inputs + 0.02 * positions).detach()
    query, key = (inputs @ weights for weights in drawn_heads(start, seed))
    for dim, ratio in zip(dims, found, strict=True):
        scores = query[..., :dim] @ key[..., :dim].mT / dim**0.5
        if mask == "causal":
            scores[..., torch.ones(16, 16, dtype=torch.bool).triu(1)] = -torch.inf
        counted = (torch.linalg.svdvals(scores.softmax(-1)) >= 1e-8).sum(-1)
        # A singular value within rounding of 1e-8 may fall on either side.
        assert abs(float(ratio) - float(counted.double().mean()) / 16) <= 1 / 16 / 32


def test_nearly_orthonormal_tokens_follow_the_law():
    tokens = torch.randn(8, 64, 256, generator=torch.Generator().manual_seed(1)).double()
    curve = measured_curve(TokenSet(tokens, 256, "given"), "paper", Sampling())
    law = law_share(64, [16, 64])
    for dim, wanted in zip((16, 64), law.tolist(), strict=True):
        # ε-rank counts near ties that the hardmax does not, and tokens are not quite orthonormal.
        assert abs(curve.at(dim) - wanted) < 0.07
    assert abs(curve.plateau - 0.632) < 0.04


@pytest.mark.parametrize("n", [2, 5, 40])
def test_the_causal_plateau_of_orthonormal_tokens_is_half(n):
    """Row i picks one of i columns: column j stays empty with chance Π (1 − 1/i) = (j − 1) / n."""
    found = plateau_ratio(torch.eye(n).double(), 4000, seed=1, mask=Causal()).mean
    assert found == pytest.approx((n + 1) / 2 / n, abs=4 * 0.5 / (n * 4000) ** 0.5)


def test_under_a_causal_mask_the_curve_without_mask_decides():
    tokens = TokenSet(white(), 8, "given")
    bare = measured_evidence(tokens, Reading(), Sampling())
    causal = measured_evidence(tokens, Reading(), Sampling(mask="causal"))
    names = [curve.name for curve in causal.curves]
    assert names == ["model", "model, causal", "paper, causal"]
    assert causal.curve == bare.curve
    # A triangular matrix with a positive diagonal.
    assert causal.curves[1].mean[0] == 1.0 > causal.curves[0].mean[0]
    assert causal.curves[2] != bare.curves[1]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_curve():
    tokens = TokenSet(white(), 8, "given")
    first, again, other = (measured_curve(tokens, "paper", Sampling(seed)) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_the_band_is_narrow_enough():
    for start in ("model", "paper"):
        curve = measured_curve(TokenSet(white(), 8, "given"), start, Sampling())
        assert 0 < min(curve.half_width) <= max(curve.half_width) <= HALF_WIDTH
        assert curve.head_dims == head_dim_grid(8)


@pytest.mark.slow
def test_the_band_covers_the_mean_of_twenty_more_seeds():
    """At three points of a curve, 2,000 repeats out of 400 measured seeds: at least 90 %."""
    tokens, dims, seeds = TokenSet(white(12), 8, "given"), (1, 2, 8), 8
    pool = torch.stack(
        [ratios_of_seed(tokens, "paper", dims, stream_seed(7, number)) for number in range(400)]
    )
    generator = torch.Generator().manual_seed(0)
    covered = torch.zeros(len(dims))
    for _ in range(2000):
        rows = pool[torch.randint(400, (seeds + FURTHER,), generator=generator)]
        mean, half = band(rows[:seeds], 12)
        covered += (rows[seeds:].mean(0) - mean).abs() <= half
    assert float(covered.min()) / 2000 >= 0.9
    # The band is no wall: were it, it would say nothing.
    assert float(covered.max()) / 2000 <= 0.99


def test_threads_change_nothing():
    tokens = TokenSet(white(), 8, "given")
    alone = measured_curve(tokens, "paper", Sampling())
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert measured_curve(tokens, "paper", Sampling()) == alone
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_zero_spread_is_not_certainty():
    mean, half = band(torch.ones(8, 3).double(), 100)
    assert mean.tolist() == [1.0] * 3
    assert float(half.min()) > 0


def uneven(sequences=40, length=32, width=8):
    """Half of the sequences repeat their third token to the end: little rank, and much."""
    values = white(length, width, sequences)
    values[::2, 3:] = values[::2, 2:3]
    return TokenSet(values, width, "given")


class TestUnevenSequences:
    def test_each_seed_takes_more_of_them_until_the_band_is_narrow(self):
        curve = measured_curve(uneven(), "model", Sampling())
        assert max(curve.half_width) <= HALF_WIDTH
        assert curve.seeds <= MOST_LARGE
        assert curve.below_top_half_width == ()

    def test_the_band_covers_the_mean_of_all(self):
        curve = measured_curve(uneven(), "paper", Sampling())
        seeds = [stream_seed(9, number) for number in range(24)]
        truth = torch.stack(
            [ratios_of_seed(uneven(), "paper", curve.head_dims, seed, few=128) for seed in seeds]
        ).mean(0)
        mean, half = torch.tensor(curve.mean), torch.tensor(curve.half_width)
        assert bool(((mean - truth).abs() <= half).all())

    def test_progress_ends_at_its_total_however_many_seeds_are_drawn(self):
        class Steps(NoProgress):
            done = 0

            def advance(self, steps=1):
                self.done += steps

        steps = Steps()
        assert measured_curve(uneven(), "model", Sampling(progress=steps)).seeds != STEPS
        assert steps.done == STEPS

    def test_where_it_stays_wide_differences_decide(self, monkeypatch):
        monkeypatch.setattr("headwise.advice.curves.MOST_ENTRIES", 0)
        monkeypatch.setattr("headwise.advice.curves.SEQUENCES", 1)
        curve = measured_curve(uneven(), "model", Sampling())
        assert max(curve.half_width) > HALF_WIDTH
        assert max(curve.below_top_half_width) < max(curve.half_width)
        goal = 0.9 * curve.plateau
        by_band = [m - h >= goal for m, h in zip(curve.mean, curve.half_width, strict=True)]
        assert not any(by_band)
        assert our_saturation(curve, 0.1) is not None

    def test_that_it_is_wide_is_said(self, monkeypatch):
        narrow = advise(uneven().values)
        assert not narrow.finding("wide band")
        monkeypatch.setattr("headwise.advice.curves.MOST_ENTRIES", 0)
        monkeypatch.setattr("headwise.advice.curves.SEQUENCES", 1)
        wide = advise(uneven().values)
        assert wide.finding("wide band")


def test_parts_of_a_draw_give_what_the_whole_gives():
    """Many sequences are counted a few at a time."""
    tokens, dims = uneven(), (1, 4, 8)
    few = ratios_of_seed(tokens, "paper", dims, 3, few=70)
    rows = torch.randint(40, (70,), generator=stream(3, "sequences"))
    shape = (70, 8, 8)
    heads = [
        torch.randn(shape, generator=stream(3, name), dtype=torch.float64)
        for name in ("queries", "keys")
    ]
    query, key = (tokens.values[rows] @ weights for weights in heads)
    for dim, ratio in zip(dims, few, strict=True):
        scores = query[..., :dim] @ key[..., :dim].mT / dim**0.5
        counted = (torch.linalg.svdvals(scores.softmax(-1)) >= 1e-8).sum(-1)
        assert float(ratio) == pytest.approx(float(counted.double().mean()) / 32, abs=1 / 32 / 70)
