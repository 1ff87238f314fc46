"""law: the attention rank of a random head against its dimension, and where it saturates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Any, cast

from headwise.checks import of_type
from headwise.errors import ParameterError
from headwise.mask_names import MaskName, checked_mask
from headwise.progress import SILENT, Progress, tracked
from headwise.report.results import Drawable, Tabular
from headwise.theory.expected import (
    UPPER_BOUND,
    Prediction,
    checked_sizes,
    expected_rank,
    ready_ratio,
)
from headwise.theory.law_formula import barrier_ratio, critical_head_dim
from headwise.theory.number_types import MAX_HEAD_DIM, Real, Whole

#: Below this head dimension predictions lie visibly under the law, which is never too low.
FEW_DIMENSIONS = 32

#: The repr of a law shows so many ranks, or the first and the last.
SHOWN = 2


@dataclass(frozen=True, repr=False)
class Law(Tabular, Drawable):
    """The attention rank of a random head over the length, for several head dimensions.

    Attributes:
        length: Number of tokens n.
        mask: Which keys a token may pick.
        fraction: The share of the barrier that the critical head dimension reaches.
        critical_head_dim: The smallest head dimension that reaches it.
        barrier: What rank/n tends to as the head dimension grows.
        rows: One prediction for each head dimension.
        scalar: Whether one head dimension was asked for, as a number: ``as_json`` then holds
            numbers, and otherwise lists.

    ``to_frame`` has the columns head_dim, ratio, error, method and of_barrier. ``plot`` draws the
    rank over the length against the head dimension: the whole curve, with the head dimensions that
    were asked for marked.

    >>> found = law(128)
    >>> found.critical_head_dim, round(found.barrier, 3)
    (46, 0.634)
    >>> str(law(1024, 64)).partition("; ")[0]
    "Law(1,024 tokens, mask 'none': rank 533 at head dimension 64"
    """

    length: int
    mask: MaskName
    fraction: float
    critical_head_dim: int
    barrier: float
    rows: tuple[Prediction, ...]
    scalar: bool = False

    def __repr__(self) -> str:
        few = len(self.rows) <= SHOWN
        shown = self.rows if few else (self.rows[0], self.rows[-1])
        ranks = (", " if few else " … ").join(map(_rank_words, shown))
        return (
            f"Law({self.length:,} tokens, mask {self.mask!r}: rank {ranks}; barrier "
            f"{self.barrier:.3f} ({self.barrier * self.length:,.0f} columns), {self.fraction:.0%} "
            f"of it at head dimension {self.critical_head_dim:,})"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the answer as JSON values; an upper bound has no error."""
        by_row = {
            "head_dim": [row.head_dim for row in self.rows],
            "ratio": [row.ratio for row in self.rows],
            "error": [_error(row) for row in self.rows],
            "method": [row.method for row in self.rows],
        }
        return {
            "length": self.length,
            **({name: values[0] for name, values in by_row.items()} if self.scalar else by_row),
            "critical_head_dim": self.critical_head_dim,
            "fraction": self.fraction,
            "barrier": self.barrier,
            "mask": self.mask,
        }

    def _rows(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            yield {
                "head_dim": row.head_dim,
                "ratio": row.ratio,
                "error": _error(row),
                "method": row.method,
                "of_barrier": row.ratio / self.barrier,
            }

    def _figure(self) -> Any:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.subplots()
        asked = [row.head_dim for row in self.rows]
        whole = self
        if asked != _usual_dims(self.critical_head_dim):
            whole = law(self.length, None, self.mask, self.fraction)
            ratios = [row.ratio for row in self.rows]
            axes.plot(asked, ratios, "D", color="C3", zorder=3, label="asked for")
        dims = [row.head_dim for row in whole.rows]
        ratios = [row.ratio for row in whole.rows]
        axes.plot(dims, ratios, "o-", color="black", label="random head")
        axes.axhline(self.barrier, color="0.5", linestyle="--", label="barrier")
        label = f"{self.fraction:.0%} of the barrier: d_h = {self.critical_head_dim}"
        axes.axvline(self.critical_head_dim, color="0.5", linestyle=":", label=label)
        axes.set_xscale("log", base=2)
        axes.set_ylim(0, None)
        axes.set(xlabel="head dimension", ylabel="expected hardmax rank / length")
        under = "" if self.mask == "none" else f", {self.mask} mask"
        axes.set_title(f"{self.length:,} tokens, Gaussian queries and keys{under}")
        figure.legend(frameon=False, loc="outside lower center", ncols=2, fontsize=9)
        return figure


def law(
    length: Whole,
    head_dim: Whole | Iterable[Whole] | None = None,
    mask: MaskName = "none",
    fraction: Real = 0.9,
    progress: Progress = SILENT,
) -> Law:
    """Predict the attention rank of a random head for one or several head dimensions.

    Args:
        length: Number of tokens, 2 to 10¹².
        head_dim: One or several head dimensions (a list, a tuple, an array), 1 to 10⁵; those that
            neither a formula nor a stored simulation covers are simulated. None takes powers of two
            until well beyond the critical head dimension and simulates nothing.
        mask: ``"none"`` or ``"causal"``.
        fraction: The share of the barrier that the critical head dimension must reach.
        progress: Shows the progress.

    Returns:
        One prediction for each head dimension, the barrier and the critical head dimension.

    Raises:
        ParameterError: If a parameter is out of range.
        TooLargeError: If a simulation would take hours.

    >>> law(1024).critical_head_dim
    123
    >>> [round(row.ratio, 2) for row in law(1024, [64, 128]).rows]
    [0.52, 0.57]
    """
    mask = checked_mask(mask)
    of_type("`progress`", progress, Progress, "an object with the methods of headwise.Progress")
    n, _ = checked_sizes(length, 1)
    critical = predicted_critical(n, fraction, mask)
    asked = None if head_dim is None else _plain(head_dim)
    dims = _usual_dims(critical) if asked is None else _listed(asked)
    rows = []
    # A simulation reports its own progress.
    outer = progress if asked is None else SILENT
    with tracked(outer, "computing the curve", len(dims)):
        for dim in dims:
            found = expected_rank(n, dim, mask, method="instant")
            # Simulating every row of the usual table would take minutes.
            if asked is not None and found.method == UPPER_BOUND:
                found = expected_rank(n, dim, mask, progress=progress)
            rows.append(found)
            outer.advance()
    scalar = asked is not None and not isinstance(asked, list)
    barrier = barrier_ratio(n, mask)
    return Law(n, mask, float(fraction), critical, barrier, tuple(rows), scalar)


def predicted_critical(length: int, fraction: Real, mask: MaskName) -> int:
    """The least head dimension whose prediction reaches this share of the barrier."""
    dim, goal = critical_head_dim(length, fraction, mask), fraction * barrier_ratio(length, mask)
    while dim < FEW_DIMENSIONS and ready_ratio(length, dim, mask).ratio < goal:
        dim += 1
    return dim


def _usual_dims(critical: int) -> list[int]:
    """Powers of two up to well beyond the critical head dimension, and that dimension itself."""
    last = min(max(4 * critical, 64), MAX_HEAD_DIM)
    return sorted({2**power for power in range(int(math.log2(last)) + 1)} | {critical})


def _listed(head_dim: Any) -> list[int]:
    dims: list[Any] = head_dim if isinstance(head_dim, list) else [head_dim]
    if not dims:
        raise ParameterError("expected head dimensions, got an empty list", hint="pass at least 1")
    return [checked_sizes(2, dim)[1] for dim in dims]


def _plain(head_dim: Whole | Iterable[Whole]) -> Any:
    """One value, or a list for several; an array or a tensor becomes numbers of Python."""
    if hasattr(head_dim, "tolist"):
        return cast("Any", head_dim).tolist()
    if isinstance(head_dim, Set):
        return sorted(head_dim)
    if isinstance(head_dim, Iterable) and not isinstance(head_dim, str):
        return list(head_dim)
    return head_dim


def _rank_words(row: Prediction) -> str:
    """Return the rank of a prediction in words."""
    most = "at most " if row.method == UPPER_BOUND else ""
    return f"{most}{row.ratio * row.length:,.0f} at head dimension {row.head_dim:,}"


def _error(row: Prediction) -> float | None:
    return None if row.method == UPPER_BOUND else row.error
