"""Layers written down: exact where they are exact, and their laws within error bars."""

import math

import pytest
import torch

from headwise.attention.constructions import (
    BiasedNeighbours,
    TwoLayerVote,
    nearest_neighbour,
    rank_one_vote,
    soft_nearest_neighbour,
    softmax_tally,
    with_index,
)
from headwise.spectra import Estimate
from headwise.theory.nearest import majority_vote_error


def sphere(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
    return drawn / drawn.norm(dim=-1, keepdim=True)


def orthonormal_pairs(draws, width, seed=0):
    """(x₁, x₂) uniform orthonormal and y uniform, all on the sphere."""
    first, second, y = sphere(3, draws, width, seed=seed)
    second = second - (first * second).sum(-1, keepdim=True) * first
    second = second / second.norm(dim=-1, keepdim=True)
    return torch.stack([first, second], dim=1), y


def nearest(pair, y):
    chosen = (pair @ y.unsqueeze(-1)).squeeze(-1).argmax(-1)
    return pair[torch.arange(len(pair)), chosen]


def within(estimate, law, sigmas=4.0):
    """A draw outside four standard errors comes once in 16,000; seeds are fixed."""
    return abs(estimate.mean - law) <= sigmas * estimate.stderr


class TestFullRankHead:
    @pytest.mark.parametrize("count", [1, 2, 17, 300])
    def test_nearest_neighbour_is_exact(self, count):
        x, y = sphere(5, count, 8), sphere(5, 3, 8, seed=1)
        wanted = x.gather(1, (y @ x.mT).argmax(-1, keepdim=True).expand(-1, -1, 8))
        assert torch.equal(nearest_neighbour(8)(y, key=x), wanted)

    @pytest.mark.parametrize("error", [0.5, 1e-2, 1e-8])
    def test_softmax_keeps_the_error_it_was_scaled_for(self, error):
        x, y = sphere(50, 9, 8), sphere(50, 1, 8, seed=1)
        top = (y @ x.mT).topk(2).values
        gap = float((top[..., 0] - top[..., 1]).min())
        # The eight others weigh at most 8·exp(−gap/T), and two unit vectors are at most 2 apart.
        layer = soft_nearest_neighbour(8, gap / math.log(2 * 8 / error))
        off = (layer(y, key=x) - nearest_neighbour(8)(y, key=x)).norm(dim=-1)
        assert 0 < float(off.max()) <= error


class TestRandomRankOneHeads:
    def votes(self, pair, y, heads, seed):
        layer = rank_one_vote(pair.shape[-1], heads, seed)
        asked = with_index(y.unsqueeze(1)) * torch.tensor([1.0] * y.shape[-1] + [0, 0]).double()
        return layer(asked, key=with_index(pair))[:, 0, -1]

    @pytest.mark.parametrize("cosine", [0.0, 0.2, 0.7, 1.0])
    def test_success_law(self, cosine):
        width = 5
        pair, w = torch.eye(width).double()[:2], torch.zeros(width).double()
        w[0], w[1] = 2**-0.5, -(2**-0.5)
        y = cosine * w + math.sqrt(1 - cosine**2) * torch.eye(width).double()[3]
        # One layer of many independent heads: the mean index is 2·P(right) − 1.
        votes = self.votes(pair[None], y[None], heads=40_000, seed=3)
        share = (float(votes) + 1) / 2
        spread = math.sqrt(max(share * (1 - share), 1e-12) / 40_000)
        assert within(Estimate(share, spread, 40_000), 0.5 + math.asin(cosine) / math.pi)

    @pytest.mark.parametrize(("width", "heads"), [(4, 101), (16, 33), (64, 1)])
    def test_majority_vote_law(self, width, heads):
        losses = []
        for seed in range(60):  # fresh heads too: the law averages over them
            pair, y = orthonormal_pairs(200, width, seed=seed)
            side = self.votes(pair, y, heads, seed=seed)
            chosen = torch.where(side.unsqueeze(-1) > 0, pair[:, 0], pair[:, 1])
            losses.append((chosen - nearest(pair, y)).square().sum(-1).mean())
        assert within(Estimate.of(torch.stack(losses)), majority_vote_error(width, heads))

    @pytest.mark.parametrize(("width", "heads"), [(4, 101), (16, 33)])
    def test_two_layers_look_up_what_the_vote_chose(self, width, heads):
        pair, y = orthonormal_pairs(500, width)
        side = self.votes(pair, y, heads, seed=7)
        wanted = torch.where(side.unsqueeze(-1) > 0, pair[:, 0], pair[:, 1])
        assert torch.equal(TwoLayerVote(width, heads, seed=7)(pair, y), wanted)

    def test_two_layers_are_rank_one(self):
        model = TwoLayerVote(8, heads=5)
        assert model.vote.geometry.qk_rank == model.look_up.geometry.qk_rank == 1

    def test_the_look_up_head_has_value_rank_d(self):
        model = TwoLayerVote(8, heads=5)
        assert model.vote.geometry.v_rank == 1
        assert model.look_up.geometry.v_rank == 8


class TestBiasedNeighbours:
    def test_it_is_the_alternating_sum_of_biased_choices(self):
        biases = [-0.3, -0.1, 0.0, 0.15, 0.4]
        pair, y = orthonormal_pairs(400, 6)
        wanted = torch.zeros_like(y)
        for place, bias in enumerate(biases):
            first = (pair[:, 0] * y).sum(-1) + bias > (pair[:, 1] * y).sum(-1)
            chosen = torch.where(first.unsqueeze(-1), pair[:, 0], pair[:, 1])
            wanted += (-1) ** place * chosen
        torch.testing.assert_close(BiasedNeighbours(6, biases)(pair, y), wanted)

    def test_without_bias_it_is_the_nearest_neighbour(self):
        pair, y = orthonormal_pairs(100, 5)
        torch.testing.assert_close(BiasedNeighbours(5, [0.0])(pair, y), nearest(pair, y))


class TestSoftmaxTally:
    def sums(self, width, tau, pair, y):
        asked = with_index(y.unsqueeze(1)) * torch.tensor([1.0] * width + [0, 0]).double()
        return softmax_tally(width, tau)(asked, key=with_index(pair))[:, 0, -1]

    def test_it_is_the_sum_of_hyperbolic_tangents(self):
        pair, y = orthonormal_pairs(300, 16)
        difference = pair[:, 0] - pair[:, 1]
        wanted = torch.tanh(3.0 * difference * y / 2).sum(-1)
        torch.testing.assert_close(self.sums(16, 3.0, pair, y), wanted, rtol=0, atol=1e-13)

    def test_its_error_vanishes_with_tau(self):
        pair, y = orthonormal_pairs(40_000, 16)
        truth = ((pair[:, 0] - pair[:, 1]) * y).sum(-1) > 0
        wrong = [
            float(((self.sums(16, tau, pair, y) > 0) != truth).double().mean())
            for tau in (1000.0, 30.0, 3.0, 1e-3)
        ]
        assert wrong == sorted(wrong, reverse=True)
        assert wrong[0] > 0.05
        assert wrong[-1] == 0.0
