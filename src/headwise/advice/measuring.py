"""Rank against head dimension, measured on the tokens over seeds until the band is narrow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.advice.curves import RankCurve, Start, head_dim_grid
from headwise.advice.embedding import TokenSet, as_seen
from headwise.attention.scores import logits
from headwise.randomness import stream, stream_seed
from headwise.shapes import Float
from headwise.spectra import count
from headwise.theory.plateau import plateau_ratio

#: The band must be at most this wide on each side.
HALF_WIDTH = 0.03

#: Seeds before the band is looked at for the first time, seeds added then, and the most.
FIRST, MORE, MOST = 8, 4, 64

#: The band is where the mean of this many further seeds lies.
FURTHER = 20

#: The largest head dimension measured.
MOST_HEAD_DIM = 128

# Sequences per seed: enough to average over, few enough that long ones stay quick.
_SEQUENCES, _ENTRIES = 32, 2**16

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Sampling:
    """From what seed the random draws come, and who is told of each one done.

    >>> Sampling(seed=3).seed
    3
    """

    seed: int = 0
    progress: Progress = lambda done: None


def measured_curve(tokens: TokenSet, start: Start, sampling: Sampling) -> RankCurve:
    """Mean rank / length over seeds, each with its own sequences, embedding and heads.

    >>> white = torch.randn(4, 12, 8, generator=torch.Generator().manual_seed(0)).double()
    >>> curve = measured_curve(TokenSet(white, 8, "given"), "paper", Sampling())
    >>> curve.head_dims, max(curve.half_width) <= HALF_WIDTH
    ((1, 2, 3, 4, 6, 8), True)
    """
    dims = head_dim_grid(min(tokens.width, MOST_HEAD_DIM))
    rows: list[Tensor] = []
    wanted = FIRST
    while True:
        for number in range(len(rows), wanted):
            rows.append(ratios_of_seed(tokens, start, dims, stream_seed(sampling.seed, number)))
            sampling.progress(1)
        mean, half = band(torch.stack(rows), tokens.length)
        if float(half.max()) <= HALF_WIDTH or wanted >= MOST:
            break
        wanted += MORE
    plateau, source = _plateau(tokens, start, mean, sampling.seed)
    ranks, halves = tuple(mean.tolist()), tuple(half.tolist())
    return RankCurve(start, dims, ranks, halves, len(rows), plateau, source)


def band(
    ratios: Float[Tensor, "seeds dims"], length: int
) -> tuple[Float[Tensor, " dims"], Float[Tensor, " dims"]]:
    """Means over seeds, and the half width within which the mean of 20 more lies (95 %).

    A spread of zero is not certainty: half a singular value in ``length`` is always open.

    >>> mean, half = band(torch.tensor([[0.4], [0.6], [0.5]]).double(), 100)
    >>> round(float(mean), 3), round(float(half), 3)
    (0.5, 0.266)
    """
    from scipy import special

    seeds = ratios.shape[0]
    quantile = float(special.stdtrit(seeds - 1, 0.975))
    spread = ratios.std(0) * math.sqrt(1 / seeds + 1 / FURTHER)
    return ratios.mean(0), torch.clamp(
        quantile * spread, min=0.5 / length / sequences_per_seed(length)
    )


def ratios_of_seed(
    tokens: TokenSet, start: Start, dims: tuple[int, ...], seed: int
) -> Float[Tensor, " dims"]:
    """Rank / length at each head dimension: one draw of sequences, embedding and heads.

    The heads of all dimensions share their first columns, so differences between dimensions
    are known better than each rank.
    """
    few = sequences_per_seed(tokens.length)
    rows = torch.randint(tokens.sequences, (few,), generator=stream(seed, "sequences"))
    inputs = tokens.chosen(rows).embedded(seed)
    if start == "model":
        inputs = as_seen(inputs, seed)
    shape = (few, tokens.width, dims[-1])
    queries = inputs @ _weights(shape, start, seed, "queries")
    keys = inputs @ _weights(shape, start, seed, "keys")
    # One batch for all dimensions: columns beyond the dimension are zero.
    sizes = torch.tensor(dims)[:, None]
    used = (torch.arange(dims[-1]) < sizes) / sizes.double().sqrt()
    many = keys.expand(len(dims), -1, -1, -1)
    found = count(logits(queries * used[:, None, None], many, temperature=1.0))
    # Where rounding leaves the count open its middle is taken: a fraction of one in n.
    return (found.low + found.high).double().mean(-1) / 2 / tokens.length


def sequences_per_seed(length: int) -> int:
    """How many sequences each seed averages over.

    >>> sequences_per_seed(16), sequences_per_seed(512)
    (32, 1)
    """
    return min(_SEQUENCES, max(1, _ENTRIES // length**2))


def _weights(shape: tuple[int, int, int], start: Start, seed: int, name: str) -> Tensor:
    """N(0, 1) as in the paper, or U(±1/√d) as ``torch.nn.Linear`` begins."""
    generator = stream(seed, name)
    if start == "paper":
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    unit = torch.rand(shape, generator=generator, dtype=torch.float64)
    return (2 * unit - 1) * shape[1] ** -0.5


def _plateau(
    tokens: TokenSet, start: Start, mean: Float[Tensor, " dims"], seed: int
) -> tuple[float, str]:
    """Theory's plateau for the paper's start; for the model's, the highest mean measured."""
    if start == "model":
        return float(mean.max()), "largest measured"
    chosen = torch.linspace(0, tokens.sequences - 1, min(4, tokens.sequences)).long()
    inputs = tokens.chosen(chosen).embedded(stream_seed(seed, "plateau"))
    found = [plateau_ratio(sequence, draws=8, seed=seed).mean for sequence in inputs]
    return sum(found) / len(found), "theory: hardmax of rows from N(0, X·Xᵀ)"
