"""Tables: the same rows as text, as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from headwise.errors import BadInputError, needs_extra

Cell = str | int | float | None


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "layer"), counted(2000, "layer")
    ('1 layer', '2,000 layers')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


class Shown(NamedTuple):
    """A cell as a page shows it: its text and its CSS classes."""

    text: str
    classes: str


@dataclass(frozen=True)
class Table:
    """Columns and rows, for a terminal, Markdown or a page.

    Args:
        columns: The names of the columns.
        rows: The rows; None is an empty cell.
        stressed: The (row, column) of cells to highlight.
        title: The caption.

    Raises:
        BadInputError: If a row has another number of cells than there are columns.

    Example:
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
                    f"expected {len(self.columns)} cells in row {number}, got {len(row)}",
                    hint="pass one cell per column",
                )

    @classmethod
    def of(
        cls,
        rows: Iterable[Mapping[str, Any]],
        stressed: frozenset[tuple[int, int]] = frozenset(),
        title: str = "",
    ) -> Table:
        """Make a table from rows of names and values, with a column for each name."""
        rows = list(rows)
        columns = tuple({name: None for row in rows for name in row})
        cells = tuple(tuple(row.get(name) for name in columns) for row in rows)
        return cls(columns, cells, stressed, title)

    def text(self) -> str:
        """Return the table for a terminal or a log; highlighted cells end with a star."""
        lines = [list(self.columns), *self._texts("", "*")]
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.columns))]
        numeric = [self.is_numeric(j) for j in range(len(self.columns))]
        aligned = [
            [
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            ]
            for line in lines
        ]
        return "\n".join("  ".join(line).rstrip() for line in aligned)

    def markdown(self) -> str:
        """Return the table for a Markdown file; highlighted cells are bold.

        Returns:
            One line for the header, one for the alignment, and one for each row.

        Example:
            >>> print(Table(("n", "rank"), ((100, 0.5),), frozenset({(0, 1)})).markdown())
            | n | rank |
            |--:|--:|
            | 100 | **0.5** |
        """
        rule = "|".join("--:" if self.is_numeric(j) else ":--" for j in range(len(self.columns)))
        rows = self._texts("**", "**")
        body = [f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |" for row in rows]
        return "\n".join([f"| {' | '.join(self.columns)} |", f"|{rule}|", *body])

    def html(self) -> str:
        """Return the table for a page; highlighted cells have the class ``stressed``.

        Returns:
            One ``<table>`` element as a string.

        Example:
            >>> Table(("n",), ((1,),), frozenset({(0, 0)})).html().partition("<tbody>")[2]
            '<tr><td class="number stressed">1</td></tr></tbody></table>'
        """
        return str(template("table.html").module.table(self))

    def cells(self) -> Iterator[list[Shown]]:
        """Yield the cells of each row as a page shows them."""
        for i, row in enumerate(self.rows):
            yield [
                Shown(
                    _shown(value),
                    "number" * isinstance(value, int | float)
                    + " stressed" * ((i, j) in self.stressed),
                )
                for j, value in enumerate(row)
            ]

    def _texts(self, before: str, after: str) -> list[list[str]]:
        """Return the rows as texts, with marks around highlighted cells."""
        return [
            [
                f"{before}{_shown(v)}{after}" if (i, j) in self.stressed else _shown(v)
                for j, v in enumerate(row)
            ]
            for i, row in enumerate(self.rows)
        ]

    def is_numeric(self, column: int) -> bool:
        """Return whether a column holds numbers alone, and aligns to the right."""
        values = [row[column] for row in self.rows if row[column] is not None]
        return bool(values) and all(isinstance(value, int | float) for value in values)


def data_frame(rows: Iterable[Mapping[str, Any]], columns: list[str] | None = None) -> Any:
    """Return rows as a pandas DataFrame; pandas is imported only here.

    Args:
        rows: Names and values of each row.
        columns: The names of the columns; by default those of the rows.

    Returns:
        A DataFrame.

    Raises:
        MissingExtraError: If pandas is not installed.

    Example:
        >>> data_frame([{"n": 100, "rank": 59}, {"n": 200, "rank": 118}]).shape
        (2, 2)
    """  # noqa: DOC501
    try:
        import pandas
    except ImportError:
        raise needs_extra("pandas", "frames") from None
    return pandas.DataFrame(list(rows), columns=columns)


def _shown(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    whole = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if whole else str(value)


@cache
def template(name: str) -> Any:
    """Return a Jinja template of this package by its file name."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("headwise.report")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)
