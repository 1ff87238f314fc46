"""Rank against head dimension, measured on the tokens over seeds until the band is narrow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.advice.curves import RankCurve, Start, head_dim_grid
from headwise.advice.embedding import TokenSet, as_seen
from headwise.advice.question import MaskName, checked_mask
from headwise.attention.masks import EVERYTHING, Causal, Mask
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

_MASKS: dict[MaskName, Mask] = {"none": EVERYTHING, "causal": Causal()}


@dataclass(frozen=True)
class Sampling:
    """From what seed the random draws come, who is told of each one done, and under what mask.

    >>> Sampling(seed=3).seed
    3
    """

    seed: int = 0
    progress: Progress = lambda done: None
    mask: MaskName = "none"

    def __post_init__(self) -> None:
        checked_mask(self.mask)


def measured_curve(tokens: TokenSet, start: Start, sampling: Sampling) -> RankCurve:
    """Mean rank / length over seeds, each with its own sequences, embedding and heads.

    >>> white = torch.randn(4, 12, 8, generator=torch.Generator().manual_seed(0)).double()
    >>> curve = measured_curve(TokenSet(white, 8, "given"), "paper", Sampling())
    >>> curve.head_dims, max(curve.half_width) <= HALF_WIDTH
    ((1, 2, 3, 4, 6, 8), True)
    """
    dims = head_dim_grid(min(tokens.width, MOST_HEAD_DIM))

    def drawn(number: int) -> Float[Tensor, " dims"]:
        seed = stream_seed(sampling.seed, number)
        found = ratios_of_seed(tokens, start, dims, seed, sampling.mask)
        sampling.progress(1)
        return found

    mean, half, seeds = settled_band(drawn, tokens.length)
    plateau, source = _plateau(tokens, start, mean, sampling)
    ranks, halves = tuple(mean.tolist()), tuple(half.tolist())
    return RankCurve(start, dims, ranks, halves, seeds, plateau, source, sampling.mask)


def settled_band(
    drawn: Callable[[int], Tensor], length: int
) -> tuple[Float[Tensor, " dims"], Float[Tensor, " dims"], int]:
    """Mean and band of as many seeds as make it narrow enough, and how many those were.

    >>> ratios = torch.rand(64, 1, generator=torch.Generator().manual_seed(0)).double() / 5
    >>> settled_band(lambda number: ratios[number], length=16)[2]
    60
    """
    rows: list[Tensor] = []
    wanted = FIRST
    while True:
        rows += [drawn(number) for number in range(len(rows), wanted)]
        mean, half = band(torch.stack(rows), length)
        if float(half.max()) <= HALF_WIDTH or wanted >= MOST:
            return mean, half, len(rows)
        wanted += MORE


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
    tokens: TokenSet, start: Start, dims: tuple[int, ...], seed: int, mask: MaskName = "none"
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
    scores = logits(queries * used[:, None, None], many, temperature=1.0, mask=_MASKS[mask])
    found = count(scores)
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
    tokens: TokenSet, start: Start, mean: Float[Tensor, " dims"], sampling: Sampling
) -> tuple[float, str]:
    """Theory's plateau for the paper's start; for the model's, the highest mean measured."""
    if start == "model":
        return float(mean.max()), "largest measured"
    seed = sampling.seed
    chosen = torch.linspace(0, tokens.sequences - 1, min(4, tokens.sequences)).long()
    inputs = tokens.chosen(chosen).embedded(stream_seed(seed, "plateau"))
    source = "theory: hardmax of rows from N(0, X·Xᵀ)"
    if sampling.mask == "causal":
        found = [causal_plateau_ratio(sequence, seed=seed) for sequence in inputs]
        return sum(found) / len(found), f"{source}, each among the tokens up to its own"
    found = [plateau_ratio(sequence, draws=8, seed=seed).mean for sequence in inputs]
    return sum(found) / len(found), source


def causal_plateau_ratio(inputs: Float[Tensor, "n d"], draws: int = 32, seed: int = 0) -> float:
    """Hardmax rank over n of rows from N(0, X·Xᵀ), row i among the first i tokens.

    Orthonormal tokens give (n + 1) / 2n: a column j is missed by all rows with chance (j − 1) / n.

    >>> abs(causal_plateau_ratio(torch.eye(64).double()) - 65 / 128) < 0.02
    True
    """
    n, d = inputs.shape
    rows = torch.randn(draws, n, d, generator=stream(seed, "causal plateau"), dtype=torch.float64)
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    picked = (rows @ inputs.mT).masked_fill(later, -math.inf).argmax(-1)
    used = torch.zeros(draws, n, dtype=torch.bool).scatter_(1, picked, True)
    return float(used.double().mean())
