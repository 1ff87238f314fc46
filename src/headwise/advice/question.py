"""What is asked: how much may be spent, what is fixed, and what the heads must do."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args

from headwise.errors import ParameterError
from headwise.geometry import HeadGeometry, LatentGeometry

Kind = Literal["mha", "gqa", "mla"]
Need = Literal["data", "mixing", "retrieval"]

#: Bytes of a number in the key-value cache: bfloat16 or float16.
CACHE_NUMBER = 2

#: Beside a limit that nobody asked for.
OF_PRESENT = " (the present model's)"

#: What a budget limits.
UNITS = PARAMETERS, CACHE = "parameters", "cache bytes per token"

#: More heads than this no layer has.
MOST_HEADS = 65_536


@dataclass(frozen=True)
class Budget:
    """The most that one attention layer may cost; None is no limit.

    ``cache_bytes`` is the key-value cache of one token in 16-bit numbers. ``present`` is a model
    whose own costs limits may be, without anyone having asked for them.

    >>> Budget(parameters=65_536).allows(HeadGeometry.standard(128, heads=4))
    True
    """

    parameters: int | None = None
    cache_bytes: int | None = None
    present: HeadGeometry | None = None

    def __post_init__(self) -> None:
        _refuse_unless_positive(self)

    def within(self, present: HeadGeometry) -> Budget:
        """The same, and no more than the present model costs.

        >>> str(Budget(1000).within(HeadGeometry.standard(64, heads=4)))
        "1,000 parameters and 256 cache bytes per token (the present model's)"
        """
        parameters, cached = _costs(present)
        return Budget(
            min(self.parameters or parameters, parameters),
            min(self.cache_bytes or cached, cached),
            present,
        )

    def allows(self, geometry: HeadGeometry) -> bool:
        """Whether the geometry costs no more than this."""
        limits = zip(_costs(geometry), (self.parameters, self.cache_bytes), strict=True)
        return all(most is None or cost <= most for cost, most in limits)

    def exceeded_by(self, geometry: HeadGeometry) -> str:
        """The limits that the geometry costs more than, in words; empty if it is allowed.

        >>> Budget(10**6, cache_bytes=100).exceeded_by(HeadGeometry.standard(128, heads=4))
        '100 cache bytes per token'
        """
        words, limits = self.in_words(), (self.parameters, self.cache_bytes)
        costs = zip(UNITS, _costs(geometry), limits, strict=True)
        return " and ".join(words[unit] for unit, cost, most in costs if most and cost > most)

    def in_words(self) -> dict[str, str]:
        """Each limit that there is, under what it limits, and whether it is the present model's.

        >>> Budget(parameters=1000).in_words()
        {'parameters': '1,000 parameters'}
        """
        own = (None, None) if self.present is None else _costs(self.present)
        limits = zip((self.parameters, self.cache_bytes), UNITS, own, strict=True)
        return {
            unit: f"{most:,} {unit}{OF_PRESENT if most == cost else ''}"
            for most, unit, cost in limits
            if most is not None
        }

    def __str__(self) -> str:
        return " and ".join(self.in_words().values()) or "no limit"


def _costs(geometry: HeadGeometry) -> tuple[int, int]:
    """What a budget limits, of a geometry: parameters, and cache bytes per token."""
    return geometry.parameters, geometry.cache_bytes_per_token(CACHE_NUMBER)


@dataclass(frozen=True)
class Constraints:
    """What is fixed beforehand; None is free.

    ``rank`` is the head dimension, ``multiple_of`` what ranks must be divisible by, ``kind``
    the form of the layer: "mha" (None is this), "gqa" (shared key-value heads) or "mla" (a latent).
    ``group`` is how many query heads share a key-value head, where they do; ``latent`` a layer
    whose latents and rotary part every "mla" geometry keeps.

    >>> Constraints(multiple_of=8).rounded(9)
    16
    """

    heads: int | None = None
    rank: int | None = None
    multiple_of: int = 1
    kind: Kind | None = None
    group: int = 4
    latent: LatentGeometry | None = None

    def __post_init__(self) -> None:
        _refuse_unless_positive(self)
        if self.heads is not None and self.heads > MOST_HEADS:
            raise ParameterError(
                f"{self.heads} heads were asked for", hint=f"pass at most {MOST_HEADS:,}"
            )
        if self.kind is not None and self.kind not in get_args(Kind):
            raise ParameterError(f"there is no kind {self.kind!r}", hint="choose mha, gqa or mla")
        if self.rank is not None and self.rank % self.multiple_of:
            raise ParameterError(
                f"rank {self.rank} is not a multiple of {self.multiple_of}",
                hint=f"pass rank {self.rounded(self.rank)}, or leave multiple_of out",
            )

    def keeps(self, heads: int, rank: int) -> bool:
        """Whether so many heads of that rank are what was fixed, and the rank is allowed.

        >>> Constraints(heads=4).keeps(4, 16), Constraints(heads=4).keeps(8, 16)
        (True, False)
        """
        fixed = self.heads in (None, heads) and self.rank in (None, rank)
        return fixed and rank % self.multiple_of == 0

    def refuse_beyond(self, width: int) -> None:
        """Refuse a rank, or a step between ranks, that is larger than the width of the model.

        >>> Constraints(rank=64).refuse_beyond(64)
        """
        for name, value in (("rank", self.rank), ("multiple_of", self.multiple_of)):
            if value is not None and value > width:
                raise ParameterError(
                    f"{name} {value} is above the width, {width}",
                    hint=f"pass at most {width}: no rank above the width adds anything",
                )

    def rounded(self, rank: int, most: int | None = None) -> int:
        """The least allowed rank that is not below ``rank``, or the largest up to ``most``.

        >>> Constraints(multiple_of=64).rounded(70, most=100)
        64
        """
        above = -(-rank // self.multiple_of) * self.multiple_of
        return above if most is None or above <= most else most - most % self.multiple_of


def checked_need(need: str) -> str:
    """``need`` if there is such a need.

    >>> checked_need("mixing")
    'mixing'
    """
    if need not in get_args(Need):
        raise ParameterError(
            f"there is no need {need!r}",
            hint="choose mixing (blend tokens), retrieval (look up single ones) or data",
        )
    return need


def checked_size(name: str, value: int | float | None, least: int, most: int) -> int:
    """A whole number in a range, or a clear refusal.

    >>> checked_size("the width", 64, 2, 10**6)
    64
    """
    if not isinstance(value, int | float) or not math.isfinite(value) or value != int(value):
        raise ParameterError(f"{name} must be a whole number, got {value!r}", hint="pass one")
    if not least <= value <= most:
        raise ParameterError(
            f"{name} must lie between {least} and {most:,}, got {int(value)}",
            hint="pass a value inside that range",
        )
    return int(value)


def refuse_other_kinds(budget: Budget, constraints: Constraints) -> None:
    """Refuse what is no budget or no constraints, a bare number above all.

    >>> refuse_other_kinds(Budget(), Constraints())
    """
    for value, wanted, example in (
        (budget, Budget, "Budget(parameters=20_000)"),
        (constraints, Constraints, "Constraints(heads=8)"),
    ):
        if not isinstance(value, wanted):
            raise ParameterError(
                f"a {wanted.__name__} was expected, got {value!r}", hint=f"pass {example}"
            )


def _refuse_unless_positive(given: Budget | Constraints) -> None:
    for field in fields(given):
        value = getattr(given, field.name)
        if isinstance(value, int) and value < 1:
            raise ParameterError(
                f"{field.name} must be at least 1, got {value}", hint="pass a larger number"
            )


FREE, NO_LIMIT = Constraints(), Budget()
