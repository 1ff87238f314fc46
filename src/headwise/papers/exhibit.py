"""Exhibit: one figure or table, the specs it asks, and how it presents their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from headwise.errors import BadInputError, ParameterError
from headwise.papers.comparison import NOTHING_PRINTED, OTHER_SIZES, WITHOUT_NUMBERS, Cell
from headwise.report import Panel, Table
from headwise.report.results import short_repr
from headwise.runs import Record, Records, Row, Spec


class Scale(StrEnum):
    """How large an exhibit is run.

    ``miniature`` takes seconds and checks the machinery, ``laptop`` takes minutes on two cores,
    ``gpu`` needs an accelerator, and ``paper`` has the published sizes.
    """

    MINIATURE = "miniature"
    LAPTOP = "laptop"
    GPU = "gpu"
    PAPER = "paper"


def matching(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Return the rows whose fields have these values."""
    return [row for row in rows if all(row.get(k) == v for k, v in wanted.items())]


def grouped(rows: Iterable[Row], *fields: str) -> dict[Any, list[Row]]:
    """Group rows by the value of a field, or by those of several, in order of appearance."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        values = tuple(row[field] for field in fields)
        found.setdefault(values if len(fields) > 1 else values[0], []).append(row)
    return found


@dataclass(frozen=True)
class Answers:
    """The answers to an exhibit's specs at one scale, in the order of the specs."""

    scale: Scale
    records: tuple[Record, ...]

    def rows(self, **wanted: Any) -> list[Row]:
        """Return the rows, joined with their specs, whose fields have these values."""
        return matching(self._joined, **wanted)

    def row(self, **wanted: Any) -> Row:
        """Return the only row whose fields have these values."""
        found = self.rows(**wanted)
        if len(found) != 1:
            raise BadInputError(
                f"expected one row with {wanted}, got {len(found)}",
                hint="name the fields that tell the rows apart",
            )
        return found[0]

    def values(self, field: str) -> list[Any]:
        """Return the distinct values of a field, in order of first appearance."""
        return list(dict.fromkeys(row[field] for row in self._joined if field in row))

    @cached_property
    def _joined(self) -> list[Row]:
        return [row for record in self.records for row in record.joined()]


@dataclass(frozen=True)
class Claim:
    """A statement in words, and whether the rows show it.

    Attributes:
        words: The statement.
        holds: Whether the rows show it.
        printed: Where a paper makes the statement, such as "§2.1". Empty if it is ours.
    """

    words: str
    holds: bool
    printed: str = ""

    @property
    def source(self) -> str:
        """Return where the statement comes from, in words."""
        return f"published, {self.printed}" if self.printed else "ours"


@dataclass(frozen=True)
class Presentation:
    """What an exhibit shows: panels of one figure, compared values, tables, claims, remarks.

    ``title`` replaces the exhibit's own title, and ``uncompared`` the exhibit's reason why it has
    no cells.
    """

    panels: tuple[Panel, ...] = ()
    cells: tuple[Cell, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    remarks: tuple[str, ...] = ()
    title: str = ""
    uncompared: str = ""

    __repr__ = short_repr

    def claims_by(self, *, printed: bool) -> list[Claim]:
        """Return the claims of a paper, or those that are ours."""
        return [claim for claim in self.claims if bool(claim.printed) is printed]


#: Specs are built when they are needed, so that listing exhibits is cheap.
Questions = Callable[[], Iterable[Spec]]


@dataclass(frozen=True)
class Exhibit:
    """A named figure or table: specs for each scale, and how their answers are presented.

    Attributes:
        caption: What the figure shows, ending in a full stop.
        questions: The specs of each scale.
        present: Turns answers into a presentation.
        printed: Where the paper has it, such as "Figure 1". Empty if the exhibit is ours.
        compared_at: The scales at which published values are compared.
        partial: Whether ``present`` can show some of the answers.
        name: Folder and file, such as ``rank2026/table_1``; the catalogue fills it in.
        title: One line; the catalogue fills it in.
    """

    caption: str
    questions: Mapping[Scale, Questions]
    present: Callable[[Answers], Presentation]
    printed: str = ""
    compared_at: tuple[Scale, ...] = ()
    partial: bool = False
    name: str = ""
    title: str = ""

    __repr__ = short_repr

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Return the scales that it offers, from small to large."""
        return tuple(scale for scale in Scale if scale in self.questions)

    @property
    def source(self) -> str:
        """Return where the exhibit comes from, in words."""
        return self.printed or "ours"

    def specs(self, scale: Scale) -> list[Spec]:
        """Return the specs of a scale, each once: parts of an exhibit may share some."""
        if scale not in self.questions:
            raise ParameterError(
                f"{self.name} has no scale {scale.value}",
                hint=f"pass `scale` {' or '.join(self.scales)}",
            )
        return list({spec.key: spec for spec in self.questions[scale]()}.values())

    def presented(self, records: Records, scale: Scale) -> Presentation:
        """Present the answers among the records; all of them must be there."""
        return self.present(Answers(scale, tuple(records.of(self.specs(scale)))))

    def why_uncompared(self, scale: Scale, shown: Presentation) -> str:
        """Return why a presentation at this scale has no compared values."""
        if shown.uncompared:
            return shown.uncompared
        if self.compared_at:
            return OTHER_SIZES
        return WITHOUT_NUMBERS if self.printed else NOTHING_PRINTED


def grid(spec: type[Spec], fixed: Mapping[str, Any], **axes: Sequence[Any]) -> list[Spec]:
    """Return a spec for every combination of the axes' values; the last axis changes fastest."""
    found = [dict(fixed)]
    for name, values in axes.items():
        found = [content | {name: value} for content in found for value in values]
    return [spec(**content) for content in found]
