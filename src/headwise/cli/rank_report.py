"""What ``headwise rank`` says of what it measured: JSON, a table, and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from headwise.cli.console import dtype_name, print_json, screen
from headwise.cli.rank_input import Subject
from headwise.cli.rank_rows import Row, as_object, measured, reason
from headwise.spectra import Absolute, LogWeights, Tolerance

if TYPE_CHECKING:
    from rich.table import Table

#: Rows of a batch that the table shows; JSON has them all.
SHOWN = 20


def report(
    subject: Subject, rule: Tolerance, as_json: bool, inputs: Mapping[str, Any] | None = None
) -> None:
    """Measure the subject and print what was found; JSON repeats what was asked."""
    rows = measured(subject, rule)
    if as_json:
        objects = [as_object(row, subject) | {"inputs": dict(inputs or {})} for row in rows]
        print_json(objects if subject.values.ndim > 2 else objects[0])
    elif subject.values.ndim > 2:
        _show_batch(subject, rule, rows)
    else:
        _show_one(subject, rule, rows[0])


def in_words(row: Row, subject: Subject) -> str:
    """The rank of one matrix as a sentence: what is certain, and what would make it so."""
    count, why = row.count, reason(row, subject)
    if why is None:
        return f"rank {count} of {min(subject.values.shape[-2:])}, certain"
    return f"rank between {count.low} and {count.high}: {why}"


def _show_one(subject: Subject, rule: Tolerance, row: Row) -> None:
    lines = {
        "singular values counted": _counted(rule, [row]),
        "stable rank": f"{row.stable_rank:.4g}",
        "effective rank": f"{row.effective_rank:.4g}",
        "90 % of the energy is in": _leading(row.energy_rank_90),
        "99 % of the energy is in": _leading(row.energy_rank_99),
        "known to within": f"{row.count.delta:.1g}, by method {row.count.method}",
    }
    table = _grid()
    for label, value in lines.items():
        table.add_row(label, value)
    out = screen()
    out.print(f"{subject.described}: {_size(subject)}")
    out.print(f"{in_words(row, subject)}\n", style="bold")
    out.print(table)
    _show_doubts(subject)


def _show_batch(subject: Subject, rule: Tolerance, rows: list[Row]) -> None:
    out = screen()
    out.print(f"{subject.described}: {len(rows)} matrices, each {_size(subject)}")
    out.print(_batch_in_words(subject, rows), style="bold")
    out.print(f"singular values counted: {_counted(rule, rows)}\n")
    out.print(_batch_table(rows))
    if len(rows) > SHOWN:
        out.print(f"{len(rows) - SHOWN} more matrices are in the summary; --json prints each one")
    methods = Counter(row.count.method for row in rows)
    named = ", ".join(f"{method} ({times})" for method, times in methods.most_common())
    worst = max(row.count.delta for row in rows)
    out.print(f"known to within {worst:.1g}, by method {named}")
    _show_doubts(subject)


def _batch_in_words(subject: Subject, rows: list[Row]) -> str:
    undecided = next((row for row in rows if not row.count.exact), None)
    size = min(subject.values.shape[-2:])
    low = fmean(row.count.low for row in rows)
    if undecided is None:
        return f"mean rank {low:.4g} of {size} ({low / size:.3f}), every one certain"
    high = fmean(row.count.high for row in rows)
    some = sum(not row.count.exact for row in rows)
    why = reason(undecided, subject)
    return f"mean rank between {low:.4g} and {high:.4g} of {size}, {some} not certain: {why}"


def _batch_table(rows: list[Row]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column("matrix")
    for title in ("rank", "stable rank", "effective rank", "90 % energy", "99 % energy"):
        table.add_column(title, justify="right")
    for row in rows[:SHOWN]:
        place = ", ".join(map(str, row.place))
        table.add_row(place, str(row.count), *(f"{value:.4g}" for value in _numbers(row)))
    table.add_section()
    for label, summary in (("mean", fmean), ("least", min), ("most", max)):
        low = summary(row.count.low for row in rows)
        high = summary(row.count.high for row in rows)
        rank = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        columns = zip(*map(_numbers, rows), strict=True)
        table.add_row(label, rank, *(f"{summary(column):.4g}" for column in columns))
    return table


def _numbers(row: Row) -> tuple[float, float, int, int]:
    return row.stable_rank, row.effective_rank, row.energy_rank_90, row.energy_rank_99


def _show_doubts(subject: Subject) -> None:
    """A word when a matrix looks like logits, or logits look like a matrix."""
    sums = subject.values.sum(-1, dtype=torch.float64)
    looks_like_weights = bool((sums - 1).abs().max() < 0.05 and subject.values.min() >= 0)
    is_logits = isinstance(subject.source, LogWeights)
    if is_logits and looks_like_weights:
        screen().print("note: its rows already sum to one; is it attention rather than logits?")
    if not is_logits and not looks_like_weights:
        screen().print(
            "note: its rows do not sum to one, so it was measured as it is; "
            "if it holds logits, pass --logits"
        )


def _grid() -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    return table


def _counted(rule: Tolerance, rows: list[Row]) -> str:
    least, most = (choose(row.epsilon for row in rows) for choose in (min, max))
    span = f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
    share = "" if isinstance(rule, Absolute) else ", a share of the largest"
    return f"those of at least {span}{share}"


def _leading(number: int) -> str:
    return f"the {number} leading singular value{'' if number == 1 else 's'}"


def _size(subject: Subject) -> str:
    n, m = subject.values.shape[-2:]
    return f"{n} × {m}, {dtype_name(subject.dtype)}"
