"""What the advice rests on: rank curves, and statistics of the tokens if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from headwise.advice.curves import (
    FIRST,
    SEQUENCES,
    Draw,
    RankCurve,
    Start,
    curve_of_ratios,
    head_dim_grid,
    law_curve,
    narrow_rows,
    sequences_per_seed,
)
from headwise.advice.tokens.source import MOST_LENGTH, Reading, read_tokens
from headwise.advice.tokens.statistics import TokenStatistics, token_statistics
from headwise.advice.tokens.token_set import TokenSet, as_seen
from headwise.attention import as_mask
from headwise.attention.scores import logits
from headwise.mask_names import MaskName, checked_mask
from headwise.progress import SILENT, Progress, tracked
from headwise.randomness import stream, stream_seed
from headwise.report.results import short_repr
from headwise.shapes import Float
from headwise.spectra import count
from headwise.theory.montecarlo import plateau_ratio
from headwise.theory.simulated_heads import narrowed
from headwise.threads import side_by_side

#: The largest head dimension measured.
MOST_HEAD_DIM = 128

#: Steps of progress for one curve. How many seeds it takes is not known before.
STEPS = 2 * FIRST

#: Sequences, and heads for each: these give the plateau of the digits to 0.014.
_PLATEAU_SEQUENCES, _PLATEAU_DRAWS = 16, 8


@dataclass(frozen=True)
class Sampling:
    """The seed of all random draws, where to report progress, and the mask."""

    seed: int = 0
    progress: Progress = SILENT
    mask: MaskName = "none"

    def __post_init__(self) -> None:
        checked_mask(self.mask)


def measured_curve(tokens: TokenSet, start: Start, sampling: Sampling) -> RankCurve:
    """Measure mean rank / length over seeds, each with its own sequences, embedding and heads."""
    dims = head_dim_grid(min(tokens.width, MOST_HEAD_DIM))
    unreported = STEPS

    def drawing(few: int) -> Draw:
        def ratios(number: int) -> Float[Tensor, " dims"]:
            seed = stream_seed(sampling.seed, number)
            return ratios_of_seed(tokens, start, dims, seed, sampling.mask, few)

        def drawn(numbers: range) -> Iterator[Tensor]:
            for found in side_by_side(ratios, numbers):
                nonlocal unreported
                sampling.progress.advance(min(1, unreported))
                unreported -= min(1, unreported)
                yield found

        return drawn

    rows = narrow_rows(drawing, tokens.length)
    curve = curve_of_ratios(rows, dims, tokens.length, start, sampling.mask)
    curve = _with_plateau(curve, tokens, sampling) if start == "paper" else curve
    sampling.progress.advance(unreported)
    return curve


def ratios_of_seed(
    tokens: TokenSet,
    start: Start,
    dims: tuple[int, ...],
    seed: int,
    mask: MaskName = "none",
    few: int | None = None,
) -> Float[Tensor, " dims"]:
    """Measure rank / length at each head dimension, for one draw of sequences and heads.

    Heads of all dimensions share their first columns, so differences between dimensions are
    known better than each rank.

    Returns:
        One number per head dimension.
    """
    few = sequences_per_seed(tokens.length) if few is None else few
    rows = torch.randint(tokens.sequences, (few,), generator=stream(seed, "sequences"))
    inputs = tokens.chosen(rows).embedded(seed)
    if start == "model":
        inputs = as_seen(inputs, seed)
    shape = (few, tokens.width, dims[-1])
    queries = inputs @ _weights(shape, start, seed, "queries")
    keys = inputs @ _weights(shape, start, seed, "keys")
    # A few sequences at a time, to save memory.
    parts = zip(queries.split(SEQUENCES), keys.split(SEQUENCES), strict=True)
    found = torch.cat([_ranks(*part, dims, mask) for part in parts], dim=1)
    return found.mean(1) / tokens.length


def _ranks(
    queries: Tensor, keys: Tensor, dims: tuple[int, ...], mask: MaskName
) -> Float[Tensor, "dims few"]:
    """The rank of every sequence at each head dimension."""
    # One batch for all dimensions: columns beyond the dimension are zero.
    sizes = torch.tensor(dims)[:, None]
    used = (torch.arange(dims[-1]) < sizes) / sizes.double().sqrt()
    many = keys.expand(len(dims), -1, -1, -1)
    scores = logits(queries * used[:, None, None], many, temperature=1.0, mask=as_mask(mask))
    found = count(scores)
    # Where rounding leaves the count open, take the middle of the interval.
    return (found.low + found.high).double() / 2


def _weights(shape: tuple[int, int, int], start: Start, seed: int, name: str) -> Tensor:
    """N(0, 1) as in the rank paper, or U(±1/√d), the default initialisation of Linear."""
    generator = stream(seed, name)
    if start == "paper":
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    unit = torch.rand(shape, generator=generator, dtype=torch.float64)
    return (2 * unit - 1) * shape[1] ** -0.5


def _with_plateau(curve: RankCurve, tokens: TokenSet, sampling: Sampling) -> RankCurve:
    """The curve of N(0, 1) weights with its plateau by theory: the limit of large ranks."""
    some = min(_PLATEAU_SEQUENCES, tokens.sequences)
    chosen = torch.linspace(0, tokens.sequences - 1, some).long()
    embedded = tokens.chosen(chosen).embedded(stream_seed(sampling.seed, "plateau"))
    inputs = [narrowed(one) for one in embedded]
    mask = as_mask(sampling.mask)

    def mean(rows: Literal["joint", "independent"]) -> float:
        def ratio(one: Tensor) -> float:
            return plateau_ratio(one, _PLATEAU_DRAWS, sampling.seed, rows=rows, mask=mask).mean

        found = list(side_by_side(ratio, inputs))
        return sum(found) / len(found)

    source = "theory: hardmax of X·G·Xᵀ, G Gaussian"
    if sampling.mask == "causal":
        source += ", causal"
    told = {"plateau_from": source, "independent_plateau": mean("independent")}
    return replace(curve, plateau=mean("joint"), **told)


#: Root mean square cosines below this are those of nearly orthonormal tokens: the law applies.
NEARLY_ORTHONORMAL = 0.15


@dataclass(frozen=True)
class Evidence:
    """Rank curves at a length and width, and statistics of the tokens.

    Attributes:
        source: Name of the data; None where there are none.
        length: Tokens per sequence that were looked at.
        width: Width of the model.
        curves: Measured curves, or that of the law.
        statistics: Statistics of the tokens; None without data.
        seed: Seed of all random draws.
        mask: Mask of attention.
        vocabulary: Number of token ids, where it is known.
        full_length: Tokens that the model takes, where that is not ``length``.
        length_from: Whether the length is the family's default or assumed: a config gives none.
        images: Whether the tokens are patches of images.
        patch: Side of those patches.
    """

    source: str | None
    length: int
    width: int
    curves: tuple[RankCurve, ...]
    statistics: TokenStatistics | None
    seed: int = 0
    mask: MaskName = "none"
    vocabulary: int | None = None
    full_length: int | None = None
    length_from: Literal["given", "family", "assumed"] = "given"
    images: bool = False
    patch: int | None = None

    __repr__ = short_repr

    @property
    def context(self) -> int:
        """Tokens that the model takes; FLOPs are computed at this length."""
        return self.full_length or self.length

    @property
    def count(self) -> int:
        """How many tokens were measured."""
        found = self.statistics
        return 0 if found is None else found.sequences * found.length

    @property
    def effective_dimension(self) -> float:
        """That of the tokens within the width; without data, the width."""
        own = self.width if self.statistics is None else self.statistics.effective_dimension
        return float(min(own, self.width))

    @property
    def directions(self) -> int:
        """In how many directions tokens can differ: the width, or fewer for narrow vectors."""
        numbers = None if self.statistics is None else self.statistics.numbers
        return self.width if numbers is None else min(self.width, numbers)

    @property
    def learned(self) -> bool:
        """Whether the tokens have no dimension: ids, or no tokens at all."""
        return self.statistics is None or self.statistics.learned

    @property
    def curve(self) -> RankCurve:
        """The curve that the rule reads: default initialisation if measured, else the first."""
        return next((curve for curve in self.curves if curve.start == "model"), self.curves[0])


def law_evidence(length: int, width: int, mask: MaskName = "none") -> Evidence:
    """Return evidence from only a length and a width: the finite law."""
    curve = law_curve(length, width, checked_mask(mask))
    return Evidence(None, length, width, (curve,), None, mask=mask)


def measured_evidence(source: Any, reading: Reading, sampling: Sampling) -> Evidence:
    """Measure tokens: their statistics, and rank curves with two initialisations."""
    tokens = read_tokens(source, reading)
    short = replace(tokens, values=tokens.values[:, :MOST_LENGTH])
    statistics = token_statistics(short, sampling.seed)
    curves = _measured(short, sampling)
    if statistics.cosine_spread < NEARLY_ORTHONORMAL:
        curves += (law_curve(short.length, short.width, sampling.mask),)
    return Evidence(
        source=tokens.name,
        length=short.length,
        width=tokens.width,
        curves=curves,
        statistics=statistics,
        seed=sampling.seed,
        mask=sampling.mask,
        vocabulary=tokens.declared,
        full_length=tokens.length,
        images=tokens.images,
        patch=tokens.patch,
    )


def _measured(tokens: TokenSet, sampling: Sampling) -> tuple[RankCurve, ...]:
    """Return curves of both initialisations; with a causal mask, also the model's without it.

    A triangular matrix with a positive diagonal has full rank for any head, so saturation is read
    without the mask.
    """
    wanted = [("model", sampling.mask), ("paper", sampling.mask)]
    if sampling.mask != "none":
        wanted.insert(0, ("model", "none"))
    with tracked(sampling.progress, "measuring ranks", len(wanted) * STEPS):
        return tuple(
            measured_curve(tokens, start, replace(sampling, mask=mask))  # type: ignore[arg-type]
            for start, mask in wanted
        )
