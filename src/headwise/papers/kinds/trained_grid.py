"""The kind of exhibit that trains a grid: losses of both protocols beside the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from headwise.papers.comparison import Cell
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale, matching
from headwise.papers.kinds.protocols import (
    depth_words,
    of_zero_output,
    protocol_panels,
    protocol_table,
    shown_field,
)
from headwise.papers.kinds.trained_rows import Coordinate, diverged_remark, seeds_by, trained_cell
from headwise.papers.kinds.training_remarks import (
    epoch_remarks,
    left_out_remark,
    schedule_remarks,
    stuck_remark,
    unlike_remark,
)
from headwise.papers.printed import printed_table
from headwise.report import Panel, Table
from headwise.runs import Row, Spec

#: The scales that have the published sizes.
COMPARED = (Scale.GPU, Scale.PAPER)

#: The title of a panel and the value of a curve in it.
Setting = tuple[str, Any]
Printed = dict[Setting, dict[Coordinate, float]]


@dataclass(frozen=True)
class TrainedGrid:
    """An exhibit with a curve for each value of a field, and a panel for each protocol and depth.

    Attributes:
        questions: The specs of a scale.
        scales: The scales that it offers.
        curve: The field that has a curve for each of its values.
        label: The words for a curve, from its value.
        schedule: The published steps, batch and number of seeds, in words.
        columns: The fields that tell settings apart, and their names in the table.
        panel: The title of the panels; without one every depth has its own.
        along: The field along the axis and its name.
        cell: The words for a setting; "{panel}", "{value}" and "{label}" stand for its panel, the
            value of its curve and the words for that.
        printed: The name of the published table, if values are compared.
        more: Fields that are computed from those of a row.
        claims: The claims at a scale.
        tables: Further tables at a scale.
        remarks: Further remarks at a scale.
        title: A title that depends on the rows.
    """

    questions: Callable[[Scale], list[Spec]]
    scales: tuple[Scale, ...]
    curve: str
    label: Callable[[Any], str]
    schedule: str
    columns: Mapping[str, str]
    panel: str = ""
    along: tuple[str, str] = ("rank", "rank r")
    cell: str = "{value}"
    printed: str = ""
    more: Callable[[Row], Row] = lambda row: {}
    claims: Callable[[list[Row], Scale], tuple[Claim, ...]] = lambda rows, scale: ()
    tables: Callable[[list[Row], Scale], tuple[Table, ...]] = lambda rows, scale: ()
    remarks: Callable[[list[Row], Scale], tuple[str, ...]] = lambda rows, scale: ()
    title: Callable[[list[Row]], str] = lambda rows: ""

    def exhibit(self, caption: str, printed: str = "") -> Exhibit:
        """Return the exhibit; ``printed`` is where the paper has it."""
        return Exhibit(
            caption=caption,
            questions={scale: partial(self.questions, scale) for scale in self.scales},
            present=lambda answers: self.present(answers, of_paper=bool(printed)),
            printed=printed,
            compared_at=COMPARED if self.printed else (),
            partial=bool(printed),
        )

    def present(self, answers: Answers, *, of_paper: bool) -> Presentation:
        """Return panels and table, and at the published sizes cells."""
        rows, scale = [row | self.more(row) for row in answers.rows()], answers.scale
        printed = self._printed() if self.printed and scale in COMPARED else {}
        settings = self._settings(rows)
        labelled: dict[str, dict[str, list[Row]]] = {}
        for (panel, value), own in settings.items():
            labelled.setdefault(panel, {})[self.label(value)] = own
        return Presentation(
            panels=self._panels(labelled, printed),
            cells=tuple(self._cells(settings, printed)),
            tables=(protocol_table(rows, self.columns), *self.tables(rows, scale)),
            claims=self.claims(rows, scale),
            remarks=(
                *schedule_remarks(answers, self.schedule, printed=of_paper),
                *unlike_remark({"" if self.panel else key: own for key, own in labelled.items()}),
                *self._left_out(settings, printed),
                *epoch_remarks(rows),
                *self.remarks(rows, scale),
                *stuck_remark(rows, *self.columns),
                *diverged_remark(rows),
            ),
            title=self.title(rows),
        )

    def _settings(self, rows: list[Row]) -> dict[Setting, list[Row]]:
        found: dict[Setting, list[Row]] = {}
        for row in sorted(rows, key=lambda row: (row["layers"], row[self.curve])):
            panel = self.panel or depth_words(row["layers"])
            found.setdefault((panel, row[self.curve]), []).append(row)
        return found

    def _printed(self) -> Printed:
        found: Printed = {}
        for row in printed_table(self.printed):
            panel = self.panel or depth_words(int(row["layers"]))
            value = _number(row[self.curve])
            found.setdefault((panel, value), {})[int(row["rank"])] = float(row["loss"])
        return found

    def _panels(
        self, labelled: Mapping[str, Mapping[str, list[Row]]], printed: Printed
    ) -> tuple[Panel, ...]:
        """Return, for each title, the panel of the fixed set and that of fresh data."""
        panels = []
        for title, curves in labelled.items():
            beside = {self.label(v): own for (panel, v), own in printed.items() if panel == title}
            panels += map(_named, protocol_panels(title, curves, self.along, beside))
        return tuple(panels)

    def _cells(self, settings: Mapping[Setting, list[Row]], printed: Printed) -> list[Cell]:
        found = []
        for setting, losses in printed.items():
            own = matching(settings.get(setting, ()), protocol="fixed")
            points = seeds_by(own, "rank", shown_field(own, "fixed"))
            found += [
                trained_cell(f"{self._name(setting)}, r {r}", points[r], loss)
                for r, loss in losses.items()
                if r in points
            ]
        return found

    def _left_out(self, settings: Mapping[Setting, list[Row]], printed: Printed) -> tuple[str, ...]:
        have = {self._name(one): {row["rank"] for row in own} for one, own in settings.items()}
        return left_out_remark({self._name(one): own for one, own in printed.items()}, have)

    def _name(self, setting: Setting) -> str:
        panel, value = setting
        return self.cell.format(panel=panel, value=value, label=self.label(value))


def _named(panel: Panel) -> Panel:
    """Add "zero output" to the title of a panel whose losses are all 1."""
    learnt = (curve for curve in panel.curves if curve.label != "trivial")
    if of_zero_output(value for curve in learnt for value in curve.mean.y):
        return replace(panel, title=f"{panel.title}, zero output")
    return panel


def _number(text: str) -> float | int | str:
    """Return a field of a published table as what rows have there."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
