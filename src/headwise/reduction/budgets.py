"""What a cut model may cost, and which budgets no choice of ranks can meet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwise.checks import of_type, positive, spelled_number, whole
from headwise.errors import BadInputError, ParameterError
from headwise.reduction.sizes import Kind, LayerSizes, Measure, cost_of_all, cut_kinds


@dataclass(frozen=True)
class Budget:
    """What the cut model may cost; exactly one field is set.

    Attributes:
        kv_bytes: Bytes of KV cache for each token in all layers, or a share such as "50%".
        params: Parameters of the attention layers, or a share as "50%".
        keep: The share of the weighted energy that every part keeps.
        rank: One rank for all heads.

    Raises:
        ParameterError: If not exactly one field is set, or it is out of range.
    """

    kv_bytes: int | str | None = None
    params: int | str | None = None
    keep: float | int | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        given = [name for name, value in vars(self).items() if value is not None]
        if len(given) != 1:
            raise ParameterError(
                f"expected one of {', '.join(vars(self))}, got {' and '.join(given) or 'none'}",
                hint="pass `kv_bytes='50%'` for example",
            )
        if self.keep is not None and positive("`keep`", self.keep, example=0.99) > 1:
            raise ParameterError(
                f"expected `keep` above 0 and at most 1, got {self.keep}",
                hint="pass for example 0.99",
            )
        if self.rank is not None:
            object.__setattr__(self, "rank", whole("`rank`", self.rank))
        if self.asked is not None:
            _spelled_amount(self.measure, self.asked)

    @property
    def measure(self) -> Measure:
        """What the budget counts; ranks and shares of energy are compared by bytes."""
        return "params" if self.params is not None else "kv_bytes"

    @property
    def asked(self) -> int | str | None:
        """The bytes or parameters asked for, or None."""
        return self.params if self.params is not None else self.kv_bytes


def amount(name: str, asked: int | str, most: int) -> int:
    """Return a budget as a number: "50%" is a share of what the original has."""
    number, share = _spelled_amount(name, asked)
    found = int(number / 100 * most if share else number)
    if found > most:
        raise BadInputError(
            f"expected `{name}` of at most {most:,}, what the original has, got {found:,}",
            hint="pass fewer, or a share such as 50%",
        )
    return found


def _spelled_amount(name: str, asked: int | str) -> tuple[int | float, bool]:
    """Return the number that is asked for, and whether it is a percentage."""
    of_type(f"`{name}`", asked, (int, float, str), "a number or a share such as '50%'")
    text = str(asked).strip()
    share = text.endswith("%")
    number = spelled_number(text.removesuffix("%")) or 0
    if number <= 0 or not (share or number == int(number)):
        near = f"'{100 * number:g}%'" if 0 < number < 1 else "'50%'"
        raise ParameterError(
            f"expected `{name}` as a whole number above 0 or a share such as 50%, got {asked!r}",
            hint=f"pass {near} for example",
        )
    if share and number > 100:
        raise ParameterError(
            f"expected `{name}` of at most 100%, got {text}", hint="pass a smaller share"
        )
    return number, share


def affordable(
    sizes: Sequence[LayerSizes],
    budget: Budget,
    itemsize: int,
    step: int = 8,
    only: Kind | None = None,
) -> int:
    """Return a budget of bytes or parameters as a number.

    Args:
        sizes: The layers.
        budget: What the model may cost.
        itemsize: Bytes of one number in the cache.
        step: Ranks are multiples of it.
        only: Cut keys or values alone.

    Returns:
        The largest cost of what is cut.

    Raises:
        BadInputError: No choice of ranks meets the budget, and the smallest that can be met is
            named; or the original costs less.
    """
    assert budget.asked is not None
    measure = budget.measure
    most = cost_of_all(sizes, measure, itemsize, only=only)
    found = amount(measure, budget.asked, most)
    least = cost_of_all(sizes, measure, itemsize, step=step, only=only)
    if found < least:
        share = math.ceil(1000 * least / most) / 10
        others = ", or a smaller `step`"
        if sizes[0].keys == "latent":
            pairs = [replace(each, keys="pairs") for each in sizes]
            if cost_of_all(pairs, measure, itemsize, step=step, only=only) <= found:
                others = ", a smaller `step`, or `keys='pairs'`, which cuts queries too"
        raise BadInputError(
            f"expected `{measure}` of at least {least:,} ({share:g}%), got {found:,} of {most:,}",
            hint=f"pass {least} or more{others}",
        )
    return found


def least_share(
    sizes: Sequence[LayerSizes], itemsize: int, step: int = 8, only: Kind | None = None
) -> float:
    """Return the smallest share of the KV bytes that some choice of ranks meets."""
    least, most = (
        cost_of_all(sizes, "kv_bytes", itemsize, step=each, only=only) for each in (step, None)
    )
    return least / most


def refuse_step(sizes: Sequence[LayerSizes], step: int, only: Kind | None = None) -> None:
    """Refuse a step that leaves only the whole rank."""
    if all(len(each.ranks(kind, step)) == 1 for each in sizes for kind in cut_kinds(only)):
        most = max(each.whole(kind) for each in sizes for kind in cut_kinds(only))
        raise ParameterError(
            f"expected a `step` with a multiple that can be a rank below {most}, got {step}",
            hint="pass a smaller one",
        )


def refuse_rank(
    sizes: Sequence[LayerSizes], rank: int, step: int = 8, only: Kind | None = None
) -> None:
    """Refuse a rank that a part cannot have; a part of a lower whole rank is left as it is."""
    choices = [each.ranks(kind, step) for each in sizes for kind in cut_kinds(only)]
    least, most = max(map(min, choices)), max(map(max, choices))
    if rank < least:
        raise ParameterError(
            f"expected a `rank` of at least {least} with `step={step}`, got {rank}",
            hint="pass a larger rank, or a smaller `step`",
        )
    if rank > most:
        raise ParameterError(
            f"expected a `rank` of at most {most}, that of the original, got {rank}",
            hint="pass a smaller rank",
        )
    for ranks in choices:
        if rank < ranks[-1] and rank not in ranks:
            below, above = max(r for r in ranks if r < rank), min(r for r in ranks if r > rank)
            raise ParameterError(
                f"expected a `rank` that `step={step}` allows, got {rank}",
                hint=f"pass {below} or {above}, or another `step`",
            )
