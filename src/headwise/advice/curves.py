"""A rank curve: rank over length against head dimension, with its band and its plateau."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from headwise.masks import MaskName

#: How the weights began: as the model's own layers do, as in the rank paper, or the law.
Start = Literal["model", "paper", "law"]

#: The band must be at most this wide on each side.
HALF_WIDTH = 0.03

START_WORDS: dict[Start, str] = {
    "model": "LayerNorm and PyTorch's default weights",
    "paper": "N(0, 1) weights on the bare tokens, as in the rank paper",
    "law": "the finite law of orthonormal tokens",
}


@dataclass(frozen=True)
class RankCurve:
    """Mean rank / length at each head dimension, the half width of its band, its plateau.

    The band is where the mean of twenty more seeds lies with 95 % confidence. The plateau is
    where the curve tends to for large head dimensions; ``plateau_from`` says how it is known.
    Where the band is wide, ``below_top_half_width`` says how well differences to the highest
    point are known: within a seed they share their sequences. ``independent_plateau`` is the rank
    paper's: that of rows which pick independently of each other.

    >>> curve = RankCurve("model", (1, 2, 4), (0.2, 0.7, 0.9), (0.0, 0.0, 0.0), 8, 0.9, "measured")
    >>> round(curve.at(3), 3)
    0.817
    """

    start: Start
    head_dims: tuple[int, ...]
    mean: tuple[float, ...]
    half_width: tuple[float, ...]
    seeds: int
    plateau: float
    plateau_from: str
    mask: MaskName = "none"
    below_top_half_width: tuple[float, ...] = ()
    independent_plateau: float | None = None

    @property
    def name(self) -> str:
        """The start, and the mask where there is one."""
        return self.start if self.mask == "none" else f"{self.start}, {self.mask}"

    def at(self, rank: int) -> float:
        """The curve at any rank, linear in the logarithm between points, flat outside."""
        return between(self.head_dims, self.mean, rank)

    def share(self, rank: int) -> float:
        """How much of the plateau this rank reaches."""
        return min(1.0, self.at(rank) / self.plateau)


def between(dims: Sequence[int], values: Sequence[float], rank: int) -> float:
    """A value at any rank, linear in the logarithm between points, flat outside.

    >>> between((2, 8), (0.5, 0.9), 4), between((2, 8), (0.5, 0.9), 1)
    (0.7, 0.5)
    """
    if rank <= dims[0]:
        return values[0]
    for low, high, before, after in zip(dims, dims[1:], values, values[1:], strict=False):
        if rank <= high:
            share = math.log(rank / low) / math.log(high / low)
            return before + share * (after - before)
    return values[-1]


def head_dim_grid(most: int) -> tuple[int, ...]:
    """1, 2, 3, 4, 6, 8, 12, 16, …: powers of two and the steps between, up to ``most``.

    >>> head_dim_grid(20)
    (1, 2, 3, 4, 6, 8, 12, 16, 20)
    """
    powers = [2**k for k in range(1 + int(math.log2(most)))]
    between = [3 * 2**k for k in range(int(math.log2(most))) if 3 * 2**k <= most]
    return tuple(sorted({*powers, *between, most}))
