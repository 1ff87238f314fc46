"""The curve behind ``headwise law``: rows over head dimensions, as a table and in the terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwise.masks import MaskName
from headwise.progress import SILENT, Progress, tracked
from headwise.theory import barrier_ratio, critical_head_dim, ready_ratio
from headwise.theory.columns import MAX_HEAD_DIM
from headwise.theory.ready import UPPER_BOUND
from headwise.theory.sizes import Whole

if TYPE_CHECKING:
    from rich.table import Table

_PLOT_COLUMNS, _PLOT_ROWS = 60, 14


@dataclass(frozen=True)
class Curve:
    """Rank over length against head dimension, at one length."""

    length: int
    fraction: float
    critical: int
    barrier: float
    rows: tuple[tuple[int, float, str], ...]
    errors: tuple[float | None, ...]
    mask: MaskName = "none"

    def as_json(self) -> dict[str, Any]:
        """The keys of a single answer, with one entry per head dimension.

        An upper bound has no error: it may lie anywhere above the truth.
        """
        dims, ratios, methods = (list(column) for column in zip(*self.rows, strict=True))
        return {
            "length": self.length,
            "head_dim": dims,
            "ratio": ratios,
            "error": list(self.errors),
            "method": methods,
            "critical_head_dim": self.critical,
            "fraction": self.fraction,
            "barrier": self.barrier,
            "mask": self.mask,
        }


def curve_of(
    length: Whole, fraction: float, mask: MaskName = "none", progress: Progress = SILENT
) -> Curve:
    """Powers of two up to well beyond the critical head dimension, and that dimension itself."""
    critical = critical_head_dim(length, fraction, mask)
    n = int(length)
    last = min(max(4 * critical, 64), MAX_HEAD_DIM)
    dims = sorted({2**power for power in range(int(math.log2(last)) + 1)} | {critical})
    rows, errors = [], []
    with tracked(progress, "computing the curve", len(dims)):
        for dim in dims:
            # Simulating rows of a long sequence would take minutes; the bound is shown instead.
            found = ready_ratio(n, dim, mask)
            rows.append((dim, found.ratio, found.method))
            errors.append(None if found.method == UPPER_BOUND else found.error)
            progress.advance()
    barrier = barrier_ratio(n, mask)
    return Curve(n, fraction, critical, barrier, tuple(rows), tuple(errors), mask)


def table(curve: Curve) -> Table:
    """One row per head dimension; the critical one stands out."""
    from rich import box
    from rich.table import Table

    under = "" if curve.mask == "none" else f", {curve.mask} mask"
    title = f"rank of a random head, {curve.length} tokens{under} (barrier {curve.barrier:.4f})"
    result = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("head dimension", "rank / length", "of barrier"):
        result.add_column(name, justify="right")
    result.add_column("method")
    for dim, ratio, method in curve.rows:
        marked = dim == curve.critical
        note = f"{method}  ← reaches {curve.fraction:.0%}" if marked else method
        cells = (str(dim), f"{ratio:.4g}", f"{ratio / curve.barrier:.0%}", note)
        result.add_row(*cells, style="bold" if marked else "")
    return result


def terminal_plot(curve: Curve) -> str:
    """Rank over length against head dimension (logarithmic), with the barrier as a line."""
    top = 1.1 * curve.barrier
    canvas = [[" "] * _PLOT_COLUMNS for _ in range(_PLOT_ROWS)]
    canvas[_row(curve.barrier, top)] = ["┄"] * _PLOT_COLUMNS
    last = math.log2(curve.rows[-1][0])
    for before, after in zip(curve.rows, curve.rows[1:], strict=False):
        _draw_segment(canvas, before, after, last, top)
    for dim, ratio, _ in curve.rows:
        mark = "◆" if dim == curve.critical else "●"
        canvas[_row(ratio, top)][_column(dim, last)] = mark
    labels = [f"{top * (1 - (row + 0.5) / _PLOT_ROWS):5.2f} ┤" for row in range(_PLOT_ROWS)]
    lines = [label + "".join(line).rstrip() for label, line in zip(labels, canvas, strict=True)]
    axis = f"      └{'─' * _PLOT_COLUMNS}"
    ends = f"       1{f'{curve.rows[-1][0]}':>{_PLOT_COLUMNS - 1}}"
    legend = f"       head dimension (log)   ◆ critical {curve.critical}   ┄ barrier"
    return "\n".join(["rank / length", *lines, axis, ends, legend])


def _draw_segment(
    canvas: list[list[str]],
    before: tuple[int, float, str],
    after: tuple[int, float, str],
    last: float,
    top: float,
) -> None:
    start, end = _column(before[0], last), _column(after[0], last)
    for column in range(start + 1, end):
        share = (column - start) / (end - start)
        canvas[_row(before[1] + share * (after[1] - before[1]), top)][column] = "·"


def _row(ratio: float, top: float) -> int:
    return min(_PLOT_ROWS - 1, max(0, int((1 - ratio / top) * _PLOT_ROWS)))


def _column(dim: int, last: float) -> int:
    return round(math.log2(dim) / last * (_PLOT_COLUMNS - 1))
