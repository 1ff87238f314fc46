"""The answer in a terminal: at a glance, or explained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text

from headwise.advice.answer import Answer
from headwise.advice.render.document import MOST_ROWS, Document, document
from headwise.advice.render.figure import panel
from headwise.report import terminal_plot
from headwise.report.tables import Cell, Table

if TYPE_CHECKING:
    from rich.console import Console

#: Columns of the table that a narrow terminal leaves out, in this order.
SPARE = ("KV bytes", "rotary", "params", "of yours", "of usual")

#: Columns of the second table, which has room for every cost.
COSTS = ("", "heads", "rank", "params", "FLOPs", "KV bytes")

MORE = "More: --explain; --html report.html; --export torch prints the layer to use."


def show(answer: Answer, console: Console, *, explain: bool = False) -> None:
    """Print the answer: at most 35 lines, or with ``explain`` everything."""
    shown = document(answer, "command")
    for part in _glance(shown, console.width, whole=explain):
        console.print(part, markup=False, highlight=False)
    if explain:
        for part in _explained(answer, shown, console.width):
            console.print(part, markup=False, highlight=False)
    else:
        console.print(MORE, markup=False, highlight=False, style="dim")


def text(answer: Answer) -> str:
    """The answer at a glance as plain text."""
    shown = document(answer)
    reasons = [f"{number}. {line}" for number, line in enumerate(shown.reasons, 1)]
    table = _first_rows(shown.table)
    return "\n".join(
        [
            *(shown.question, "", shown.headline, "", *_lines(table), *shown.first_legend, ""),
            *(*reasons, "", shown.caveat),
        ]
    )


def markdown(answer: Answer) -> str:
    """The whole answer as Markdown."""
    shown = document(answer)
    reasons = [f"{number}. {line}" for number, line in enumerate(shown.reasons, 1)]
    parts = [f"**{shown.headline}**", shown.question, shown.whole_table.markdown()]
    parts += ["\n".join(reasons), shown.caveat]
    for one in shown.details:
        parts.append(f"**{one.label}.** {one.words}")
        parts += [] if one.table is None else [one.table.markdown()]
    return "\n\n".join([*parts, *shown.notes])


def _glance(shown: Document, width: int, *, whole: bool) -> Iterator[object]:
    yield Text(f"{shown.question}\n", style="dim")
    yield Text(f"{shown.headline}\n", style="bold")
    yield from _aligned(shown.table if whole else _first_rows(shown.table), width)
    for line in _unexplained(shown) if whole else shown.first_legend:
        yield Text(line, style="dim")
    yield ""
    for number, line in enumerate(shown.reasons, 1):
        yield _hanging(f"{number}. ", line, width)
    yield Text(f"\n{shown.caveat}")


def _unexplained(shown: Document) -> list[str]:
    """The lines of the legend whose columns no note below explains."""
    noted = {note.partition(":")[0] for note in shown.notes}
    return [line for line in shown.legend if line.partition(":")[0] not in noted]


def _explained(answer: Answer, shown: Document, width: int) -> Iterator[object]:
    rank = answer.best.rank
    yield f"\n{terminal_plot(panel(answer), (f'advised rank {rank}', rank))}\n"
    for one in shown.details:
        yield _hanging(f"{one.label}: ", one.words, width)
        for line in () if one.table is None else _lines(one.table):
            yield f"   {line}"
    yield ""
    for line in _lines(_chosen(shown.whole_table, COSTS)):
        yield line
    yield ""
    for note in shown.notes:
        yield _hanging("", note, width)


def _chosen(table: Table, names: Sequence[str]) -> Table:
    """The table with these columns only."""
    places = [table.columns.index(name) for name in names]
    return Table(tuple(names), tuple(tuple(row[p] for p in places) for row in table.rows))


def _first_rows(table: Table) -> Table:
    return Table(table.columns, table.rows[:MOST_ROWS])


def _aligned(table: Table, width: int) -> Iterator[Text]:
    """The lines of the table, without spare columns where the terminal is too narrow."""
    columns = list(range(len(table.columns)))
    for spare in SPARE:
        if len(_line(table, columns, table.columns)) > width and spare in table.columns:
            columns.remove(table.columns.index(spare))
    yield Text(_line(table, columns, table.columns), style="dim", no_wrap=True)
    for row in table.rows:
        style = "bold" if str(row[0]).startswith("→") else ""
        yield Text(_line(table, columns, row), style=style, no_wrap=True)


def _lines(table: Table) -> list[str]:
    """All lines of a table, with every column."""
    columns = list(range(len(table.columns)))
    return [_line(table, columns, cells) for cells in (table.columns, *table.rows)]


def _line(table: Table, columns: list[int], cells: Sequence[Cell]) -> str:
    """One line: names to the left, everything else to the right."""
    shown = []
    for column in columns:
        wide = max(len(str(row[column])) for row in (table.columns, *table.rows))
        cell = str(cells[column])
        shown.append(cell.rjust(wide) if column else cell.ljust(wide))
    return "  ".join(shown).rstrip()


def _hanging(mark: str, line: str, width: int) -> Text:
    """A paragraph with a mark in front, and its continuation lines indented."""
    lines = wrap(f"{mark}{line}", width, subsequent_indent="   ", break_on_hyphens=False)
    words = Text("\n".join(lines))
    words.stylize("bold", 0, len(mark))
    return words
