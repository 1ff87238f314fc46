"""Exhibit: one figure or table: the questions it asks, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from headwise.errors import BadInputError
from headwise.papers.comparison import NOTHING_PRINTED, Cell
from headwise.report import Panel, Table
from headwise.runs import Record, Records, Row, Spec


class Scale(StrEnum):
    """How large an exhibit is run.

    ``miniature`` takes seconds and checks the machinery, ``laptop`` minutes on two cores,
    ``gpu`` needs an accelerator, ``paper`` is what is printed.

    >>> Scale("paper") is Scale.PAPER
    True
    """

    MINIATURE = "miniature"
    LAPTOP = "laptop"
    GPU = "gpu"
    PAPER = "paper"


@dataclass(frozen=True)
class Answers:
    """The answers to an exhibit's specs at one scale, in the order of the specs.

    >>> answers = Answers(Scale.MINIATURE, ())
    >>> answers.rows()
    []
    """

    scale: Scale
    records: tuple[Record, ...]

    def rows(self, **wanted: Any) -> list[Row]:
        """Every row, joined with its spec, whose fields have the values wanted."""
        return [row for row in self._joined if all(row.get(k) == v for k, v in wanted.items())]

    def row(self, **wanted: Any) -> Row:
        """The one row whose fields have these values."""
        found = self.rows(**wanted)
        if len(found) != 1:
            raise BadInputError(
                f"{len(found)} rows have {wanted}", hint="name the fields that tell rows apart"
            )
        return found[0]

    def values(self, field: str) -> list[Any]:
        """The different values of a field, in order of first appearance."""
        return list(dict.fromkeys(row[field] for row in self._joined if field in row))

    @cached_property
    def _joined(self) -> list[Row]:
        return [row for record in self.records for row in record.joined()]


@dataclass(frozen=True)
class Presentation:
    """What an exhibit shows: panels of one figure, printed values compared, tables, remarks.

    ``claims`` are statements of the paper without a number, each with whether it was seen to
    hold. ``title`` takes the place of the exhibit's own where the rows say more than it can, and
    ``uncompared`` says why there are no cells.

    >>> Presentation(remarks=("Rank levels off.",)).cells
    ()
    """

    panels: tuple[Panel, ...] = ()
    cells: tuple[Cell, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[tuple[str, bool], ...] = ()
    remarks: tuple[str, ...] = ()
    title: str = ""
    uncompared: str = NOTHING_PRINTED


#: Specs are made when they are asked for: listing exhibits should cost nothing.
Questions = Callable[[], Iterable[Spec]]


@dataclass(frozen=True)
class Exhibit:
    """A named figure or table: specs per scale, and how their answers are presented.

    >>> from headwise.runs.examples import Square
    >>> squares = Exhibit(
    ...     name="examples/squares",
    ...     title="Squares",
    ...     caption="The squares of two numbers.",
    ...     questions={Scale.MINIATURE: lambda: [Square(number=n) for n in (1, 2)]},
    ...     present=lambda answers: Presentation(remarks=(str(len(answers.rows())),)),
    ... )
    >>> [spec.number for spec in squares.specs(Scale.MINIATURE)]
    [1.0, 2.0]
    """

    name: str
    title: str
    caption: str
    questions: Mapping[Scale, Questions]
    present: Callable[[Answers], Presentation]

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The scales it offers, from small to large."""
        return tuple(scale for scale in Scale if scale in self.questions)

    def specs(self, scale: Scale) -> list[Spec]:
        """What it asks at a scale."""
        if scale not in self.questions:
            raise BadInputError(
                f"{self.name} has no scale {scale.value!r}",
                hint=f"choose from {', '.join(self.scales)}",
            )
        return list(self.questions[scale]())

    def presented(self, records: Records, scale: Scale) -> Presentation:
        """What it shows; every answer must be among the records."""
        return self.present(Answers(scale, tuple(records.of(self.specs(scale)))))


def grid(spec: type[Spec], fixed: Mapping[str, Any], **axes: Sequence[Any]) -> list[Spec]:
    """A spec for every combination of the axes' values, the last axis changing fastest.

    >>> from headwise.runs.examples import Square
    >>> [spec.number for spec in grid(Square, {}, number=[1, 2])]
    [1.0, 2.0]
    """
    found = [dict(fixed)]
    for name, values in axes.items():
        found = [content | {name: value} for content in found for value in values]
    return [spec(**content) for content in found]
