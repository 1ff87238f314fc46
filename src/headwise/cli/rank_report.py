"""Print what ``headwise rank`` found: JSON, or a table and a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from headwise.attention import MatrixRank, Ranks
from headwise.cli.console import dtype_name, print_json, screen
from headwise.faces import spoken
from headwise.spectra import Absolute, Tolerance

if TYPE_CHECKING:
    from rich.table import Table

#: Rows of a batch that the table shows; JSON has them all.
SHOWN = 20


def report(found: Ranks, as_json: bool) -> None:
    """Print the ranks."""
    if as_json:
        print_json(found.as_json())
    elif len(found.shape) > 2:
        _show_batch(found)
    else:
        _show_one(found, found.rows[0])


def in_words(row: MatrixRank, found: Ranks) -> str:
    """The rank of one matrix as a sentence, with the reason if it is an interval."""
    rank = row.rank
    if rank.exact:
        return f"rank {rank} of {min(found.shape[-2:])}, certain"
    return f"rank between {rank.low} and {rank.high}: {rank.reason}"


def _show_one(found: Ranks, row: MatrixRank) -> None:
    lines = {
        "singular values counted": _counted(found.rule, [row]),
        "stable rank": f"{row.stable_rank:.4g}",
        "effective rank": f"{row.effective_rank:.4g}",
        "90% of the energy is in": _leading(row.energy_rank_90),
        "99% of the energy is in": _leading(row.energy_rank_99),
        "known to within": f"{row.rank.delta:.1g}, by method {row.rank.method}",
    }
    table = _grid()
    for label, value in lines.items():
        table.add_row(label, value)
    out = screen()
    out.print(f"{found.description}: {_size(found)}")
    out.print(f"{in_words(row, found)}\n", style="bold")
    out.print(table)
    _show_note(found)


def _show_batch(found: Ranks) -> None:
    out, rows = screen(), found.rows
    out.print(f"{found.description}: {len(rows)} matrices, each {_size(found)}")
    out.print(_batch_in_words(found), style="bold")
    out.print(f"singular values counted: {_counted(found.rule, rows)}\n")
    out.print(_batch_table(rows))
    if len(rows) > SHOWN:
        out.print(f"{len(rows) - SHOWN} more matrices are in the summary; --json prints each one")
    methods = Counter(row.rank.method for row in rows)
    named = ", ".join(f"{method} ({times})" for method, times in methods.most_common())
    worst = max(row.rank.delta for row in rows)
    out.print(f"known to within {worst:.1g}, by method {named}")
    _show_note(found)


def _batch_in_words(found: Ranks) -> str:
    rows = found.rows
    undecided = next((row for row in rows if not row.rank.exact), None)
    size = min(found.shape[-2:])
    low = fmean(row.rank.low for row in rows)
    if undecided is None:
        return f"mean rank {low:.4g} of {size} ({low / size:.3f}), every one certain"
    high = fmean(row.rank.high for row in rows)
    some = sum(not row.rank.exact for row in rows)
    why = undecided.rank.reason
    return f"mean rank between {low:.4g} and {high:.4g} of {size}, {some} not certain: {why}"


def _batch_table(rows: Sequence[MatrixRank]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column("matrix")
    for title in ("rank", "stable rank", "effective rank", "90% energy", "99% energy"):
        table.add_column(title, justify="right")
    for row in rows[:SHOWN]:
        place = ", ".join(map(str, row.index))
        table.add_row(place, str(row.rank), *(f"{value:.4g}" for value in _numbers(row)))
    table.add_section()
    for label, summary in (("mean", fmean), ("least", min), ("most", max)):
        low = summary(row.rank.low for row in rows)
        high = summary(row.rank.high for row in rows)
        rank = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        columns = zip(*map(_numbers, rows), strict=True)
        table.add_row(label, rank, *(f"{summary(column):.4g}" for column in columns))
    return table


def _numbers(row: MatrixRank) -> tuple[float, float, int, int]:
    return row.stable_rank, row.effective_rank, row.energy_rank_90, row.energy_rank_99


def _show_note(found: Ranks) -> None:
    if found.note is not None:
        screen().print(spoken(f"note: {found.note}", "command"))


def _grid() -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    return table


def _counted(rule: Tolerance, rows: Sequence[MatrixRank]) -> str:
    least, most = (choose(row.tolerance for row in rows) for choose in (min, max))
    span = f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"
    share = "" if isinstance(rule, Absolute) else ", a share of the largest"
    return f"those of at least {span}{share}"


def _leading(number: int) -> str:
    return f"the {number} leading singular value{'' if number == 1 else 's'}"


def _size(found: Ranks) -> str:
    n, m = found.shape[-2:]
    return f"{n} × {m}, {dtype_name(found.dtype)}"
