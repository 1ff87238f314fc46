"""Tables: the same rows as text, as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from headwise.errors import BadInputError

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Columns and rows; ``stressed`` are the cells (row, column) that should catch the eye.

    >>> table = Table(("n", "rank"), ((100, 0.5912), (200, None)), frozenset({(1, 1)}))
    >>> print(table.text())
      n    rank
    100  0.5912
    200       *
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    stressed: frozenset[tuple[int, int]] = frozenset()
    title: str = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise BadInputError(
                    f"row {number} has {len(row)} cells under {len(self.columns)} columns",
                    hint="give every row one cell per column",
                )

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Rows of names and values as a table with a column for each name.

        >>> Table.of([{"n": 100}, {"n": 200, "rank": 0.5}]).columns
        ('n', 'rank')
        """
        rows = list(rows)
        columns = tuple({name: None for row in rows for name in row})
        return cls(columns, tuple(tuple(row.get(name) for name in columns) for row in rows))

    def text(self) -> str:
        """For a terminal or a log; a star follows what is stressed."""
        cells = [
            [
                _shown(value) + ("*" if (i, j) in self.stressed else "")
                for j, value in enumerate(row)
            ]
            for i, row in enumerate(self.rows)
        ]
        lines = [list(self.columns), *cells]
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.columns))]
        aligned = [
            [
                cell.rjust(width) if self._is_numeric(j) else cell.ljust(width)
                for j, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            for line in lines
        ]
        return "\n".join("  ".join(line).rstrip() for line in aligned)

    def markdown(self) -> str:
        """For a file that people read; what is stressed is bold.

        >>> print(Table(("n", "rank"), ((100, 0.5),), frozenset({(0, 1)})).markdown())
        | n | rank |
        |--:|--:|
        | 100 | **0.5** |
        """
        rule = "|".join("--:" if self._is_numeric(j) else ":--" for j in range(len(self.columns)))
        rows = [
            [
                f"**{_shown(v)}**" if (i, j) in self.stressed else _shown(v)
                for j, v in enumerate(row)
            ]
            for i, row in enumerate(self.rows)
        ]
        body = [f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |" for row in rows]
        return "\n".join([f"| {' | '.join(self.columns)} |", f"|{rule}|", *body])

    def html(self) -> str:
        """For a page; stressed cells carry the class ``stressed``.

        >>> Table(("n",), ((1,),), frozenset({(0, 0)})).html().partition("<tbody>")[2]
        '<tr><td class="number stressed">1</td></tr></tbody></table>'
        """
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            f"<tr>{''.join(self._html_cell(i, j, value) for j, value in enumerate(row))}</tr>"
            for i, row in enumerate(self.rows)
        )
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _html_cell(self, row: int, column: int, value: Cell) -> str:
        classes = ["number"] if isinstance(value, int | float) else []
        classes += ["stressed"] if (row, column) in self.stressed else []
        named = f' class="{" ".join(classes)}"' if classes else ""
        return f"<td{named}>{escape(_shown(value))}</td>"

    def _is_numeric(self, column: int) -> bool:
        values = [row[column] for row in self.rows if row[column] is not None]
        return bool(values) and all(isinstance(value, int | float) for value in values)


def _shown(value: Cell) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
