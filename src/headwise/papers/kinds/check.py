"""The kind of exhibit that checks a statement: rows drawn as they are, beside what is expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from headwise.papers.exhibit import Answers, Claim, Presentation, grouped
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Row


@dataclass(frozen=True)
class RowPanel:
    """A panel with a curve for each value of a field.

    Attributes:
        title: The title.
        x: The field along the axis, and its name.
        y: The field that is drawn, and its name.
        by: The field that has a curve for each of its values, and the label with "{}" for it.
        where: The fields and values of the rows that count.
        law: The field that is drawn as a thin line, if any, and its name.
        errors: The half width of the band, in standard errors.
        y_scale: "log" or "linear".
        decades: Whether the axis names powers of ten alone.
    """

    title: str
    x: tuple[str, str]
    y: tuple[str, str]
    by: tuple[str, str]
    where: Mapping[str, Any] = field(default_factory=dict)
    law: tuple[str, str] = ("", "")
    errors: int = 0
    y_scale: Literal["linear", "log"] = "linear"
    decades: bool = False

    def of(self, answers: Answers) -> Panel:
        """Draw the rows among the answers."""
        rows, (name, label) = answers.rows(**self.where), self.by
        curves = tuple(
            self._curve(label.format(value), own) for value, own in grouped(rows, name).items()
        )
        marks = sorted({x for curve in curves for x in (*curve.mean.x, *curve.law.x)})
        return Panel(
            self.title,
            self.x[1],
            self.y[1],
            curves,
            x_scale="log",
            y_scale=self.y_scale,
            x_ticks=tuple(x for x in marks if not self.decades or math.log10(x).is_integer()),
            law_label=self.law[1],
        )

    def _curve(self, label: str, rows: Sequence[Row]) -> Curve:
        # Rows of the formula alone have no simulated value.
        seen = [row for row in rows if self.y[0] in row]
        return Curve(
            label,
            self._line(seen, self.y[0]),
            spread=tuple(self.errors * row["stderr"] for row in seen) if self.errors else (),
            law=self._line(rows, self.law[0]) if self.law[0] else Line(),
        )

    def _line(self, rows: Sequence[Row], name: str) -> Line:
        return Line.of({row[self.x[0]]: row[name] for row in rows})


@dataclass(frozen=True)
class Check:
    """Panels of rows, and the claims that are judged from them.

    Attributes:
        panels: The panels.
        claims: The claims, from the answers.
        remarks: The remarks.
        tables: The tables.
    """

    panels: tuple[RowPanel, ...]
    claims: Callable[[Answers], tuple[Claim, ...]]
    remarks: Callable[[Answers], tuple[str, ...]] = lambda answers: ()
    tables: Callable[[Answers], tuple[Table, ...]] = lambda answers: ()

    def present(self, answers: Answers) -> Presentation:
        """Return what is shown."""
        return Presentation(
            panels=tuple(panel.of(answers) for panel in self.panels),
            claims=self.claims(answers),
            tables=self.tables(answers),
            remarks=self.remarks(answers),
        )
