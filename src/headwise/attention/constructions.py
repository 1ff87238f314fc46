"""Layers whose weights are written down: one full-rank head, and votes of rank-one heads.

The task is the nearest neighbour: of x₁ … x_N on the sphere, return the one with the largest
inner product with y. Heads that report *which* token they chose need two more dimensions
per token: an index (1 and −1 for two tokens, 0 for y) and a scratchpad.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from headwise.attention.layer import Attention, HeadMean, HeadSum
from headwise.attention.masks import Allowed
from headwise.attention.projections import FullProjection
from headwise.attention.weighting import Hardmax, Softmax, Weighting
from headwise.geometry import HeadGeometry
from headwise.randomness import stream
from headwise.shapes import Float

#: Dimensions behind a token's coordinates: an index and a scratchpad.
EXTRA = 2


def nearest_neighbour(width: int) -> Attention:
    """Make one full-rank hardmax head with W_Q = W_K = W_V = W_O = I: exact for every N."""
    eye = torch.eye(width, dtype=torch.float64)
    return _written((eye, eye, eye, eye), heads=1, weighting=Hardmax())


def soft_nearest_neighbour(width: int, temperature: float) -> Attention:
    """Make the same head with softmax."""
    eye = torch.eye(width, dtype=torch.float64)
    return _written((eye, eye, eye, eye), heads=1, weighting=Softmax(), temperature=temperature)


def rank_one_vote(width: int, heads: int, seed: int = 0) -> Attention:
    """Return random rank-one hardmax heads u uᵀ that write the mean index of their choices.

    Tokens are (x; index; scratchpad), width + 2 wide; the scratchpad receives the mean.
    """
    drawn = torch.randn(heads, width, generator=stream(seed, "votes"), dtype=torch.float64)
    reading = nn.functional.pad(drawn, (0, EXTRA))
    weights = (reading, reading, _index(width, heads), _scratch(width, heads))
    return _written(weights, heads, weighting=Hardmax(), combination=HeadMean(heads))


def softmax_tally(width: int, tau: float) -> Attention:
    """Return one rank-one softmax head per coordinate, with logits τ x_j y_j.

    The scratchpad gets Σ_j tanh(τ (x₁−x₂)_j y_j / 2). For N = 2 and τ → 0 its sign is that of
    (x₁−x₂)ᵀy.
    """
    reading = nn.functional.pad(torch.eye(width, dtype=torch.float64), (0, EXTRA))
    weights = (reading, reading, _index(width, width), _scratch(width, width))
    return _written(weights, width, weighting=Softmax(), temperature=1 / tau)


class TwoLayerVote(nn.Module):
    """Two hardmax layers of query-key rank one, without an MLP: vote, then look up.

    Tokens are (x₁; 1; 0), (x₂; −1; 0), (y; 0; 0). In layer 1 the heads write the mean index
    into the scratchpad. In layer 2 the scratchpad is the query, the index the key, and the
    winner's coordinates the value. Its query-key rank is one and its value rank is the width d: a
    head with value rank one could not return a point of d coordinates.
    """

    def __init__(self, width: int, heads: int, seed: int = 0) -> None:
        super().__init__()
        self.width = width
        self.vote = rank_one_vote(width, heads, seed)
        coordinates = torch.eye(width, width + EXTRA, dtype=torch.float64)
        query, key = _scratch(width, 1).mT, _index(width, 1)
        weights = (query, key, coordinates, coordinates.mT)
        self.look_up = _written(weights, heads=1, weighting=Hardmax())

    def forward(
        self, pair: Float[Tensor, "b 2 d"], y: Float[Tensor, "b d"]
    ) -> Float[Tensor, "b d"]:
        """Return the one of the pair that the votes chose."""
        tokens = with_index(torch.cat([pair, y.unsqueeze(1)], dim=1))
        only_the_pair = Allowed(torch.tensor([[True, True, False]], device=tokens.device))
        tokens = tokens + self.vote(tokens, mask=only_the_pair)
        return self.look_up(tokens, mask=only_the_pair)[:, 2, : self.width]


class BiasedNeighbours(nn.Module):
    """The biased target f* as one layer: one full-rank hardmax head per bias, signs alternating.

    Head j returns x₁ if x₁ᵀy + b_j > x₂ᵀy and x₂ otherwise. The index carries the bias: keys are
    (x; ±1), and the query of head j is (y; b_j/2).
    """

    def __init__(self, width: int, biases: Sequence[float]) -> None:
        super().__init__()
        heads, signs = len(biases), torch.tensor([1.0, -1.0]).repeat(len(biases))[: len(biases)]
        queries = torch.zeros(heads, width + 1, width + EXTRA, dtype=torch.float64)
        queries[:, :width, :width] = torch.eye(width)
        queries[:, width, width + 1] = torch.as_tensor(biases, dtype=torch.float64) / 2
        keys = torch.eye(width + 1, width + EXTRA, dtype=torch.float64).expand(heads, -1, -1)
        coordinates = torch.eye(width, width + EXTRA, dtype=torch.float64)
        output = (signs.double().reshape(-1, 1, 1) * coordinates).flatten(0, 1).mT
        weights = (queries.flatten(0, 1), keys.flatten(0, 1), coordinates.repeat(heads, 1), output)
        self.width = width
        self.layer = _written(weights, heads, weighting=Hardmax())

    def forward(
        self, pair: Float[Tensor, "b 2 d"], y: Float[Tensor, "b d"]
    ) -> Float[Tensor, "b d"]:
        """Return f*(x₁, x₂; y)."""
        asked = with_index(y.unsqueeze(1))
        asked[..., self.width], asked[..., self.width + 1] = 0.0, 1.0
        return self.layer(asked, with_index(pair))[:, 0, : self.width]


def with_index(tokens: Float[Tensor, "b n d"]) -> Float[Tensor, "b n e"]:
    """Append an index (1, −1, 0, 0 …) and an empty scratchpad to the tokens."""
    index = tokens.new_zeros(tokens.shape[1])
    index[:2] = tokens.new_tensor([1.0, -1.0])[: tokens.shape[1]]
    column = index.view(1, -1, 1).expand(tokens.shape[0], -1, 1)
    return torch.cat([tokens, column, torch.zeros_like(column)], dim=-1)


def _index(width: int, heads: int) -> Tensor:
    """Return values with which every head reads the index."""
    reading = torch.zeros(heads, width + EXTRA, dtype=torch.float64)
    reading[:, width] = 1
    return reading


def _scratch(width: int, heads: int) -> Tensor:
    """Return outputs with which every head writes to the scratchpad."""
    writing = torch.zeros(width + EXTRA, heads, dtype=torch.float64)
    writing[width + 1] = 1
    return writing


def _written(
    weights: tuple[Tensor, Tensor, Tensor, Tensor],
    heads: int,
    *,
    weighting: Weighting,
    temperature: float = 1.0,
    combination: HeadSum | HeadMean | None = None,
) -> Attention:
    """Make a frozen float64 layer with these W_Q, W_K, W_V, W_O."""
    query, _, value, output = weights
    ranks = (query.shape[0] // heads, value.shape[0] // heads)
    projection = FullProjection(HeadGeometry(output.shape[0], heads, heads, *ranks)).double()
    maps = (projection.query, projection.key, projection.value, projection.output)
    for linear, weight in zip(maps, weights, strict=True):
        linear.weight.data.copy_(weight)
    layer = Attention(
        projection, weighting=weighting, temperature=temperature, combination=combination
    )
    return layer.requires_grad_(False).eval()
