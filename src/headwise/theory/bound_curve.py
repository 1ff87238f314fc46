"""bound: the least error of low-rank heads, or the number of heads that an error needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from headwise.checks import one_of, whole
from headwise.errors import ParameterError
from headwise.report.results import Drawable, Tabular
from headwise.theory.harmonic_bound import Values, error_at, error_lower_bound, heads_needed
from headwise.theory.number_types import Real, Whole

ValueClass = Literal["any", "identity"]

# Points of the curve that to_frame and plot show.
_POINTS = 41

#: More heads than this do not fit in a float.
MOST_HEADS = int(1e300)


@dataclass(frozen=True, repr=False)
class Bound(Tabular, Drawable):
    """A number of heads and the least error that heads of this rank can have.

    Attributes:
        width: Model width d.
        rank: Rank r of a head.
        heads: Number of heads: given, or the least number whose bound allows the error.
        error: Mean squared error: the lower bound for these heads, or the one given.
        values: The value matrices that a head may have.
        given: Which of heads and error was given; the other one is the answer.

    ``to_frame`` and ``plot`` show the bound from 1 to ten times ``heads``. The columns are heads,
    error_lower_bound, and answer, which marks the row of ``heads``.

    >>> bound(64, 32, error=0.1).as_json()["heads"]
    12
    """

    width: int
    rank: int
    heads: int | float
    error: float
    values: ValueClass
    given: Literal["heads", "error"]

    def __repr__(self) -> str:
        sizes = f"width={self.width}, rank={self.rank}, values={self.values!r}"
        if self.given == "heads":
            return f"Bound({self.heads:.6g} heads: error at least {self.error:.4g}; {sizes})"
        return f"Bound(error {self.error:.4g}: at least {self.heads:.6g} heads; {sizes})"

    def as_json(self) -> dict[str, Any]:
        """Return the answer and the inputs as JSON values."""
        sizes = {"width": self.width, "rank": self.rank}
        if self.given == "heads":
            inputs = sizes | {"heads": self.heads, "values": self.values}
            return {"error_lower_bound": self.error, "inputs": inputs}
        return {
            "heads": self.heads,
            "inputs": sizes | {"error": self.error, "values": self.values},
        }

    def curve(self) -> tuple[list[float], list[float]]:
        """Return numbers of heads from 1 to ten times the answer, and the bound at each."""
        step = math.log(10 * self.heads) / (_POINTS - 1)
        logs = [place * step for place in range(_POINTS)]
        bounds = [error_at(self.width, self.rank, log, Values(self.values)) for log in logs]
        return [math.exp(log) for log in logs], bounds

    def _rows(self) -> Iterator[dict[str, float | bool]]:
        for heads in sorted({self.heads, *map(_counted, map(round, self.curve()[0]))}):
            error = error_at(self.width, self.rank, math.log(heads), Values(self.values))
            answer = heads == self.heads
            yield {"heads": heads, "error_lower_bound": error, "answer": answer}

    def _figure(self) -> Any:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.subplots()
        axes.plot(*self.curve(), color="black", label="lower bound")
        axes.plot([self.heads], [self.error], "o", color="black", label="answer")
        axes.set_xscale("log")
        axes.set_ylim(0, None)
        axes.set(xlabel="number of heads", ylabel="mean squared error")
        axes.set_title(f"Heads of rank {self.rank:,} in {self.width:,} dimensions")
        axes.legend(frameon=False)
        return figure


def bound(
    width: Whole,
    rank: Whole,
    heads: Whole | None = None,
    error: Real | None = None,
    values: ValueClass | Values = "any",
) -> Bound:
    """Bound the error of low-rank heads on nearest neighbours, or the heads that an error needs.

    The task: of two orthonormal points, return the one nearer to y. One full-rank head is exact.

    Args:
        width: Model width d, 2 to 10⁶.
        rank: Rank of a head, below the width.
        heads: Number of heads; the answer is the least error that they can have.
        error: Mean squared error, at most 0.5; the answer is the number of heads it needs.
        values: Value matrices: ``"any"``, or ``"identity"`` for multiples of the identity.

    Returns:
        The number of heads and the error, one given and one computed.

    Raises:
        ParameterError: If not exactly one of ``heads`` and ``error`` is given.
        BadInputError: If a size is out of range.
        TooLargeError: If more than 10³⁰⁰ heads are needed.

    >>> bound(64, 32, error=0.1).heads
    12
    >>> round(bound(64, 8, heads=8).error, 4)
    0.1768
    """
    if (heads is None) == (error is None):
        got = "neither" if heads is None else "both"
        raise ParameterError(
            f"expected either `heads` or `error`, got {got}", hint="pass one of them"
        )
    kind = _value_class(values)
    if heads is not None:
        _refuse_beyond_floats(heads)
        least = error_lower_bound(width, rank, heads, kind)
        return Bound(int(width), int(rank), _counted(heads), least, kind.value, "heads")
    assert error is not None
    count = heads_needed(width, rank, error, kind)
    return Bound(int(width), int(rank), count, float(error), kind.value, "error")


def _counted(heads: Whole) -> int | float:
    """Whole numbers as integers; above 2⁵³ a float says all there is to know."""
    return int(heads) if heads <= 2**53 else float(heads)


def _refuse_beyond_floats(heads: Whole) -> None:
    if whole("`heads`", heads) > MOST_HEADS:
        raise ParameterError("expected at most 10^300 `heads`, got more", hint="pass fewer")


def _value_class(values: str | Values) -> Values:
    if isinstance(values, Values):
        return values
    return Values(one_of("`values`", values, [kind.value for kind in Values]))
