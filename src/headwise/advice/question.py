"""What is asked: the task, what may be spent, and what is fixed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args

from headwise.checks import one_of, whole
from headwise.errors import ParameterError
from headwise.geometry import HeadGeometry, LatentGeometry

Kind = Literal["mha", "gqa", "mla"]
Need = Literal["data", "mixing", "retrieval"]
Task = Literal["classify", "regress", "next-token", "masked-token", "retrieve", "unknown"]

#: How the task is known.
TaskFrom = Literal["given", "config", "data", "need", "assumed"]

#: What a budget limits.
Unit = Literal["parameters", "cache"]

#: The most heads that can be asked for.
MOST_HEADS = 65_536


@dataclass(frozen=True)
class Budget:
    """The most that one attention layer may cost; None is no limit.

    Attributes:
        parameters: Weights of the layer, without biases.
        cache_bytes: KV cache per token, in 16-bit numbers.
        present: A model whose own costs are the limits where no lower ones are given.

    >>> Budget(parameters=65_536).allows(HeadGeometry.standard(128, heads=4))
    True
    """

    parameters: int | None = None
    cache_bytes: int | None = None
    present: HeadGeometry | None = None

    def __post_init__(self) -> None:
        _refuse_unless_positive(self)

    def within(self, present: HeadGeometry) -> Budget:
        """The same budget, but at most what the present model costs."""
        parameters, cached = _costs(present)
        return Budget(
            min(self.parameters or parameters, parameters),
            min(self.cache_bytes or cached, cached),
            present,
        )

    def allows(self, geometry: HeadGeometry) -> bool:
        """Whether the geometry is within the budget."""
        return not self.exceeded_by(geometry)

    def exceeded_by(self, geometry: HeadGeometry) -> tuple[Unit, ...]:
        """The limits that the geometry exceeds.

        >>> Budget(10**6, cache_bytes=100).exceeded_by(HeadGeometry.standard(128, heads=4))
        ('cache',)
        """
        limits = zip(get_args(Unit), _costs(geometry), self._limits, strict=True)
        return tuple(unit for unit, cost, most in limits if most is not None and cost > most)

    @property
    def limits(self) -> dict[Unit, tuple[int, bool]]:
        """Each limit, and whether it is the present model's own cost."""
        own = (None, None) if self.present is None else _costs(self.present)
        named = zip(get_args(Unit), self._limits, own, strict=True)
        return {unit: (most, most == cost) for unit, most, cost in named if most is not None}

    @property
    def _limits(self) -> tuple[int | None, int | None]:
        return self.parameters, self.cache_bytes


@dataclass(frozen=True)
class Constraints:
    """What is fixed; None is free.

    Attributes:
        heads: Number of heads.
        rank: Head dimension.
        multiple_of: Ranks must be multiples of this.
        kind: "mha" (default), "gqa" (shared key-value heads) or "mla" (a latent).
        group: How many query heads share a key-value head, for "gqa".
        latent: A layer whose latents and rotary part every "mla" geometry keeps.

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
                f"expected `heads` of at most {MOST_HEADS:,}, got {self.heads:,}", hint="pass fewer"
            )
        one_of("`kind`", self.kind, (*get_args(Kind), None))
        if self.rank is not None and self.rank % self.multiple_of:
            raise ParameterError(
                f"expected `rank` a multiple of `multiple_of={self.multiple_of}`, got {self.rank}",
                hint=f"pass `rank={self.rounded(self.rank)}`, or leave `multiple_of` out",
            )

    def keeps(self, heads: int, rank: int) -> bool:
        """Whether that many heads of that rank satisfy the constraints."""
        fixed = self.heads in (None, heads) and self.rank in (None, rank)
        return fixed and rank % self.multiple_of == 0

    def refuse_beyond(self, width: int) -> None:
        """Refuse a rank, or a step between ranks, above the width of the model."""
        for name, value in (("rank", self.rank), ("multiple_of", self.multiple_of)):
            if value is not None and value > width:
                raise ParameterError(
                    f"expected `{name}` of at most the width {width}, got {value}",
                    hint="pass less: rank above the width adds nothing",
                )

    def rounded(self, rank: int, most: int | None = None) -> int:
        """The least allowed rank of at least ``rank``, or the largest up to ``most``."""
        above = -(-rank // self.multiple_of) * self.multiple_of
        return above if most is None or above <= most else most - most % self.multiple_of


@dataclass(frozen=True)
class Question:
    """Everything that is asked, besides the evidence.

    Attributes:
        budget: The most that a layer may cost.
        constraints: What is fixed.
        need: What decides the rank: mixing, retrieval, or whatever the data show.
        task: What the model is trained to do.
        task_from: How the task is known.
        any_shape: Whether heads × rank may differ from the width.
    """

    budget: Budget = field(default_factory=Budget)
    constraints: Constraints = field(default_factory=Constraints)
    need: Need = "data"
    task: Task = "unknown"
    task_from: TaskFrom = "assumed"
    any_shape: bool = False

    def for_present(self, present: HeadGeometry) -> Question:
        """The same question about a model that exists: its kind, and no higher costs."""
        constraints = self.constraints
        if constraints.kind is None:
            constraints = replace(constraints, kind=kind_of(present), group=present.group)
        if isinstance(present, LatentGeometry):
            constraints = replace(constraints, latent=present)
        # A model whose heads do not fill its width, or overfill it, can be built in any shape.
        free = self.any_shape or present.heads * present.qk_rank != present.width
        return replace(
            self, budget=self.budget.within(present), constraints=constraints, any_shape=free
        )


def kind_of(geometry: HeadGeometry) -> Kind:
    """The form of a layer: "mha", "gqa" or "mla"."""
    if isinstance(geometry, LatentGeometry):
        return "mla"
    return "mha" if geometry.kv_heads == geometry.heads else "gqa"


def _costs(geometry: HeadGeometry) -> tuple[int, int]:
    """What a budget limits: parameters, and cache bytes per token."""
    return geometry.parameters, geometry.cache_bytes_per_token()


def _refuse_unless_positive(given: Budget | Constraints) -> None:
    for one in fields(given):
        value = getattr(given, one.name)
        if value is not None and one.name not in ("present", "kind", "latent"):
            object.__setattr__(given, one.name, whole(f"`{one.name}`", value))


FREE, NO_LIMIT = Constraints(), Budget()
